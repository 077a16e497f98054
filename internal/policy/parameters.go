package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// specParameters is the field that parameters stand in.
const specParameters = "spec.parameters"

// decodeJSON reads one JSON value and keeps every digit of its numbers.
func decodeJSON(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

func canonicalJSON(raw []byte) ([]byte, error) {
	v, err := decodeJSON(raw)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// readParameters reads a policy's parameters; none are an empty object.
func readParameters(raw *apiextensionsv1.JSON) (map[string]any, []Problem) {
	if raw == nil || len(raw.Raw) == 0 {
		return map[string]any{}, nil
	}
	v, err := decodeJSON(raw.Raw)
	if err != nil {
		return nil, []Problem{{Field: specParameters, Message: fmt.Sprintf("is no JSON: %v", err)}}
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	}
	return nil, []Problem{{Field: specParameters, Message: "must be an object, as in {\"maximum\": 2}"}}
}

// settle reads parameters, sets the defaults of the schema and validates the result. A nil schema takes none.
func settle(schema map[string]any, raw *apiextensionsv1.JSON) (map[string]any, []Problem) {
	parameters, problems := readParameters(raw)
	if len(problems) > 0 {
		return nil, problems
	}
	inputFields{schema}.applyDefaults(schema, parameters)
	return parameters, checkParameters(schema, parameters)
}

// checkParameters validates parameters against a policy's schema.
func checkParameters(schema map[string]any, parameters map[string]any) []Problem {
	if schema == nil {
		if len(parameters) == 0 {
			return nil
		}
		return []Problem{{
			Field:   specParameters,
			Message: "the policy takes no parameters: remove them, or give the module a schema for them (METADATA above package, custom.parameters)",
		}}
	}
	return validated(schema, parameters)
}

// validated holds parameters to a schema.
func validated(schema, parameters map[string]any, formats ...*jsonschema.Format) []Problem {
	compiled, err := compileSchema(schema, formats...)
	if err != nil {
		return []Problem{{Field: specParameters, Message: err.Error()}}
	}
	var invalid *jsonschema.ValidationError
	if err := compiled.Validate(parameters); errors.As(err, &invalid) {
		return validationProblems(schema, invalid)
	}
	return nil
}

// noLoader refuses references out of a schema: the library's own loader reads files.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("refers to %s: a schema may only refer to its own parts, as in #/$defs/airport", url)
}

// compileSchema compiles a policy's schema of parameters. Formats are known besides those of JSON Schema.
func compileSchema(schema map[string]any, formats ...*jsonschema.Format) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.AssertFormat()
	for _, f := range formats {
		c.RegisterFormat(f)
	}
	const name = "urn:parameters" // not a file name, which would be made absolute and told
	if err := c.AddResource(name, schema); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	compiled, err := c.Compile(name)
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		return nil, schemaError(invalid)
	}
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	return compiled, nil
}

// parameterPath writes a location as a path of fields: spec.parameters.airports[0].
func parameterPath(tokens []string) string {
	var b strings.Builder
	b.WriteString(specParameters)
	for _, t := range tokens {
		if strings.Trim(t, "0123456789") == "" {
			fmt.Fprintf(&b, "[%s]", t)
			continue
		}
		b.WriteString("." + t)
	}
	return b.String()
}

// closed returns a copy of a schema in which objects with properties take no others, unless the schema says otherwise:
// JSON Schema's default lets a mistyped parameter pass in silence. What is combined (allOf and the like, and definitions,
// which may be parts of it) is left as it is, because there the parts see only their own properties.
func closed(schema map[string]any) map[string]any {
	out := maps.Clone(schema)
	if props, ok := schema["properties"].(map[string]any); ok {
		out["properties"] = closedEach(props)
		if !combined(schema) {
			out["additionalProperties"] = false
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		out["items"] = closed(items)
	}
	return out
}

func closedEach(schemas map[string]any) map[string]any {
	out := make(map[string]any, len(schemas))
	for name, s := range schemas {
		if m, ok := s.(map[string]any); ok {
			out[name] = closed(m)
			continue
		}
		out[name] = s
	}
	return out
}

func combined(schema map[string]any) bool {
	for _, key := range []string{"additionalProperties", "unevaluatedProperties", "patternProperties", "allOf", "anyOf",
		"oneOf", "if", "$ref"} {
		if _, ok := schema[key]; ok {
			return true
		}
	}
	return false
}
