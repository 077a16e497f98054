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
