package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A field with a default counts as always there. If it weren't, the message would be undefined and the rule not fire.
func TestDefaultsAreSetWhereverParametersAreRead(t *testing.T) {
	const head = `# METADATA
# custom:
#   parameters:
#     type: object
#     properties:
#       level: {$ref: "#/$defs/word"}
#       nested:
#         type: object
#         default: {}
#         properties: {level: {type: string, default: nested}}
#       rules:
#         type: array
#         items: {type: object, properties: {level: {type: string, default: listed}}}
#       named:
#         type: object
#         additionalProperties: {type: object, properties: {level: {type: string, default: named}}}
#     $defs: {word: {type: string, default: referred}}
package a

`
	const parameters = `{"rules": [{}], "named": {"x": {}}}`
	for want, rule := range map[string]string{
		"referred": `deny contains sprintf("%s", [input.parameters.level])`,
		"nested":   `deny contains sprintf("%s", [input.parameters.nested.level])`,
		"listed":   "deny contains sprintf(\"%s\", [rule.level]) if some rule in input.parameters.rules",
		"named":    "deny contains sprintf(\"%s\", [rule.level]) if some rule in input.parameters.named",
	} {
		e := NewEngine()
		mustSet(t, e, withParameters(regoPolicy("a", head+rule+"\n"), parameters))
		if diff := cmp.Diff([]string{"a: " + want}, denied(decide(t, e, request()))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rule, diff)
		}
	}
}

func TestPoliciesOfOneTextKeepTheirDefaultsApart(t *testing.T) {
	const text = `# METADATA
# custom:
#   parameters:
#     type: object
#     properties:
#       limits:
#         type: object
#         default: {}
#         properties: {most: {type: integer, default: 1}}
package a

deny contains sprintf("at most %d", [input.parameters.limits.most]) if input.ticket.spec.number > input.parameters.limits.most
`
	schema := map[string]any{"properties": map[string]any{"limits": map[string]any{"default": map[string]any{}, "properties": map[string]any{"most": map[string]any{"default": 1}}}}}
	inputFields{schema}.applyDefaults(schema, map[string]any{})
	if left := schema["properties"].(map[string]any)["limits"].(map[string]any)["default"].(map[string]any); len(left) != 0 {
		t.Errorf("the schema's own default was written to: %v", left)
	}
	e := NewEngine()
	mustSet(t, e, regoPolicy("a", text))
	mustSet(t, e, withParameters(regoPolicy("b", text), `{"limits": {"most": 5}}`))
	if diff := cmp.Diff([]string{"a: at most 1"}, denied(decide(t, e, request()))); diff != "" {
		t.Error(diff)
	}
}

// The guide for policy authors warns of this, and the schema is the way out.
func TestARuleNeverFiresWithoutTheParameterThatItReads(t *testing.T) {
	for schema, want := range map[string]bool{"{type: integer}": true, "{type: integer, default: 1}": false} {
		rego := "# METADATA\n# custom:\n#   parameters: {type: object, properties: {max: " + schema + "}}\npackage a\n\n" +
			"deny contains \"too many\" if input.ticket.spec.number > input.parameters.max\n"
		e := NewEngine()
		if err := e.Set(t.Context(), regoPolicy("a", rego)); err != nil {
			t.Fatal(err)
		}
		d, err := e.Decide(t.Context(), request())
		if err != nil || d.Allowed() != want {
			t.Errorf("max is %s: allowed = %v (%v), want %v", schema, d.Allowed(), err, want)
		}
	}
}
