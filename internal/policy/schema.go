package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// parameterSchema is the schema in METADATA above package, or nil.
func (t moduleText) parameterSchema(module *ast.Module) (map[string]any, []Problem) {
	var schema map[string]any
	var problems []Problem
	for _, a := range module.Annotations {
		if len(a.Schemas) > 0 {
			problems = append(problems, t.at(a.Location, "METADATA schemas isn't supported: input is always checked against the engine's own schema; remove it"))
		}
		raw, ok := a.Custom["parameters"]
		if !ok {
			continue
		}
		if a.Scope != "package" {
			problems = append(problems, t.at(a.Location, "METADATA custom.parameters belongs right above package, here it has no effect"))
			continue
		}
		s, err := readSchema(raw)
		if err != nil {
			problems = append(problems, t.at(a.Location, "METADATA custom.parameters: %v", err))
			continue
		}
		schema = s
	}
	return schema, problems
}

// readSchema makes plain JSON of what YAML made of a schema, and checks that it is one.
func readSchema(raw any) (map[string]any, error) {
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	v, err := decodeJSON(text)
	if err != nil {
		return nil, err
	}
	schema, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("must be a JSON schema, as in {type: object, properties: {maximum: {type: integer}}}")
	}
	if err := (&refChecker{root: schema, state: map[string]refState{}}).check(schema, 0); err != nil {
		return nil, err
	}
	schema = closed(schema)
	if _, err := compileSchema(schema); err != nil {
		return nil, err
	}
	return schema, nil
}

// maxSchemaDepth bounds how deep a schema of parameters may be nested, counted along its references.
const maxSchemaDepth = 32

// refState is how far the search along a reference has come.
type refState int

const (
	refOpen refState = iota + 1
	refDone
)

// refChecker refuses schemas that refer to themselves or to anything else but their own parts. The type checker follows
// references without end, and a stack that overflows takes the whole process with it.
type refChecker struct {
	root  map[string]any
	state map[string]refState
}

func (c *refChecker) check(v any, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("the schema is nested more than %d deep", maxSchemaDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if err := c.checkMember(key, member, depth); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := c.check(item, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *refChecker) checkMember(key string, member any, depth int) error {
	ref, isText := member.(string)
	switch {
	case !isText:
		return c.check(member, depth+1)
	case key == "$dynamicRef" || key == "$recursiveRef" || key == "$id" || key == "id":
		return fmt.Errorf("%s isn't supported: a schema may only refer to its own parts, as in $ref: \"#/$defs/airport\"", key)
	case key != "$ref" || c.state[ref] == refDone:
		return nil
	case c.state[ref] == refOpen:
		return fmt.Errorf("%s refers to itself, which isn't supported: write the levels out", ref)
	case !strings.HasPrefix(ref, "#"):
		return fmt.Errorf("refers to %s: a schema may only refer to its own parts, as in $ref: \"#/$defs/airport\"", ref)
	}
	target := inputFields{c.root}.deref(map[string]any{"$ref": ref})
	if target == nil {
		return fmt.Errorf("refers to %s, which isn't there or refers to itself", ref)
	}
	c.state[ref] = refOpen
	if err := c.check(target, depth+1); err != nil {
		return err
	}
	c.state[ref] = refDone
	return nil
}

// schemaOfInput is the input schema with a policy's own schema in place of its parameters.
func schemaOfInput(parameters map[string]any) (map[string]any, error) {
	v, err := decodeJSON(inputSchema)
	if err != nil {
		return nil, fmt.Errorf("read the input schema: %w", err)
	}
	schema := v.(map[string]any)
	delete(schema, "$id") // OPA would fetch it
	if parameters != nil {
		props := maps.Clone(schema["properties"].(map[string]any))
		props["parameters"] = rebase(parameters, "#/properties/parameters")
		schema["properties"] = props
	}
	return schema, nil
}

// rebase makes the references within a schema right for its new place in another one.
func rebase(v any, to string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, member := range v {
			ref, isText := member.(string)
			if k == "$ref" && isText && strings.HasPrefix(ref, "#") {
				out[k] = to + strings.TrimPrefix(ref, "#")
				continue
			}
			out[k] = rebase(member, to)
		}
		delete(out, "$schema")
		delete(out, "$id")
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = rebase(v[i], to)
		}
		return out
	}
	return v
}
