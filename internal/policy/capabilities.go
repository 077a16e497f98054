package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// allowedBuiltins are the built-ins that policies may use: pure functions of their arguments whose cost is bounded by
// the size of these. The list is closed, so that a new release of OPA adds nothing by itself.
//
// Left out for the size of what they make: numbers.range, numbers.range_step, bits.*, strings.render_template, yaml.*
// (aliases multiply), regex.globs_match, graph.reachable_paths (paths multiply, and it heeds no deadline).
var allowedBuiltins = strings.Fields(`
	assign eq equal neq gt gte lt lte internal.member_2 internal.member_3 internal.template_string
	abs ceil div floor minus mul plus rem round
	and or intersection union count max min product sort sum
	array.concat array.flatten array.reverse array.slice
	concat contains endswith format_int indexof indexof_n lower replace split sprintf startswith
	strings.any_prefix_match strings.any_suffix_match strings.count strings.replace_n strings.reverse strings.split_n
	substring trim trim_left trim_prefix trim_right trim_space trim_suffix upper
	glob.match glob.quote_meta
	regex.find_all_string_submatch_n regex.find_n regex.is_valid regex.match regex.replace regex.split
	regex.template_match
	is_array is_boolean is_null is_number is_object is_set is_string to_number type_name
	json.filter json.is_valid json.marshal json.patch json.remove json.unmarshal
	object.filter object.get object.keys object.remove object.subset object.union object.union_n
	graph.reachable walk
	base64.decode base64.encode base64.is_valid hex.decode hex.encode
	crypto.md5 crypto.sha1 crypto.sha256
	semver.compare semver.is_valid
	time.add_date time.clock time.date time.diff time.format time.parse_duration_ns time.parse_ns
	time.parse_rfc3339_ns time.weekday
`)

// advice says what to do instead of a built-in, by name or by prefix up to the dot. The first match counts.
var advice = []struct{ prefix, text string }{
	{"time.now_ns", "use time.parse_rfc3339_ns(input.now): the time of a decision is part of the input, so that it can be repeated"},
	{"http.", "policies have no network: what a policy may know is in input, settings go into input.parameters"},
	{"net.", "policies have no network: what a policy may know is in input, settings go into input.parameters"},
	{"providers.", "policies have no network: what a policy may know is in input, settings go into input.parameters"},
	{"opa.", "policies see nothing of the program that runs them: settings go into input.parameters"},
	{"rand.", "a decision must come out the same each time it is asked for: use what is in input"},
	{"uuid.", "a decision must come out the same each time it is asked for: use what is in input, such as input.ticket.metadata.uid"},
	{"numbers.", "it can make a list of any length: write the list down, or compare with < and >"},
	{"bits.", "it can make a number of any length: use sums and comparisons"},
	{"units.", "write plain numbers; money in input is integer minor units"},
	{"io.jwt.", "policies hold no keys and check no tokens: the API server has authenticated input.user"},
	{"crypto.", "policies hold no keys: of crypto only md5, sha1 and sha256 are there"},
	{"json.", "give the policy's parameters a schema in METADATA (custom.parameters); input has one already"},
	{"yaml.", "use json.unmarshal and json.marshal"},
	{"rego.", "a policy is one module and can't look at itself"},
	{"print", "remove it: say it in the message, or try the rule out in a Rego test"},
	{"trace", "remove it: say it in the message, or try the rule out in a Rego test"},
	{"strings.render_template", "use sprintf or a template string $\"...{x}...\""},
	{"graph.reachable_paths", "use graph.reachable: the paths through a graph can be more than any memory holds"},
	{"regex.globs_match", "use regex.match or glob.match"},
}

// capabilities are what the compiler knows of: the allowed built-ins and the language of Rego v1. An empty AllowNet
// forbids references to schemas elsewhere.
func capabilities() *ast.Capabilities {
	c := allCapabilities()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool { return !slices.Contains(allowedBuiltins, b.Name) })
	return c
}

// allCapabilities know every built-in. They are for telling what is wrong with a module, never for running one.
func allCapabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion(ast.CapabilitiesRegoVersion(ast.RegoV1))
	c.AllowNet = []string{}
	return c
}

// forbidden tells whether a name is a built-in of OPA that policies may not use, and what to do instead.
func forbidden(name string) (string, bool) {
	if _, known := ast.BuiltinMap[name]; !known || slices.Contains(allowedBuiltins, name) {
		return "", false
	}
	for _, a := range advice {
		if name == a.prefix || strings.HasSuffix(a.prefix, ".") && strings.HasPrefix(name, a.prefix) {
			return fmt.Sprintf("the built-in %s isn't available to policies: %s", name, a.text), true
		}
	}
	return fmt.Sprintf("the built-in %s isn't available to policies", name), true
}
