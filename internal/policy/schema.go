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
	schema = closed(schema)
	if _, err := compileSchema(schema); err != nil {
		return nil, err
	}
	return schema, nil
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
