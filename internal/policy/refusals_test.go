package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestEngineRefuses holds every way in which a policy can be wrong to the words that its author reads.
func TestEngineRefuses(t *testing.T) {
	const fires = "package a\n\ndeny contains \"no\" if input.ticket.spec.number > 1\n"
	for _, c := range []struct {
		name, rego string
		want       string // the first problem, as far as it goes
	}{
		{"a syntax error", "package a\n\ndeny contains if {\n", "spec.rego:3:15: unexpected if keyword"},
		{"an empty module", "\n", "spec.rego: empty module"},
		{"a module without rules", "package a\n",
			"spec.rego:1:1: the module has no rule that the engine reads, so it would allow everything: write deny contains msg if { ... }"},
		{"Rego v0", "package a\n\ndeny[msg] { msg := \"no\" }\n", "spec.rego:3:1: "},

		{"a mistyped input field", "package a\n\ndeny contains \"no\" if input.ticket.spec.fom == \"BOM\"\n",
			`spec.rego:3:23: undefined ref: input.ticket.spec.fom: input.ticket.spec has no field fom (did you mean "from"?); there are: cabin, costCenter, deletionPolicy, departureDate, from, `},
		{"a mistyped field of the user", "package a\n\ndeny contains \"no\" if input.user.name == \"BOM\"\n",
			`spec.rego:3:23: undefined ref: input.user.name: input.user has no field name; there are: groups, username`},
		{"a mistyped field behind an import", "package a\n\nimport input.ticket.spec\n\ndeny contains \"no\" if spec.nubmer > 1\n",
			`spec.rego:5:23: undefined ref: input.ticket.spec.nubmer: input.ticket.spec has no field nubmer (did you mean "number"?)`},
		{"a mistyped field of a variable", "package a\n\ndeny contains \"no\" if {\n\tsome p in input.ticket.spec.passengers\n\tp.surname == \"x\"\n}\n",
			`spec.rego:5:2: undefined ref: `},
		{"a mistyped field in a template string", "package a\n\ndeny contains $\"no {input.ticket.spec.cabn}\" if input.dryRun\n",
			`spec.rego:3:21: undefined ref: input.ticket.spec.cabn: input.ticket.spec has no field cabn (did you mean "cabin"?)`},
		{"a mistyped field in object.get", "package a\n\ndeny contains \"no\" if object.get(input.ticket.spec, \"cabn\", \"\") == \"First\"\n",
			`spec.rego:3:23: object.get: input.ticket.spec has no field cabn (did you mean "cabin"?); there are: cabin, `},
		{"a mistyped path in object.get", "package a\n\ndeny contains \"no\" if object.get(input, [\"ticket\", \"spec\", \"maxPrice\", \"amount\"], 0) > 1\n",
			`spec.rego:3:23: object.get: input.ticket.spec.maxPrice has no field amount; there are: currency, minor`},
		{"a mistyped field under with", "package a\n\ndeny contains \"no\" if bad with input.ticket as input.oldTicket\n\nbad if input.ticket.spec.fom == \"x\"\n",
			`spec.rego:5:8: undefined ref: input.ticket.spec.fom`},
		{"a word that a field never holds", "package a\n\ndeny contains \"no\" if input.stage == \"Bookin\"\n",
			`spec.rego:3:23: input.stage is never "Bookin" (did you mean "Booking"?); it is one of: Admission, Booking, Audit`},
		{"a comparison of types that never meet", "package a\n\ndeny contains \"no\" if input.ticket.spec.number == \"2\"\n",
			`spec.rego:3:23: match error: a number is never equal to a string: compare values of one type`},
		{"a comparison of two objects that never meet", "package a\n\ndeny contains \"no\" if input.ticket.spec.maxPrice == {\"amount\": 1}\n",
			`spec.rego:3:23: match error: object<currency: string, minor: number> is never equal to object<amount: number>`},
		{"a word that is taken apart", "package a\n\ndeny contains \"no\" if [1, 2] == input.ticket.spec.from\n",
			`spec.rego:3:23: match error: an array is never equal to a string`},
		{"a sprintf of a bare value", "package a\n\ndeny contains sprintf(\"no %s\", input.ticket.spec.from) if input.dryRun\n",
			`spec.rego:3:15: sprintf: invalid argument(s): the second argument is a list, as in sprintf("%v of %v", [a, b])`},
		{"a sprintf of several bare values", "package a\n\ndeny contains sprintf(\"no %s %s\", input.ticket.spec.from, input.ticket.spec.to, 1) if input.dryRun\n",
			`spec.rego:3:15: sprintf: arity mismatch: the second argument is a list`},
		{"a sprintf without a text", "package a\n\ndeny contains sprintf(3, [1]) if input.dryRun\n",
			`spec.rego:3:15: sprintf: invalid argument(s): have: (number, array<number>, ???), want: (format: string, `},
		{"an argument of a wrong type", "package a\n\ndeny contains upper(3) if input.dryRun\n",
			`spec.rego:3:15: upper: invalid argument(s): have: (number, ???), want: (x: string, `},
		{"a brace that isn't closed", "package a\n\ndeny contains \"no\" if {\n\tinput.dryRun\n",
			`spec.rego:5:0: the module ends too early: a brace or bracket is not closed, or a rule is not finished`},
		{"a bracket that isn't closed", "package a\n\ndeny contains upper(\"x\"\n",
			`spec.rego:4:0: the module ends too early: a brace or bracket is not closed`},
		{"a schema that would switch the check off", "# METADATA\n# schemas:\n# - input: {type: object}\npackage a\n\ndeny contains \"no\" if input.ticket.spec.fom == \"x\"\n",
			`spec.rego:1:1: METADATA schemas isn't supported: input is always checked against the engine's own schema; remove it`},

		{"http.send", "package a\n\ndeny contains \"no\" if http.send({\"method\": \"get\", \"url\": \"https://example.com\"}).status_code == 200\n",
			"spec.rego:3:23: the built-in http.send isn't available to policies: policies have no network: what a policy may know is in input, settings go into input.parameters"},
		{"opa.runtime", "package a\n\ndeny contains \"no\" if opa.runtime().env.HOME\n",
			"spec.rego:3:23: the built-in opa.runtime isn't available to policies: policies see nothing of the program that runs them: settings go into input.parameters"},
		{"numbers.range", "package a\n\ndeny contains \"no\" if count(numbers.range(1, 1000000)) > 1\n",
			"spec.rego:3:29: the built-in numbers.range isn't available to policies: it can make a list of any length"},
		{"a look-up by name", "package a\n\ndeny contains \"no\" if net.lookup_ip_addr(\"example.com\")\n",
			"spec.rego:3:23: the built-in net.lookup_ip_addr isn't available"},
		{"the clock", "package a\n\ndeny contains \"no\" if time.now_ns() > 1\n",
			"spec.rego:3:23: the built-in time.now_ns isn't available to policies: use time.parse_rfc3339_ns(input.now)"},
		{"randomness", "package a\n\ndeny contains \"no\" if rand.intn(\"x\", 2) == 1\n",
			"spec.rego:3:23: the built-in rand.intn isn't available to policies: a decision must come out the same"},
		{"a random uuid", "package a\n\ndeny contains uuid.rfc4122(\"x\") if true\n",
			"spec.rego:3:15: the built-in uuid.rfc4122 isn't available"},
		{"a built-in in a template string", "package a\n\ndeny contains $\"{opa.runtime()}\" if true\n",
			"spec.rego:3:18: the built-in opa.runtime isn't available"},
		{"a built-in put in place by with", "package a\n\ndeny contains \"no\" if count([1]) == 2 with count as http.send\n",
			"spec.rego:3:"},
		{"print", "package a\n\ndeny contains \"no\" if print(\"x\")\n",
			"spec.rego:3:23: the built-in print isn't available to policies: remove it"},
		{"units", "package a\n\ndeny contains \"no\" if units.parse(\"1k\") > input.ticket.spec.number\n",
			"spec.rego:3:23: the built-in units.parse isn't available"},
		{"a schema fetched while it runs", "package a\n\ndeny contains \"no\" if json.verify_schema({\"$ref\": \"https://example.com\"})[0]\n",
			"spec.rego:3:23: the built-in json.verify_schema isn't available"},
		{"a parser of modules", "package a\n\ndeny contains \"no\" if rego.parse_module(\"x\", \"package x\")\n",
			"spec.rego:3:23: the built-in rego.parse_module isn't available"},
		{"data of others", "package a\n\ndeny contains \"no\" if data.kubernetes.secrets\n",
			"spec.rego:3:23: data.kubernetes.secrets isn't there: a policy sees input and its own rules"},
		{"all data", "package a\n\ndeny contains \"no\" if data[\"x\"]\n", "spec.rego:3:23: data.x isn't there"},
		{"an import of data", "package a\n\nimport data.secrets\n\ndeny contains \"no\" if secrets.x\n",
			"spec.rego:3:1: import data.secrets: there is nothing to import"},

		{"a mistyped rule", "package a\n\ndenny contains \"no\" if input.dryRun\n\ndeny contains \"no\" if input.dryRun\n",
			`spec.rego:3:1: the rule denny is never used: the engine reads deny and warn, and denny isn't used by one of them (did you mean "deny"?)`},
		{"nothing but a mistyped rule", "package a\n\ndenny contains \"no\" if input.dryRun\n",
			"spec.rego:1:1: the module has no rule that the engine reads"},
		{"a helper of a mistyped rule", fires + "\ndenny contains \"no\" if helper\n\nhelper if input.dryRun\n",
			"spec.rego:5:1: the rule denny is never used"},
		{"a complete rule", "package a\n\ndeny := \"x\"\n",
			`spec.rego:3:1: deny must be a partial set, not a single value: write deny contains msg if { ... msg := "..." }`},
		{"a boolean rule", "package a\n\ndeny if input.dryRun\n", "spec.rego:3:1: deny must be a partial set, not a single value"},
		{"a function", "package a\n\ndeny(x) if x == 1\n", "spec.rego:3:1: deny must be a partial set, not a function"},
		{"a default", "package a\n\ndefault deny := false\n", "spec.rego:3:1: deny must be a partial set, not a default"},
		{"an object", "package a\n\ndeny[x] := \"y\" if x := \"z\"\n", "spec.rego:3:1: deny must be a partial set, not an object"},
		{"a set under a name", "package a\n\ndeny.foo contains \"x\"\n", "spec.rego:3:1: deny must be a partial set, not a set under a name of its own (deny.foo)"},
		{"a complete warn", fires + "\nwarn := [\"x\"]\n", "spec.rego:5:1: warn must be a partial set"},
		{"a rule of a later version", fires + "\nhold contains \"wait\" if input.dryRun\n",
			"spec.rego:5:1: the rule hold isn't supported by this version: there are deny and warn"},
		{"a number as a message", "package a\n\ndeny contains 1 if input.dryRun\n",
			`spec.rego:3:1: an element of deny must be a text or {"msg": ..., "code": ..., "details": ...}, not number`},
		{"an array as a message", "package a\n\ndeny contains [msg] if {\n\tmsg := sprintf(\"%v\", [1])\n}\n", `spec.rego:3:1: an element of deny must be a text or`},
		{"an object as a warning", "package a\n\nwarn contains {\"msg\": \"x\"} if input.dryRun\n", `spec.rego:3:1: an element of warn must be a text, not object<msg: string>`},
		{"an object without msg", "package a\n\ndeny contains {\"code\": \"x\"} if input.dryRun\n", `spec.rego:3:1: an element of deny has no msg`},
		{"an object with a mistyped field", "package a\n\ndeny contains {\"msg\": \"x\", \"cod\": \"x\"} if input.dryRun\n",
			`spec.rego:3:1: an element of deny has the unknown field cod: there are msg, code and details (did you mean "code"?)`},
		{"an object whose msg is a number", "package a\n\ndeny contains {\"msg\": 1} if input.dryRun\n", `spec.rego:3:1: an element of deny has a msg of type number`},

		{"two packages", fires + "\npackage b\n", "spec.rego:5:1: unexpected package"},
		{"an unused variable", "package a\n\ndeny contains \"no\" if x := input.dryRun\n", "spec.rego:3:23: assigned var x unused: remove it, or write _ in its place"},
		{"an unused declaration", "package a\n\ndeny contains \"no\" if { some x; input.dryRun }\n", "spec.rego:3:25: declared var x unused: remove it"},
		{"an unsafe variable", "package a\n\ndeny contains msg if input.dryRun\n", "spec.rego:3:15: var msg is unsafe"},
		{"recursion", "package a\n\ndeny contains \"no\" if x\n\nx if y\n\ny if x\n", "spec.rego:5:1: rule data.a.x is recursive"},
		{"a number that is too big", "package a\n\ndeny contains format_int(1e999999999, 10) if input.dryRun\n", "spec.rego:3:26: number too big"},
		{"a chain of sums", "package a\n\ndeny contains \"no\" if " + strings.Repeat("1+", 5000) + "1 > 2\n", "spec.rego:3:411: nested more than 200 deep"},
		{"deep brackets", "package a\n\ndeny contains \"no\" if " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n", "spec.rego:3:"},
		{"a module that is too long", "package a\n\ndeny contains \"" + strings.Repeat("x", 256<<10) + "\"\n", "spec.rego: the module has 262172 bytes, more than the 262144 allowed"},
		{"too many rules", fires + strings.Repeat("deny contains \"no\" if input.dryRun\n", 1000), "spec.rego:503:1: the module has more than 500 rules: split it into several policies"},
		{"parameters described in the wrong place", "package a\n\n# METADATA\n# custom:\n#   parameters: {type: object}\ndeny contains \"no\" if input.dryRun\n",
			"spec.rego:3:1: METADATA custom.parameters belongs right above package"},
		{"a schema of parameters that is none", "# METADATA\n# custom:\n#   parameters: {type: objekt}\npackage a\n\ndeny contains \"no\" if input.dryRun\n",
			"spec.rego:1:1: METADATA custom.parameters: is no JSON schema: "},
		{"a schema elsewhere", "# METADATA\n# custom:\n#   parameters: {$ref: \"https://example.com/schema.json\"}\npackage a\n\ndeny contains \"no\" if input.dryRun\n",
			"spec.rego:1:1: METADATA custom.parameters: refers to https://example.com/schema.json: a schema may only refer to its own parts"},
		{"a schema in a file", "# METADATA\n# custom:\n#   parameters: {$ref: \"file:///etc/passwd\"}\npackage a\n\ndeny contains \"no\" if input.dryRun\n",
			"spec.rego:1:1: METADATA custom.parameters: refers to file:///etc/passwd"},
		{"a schema that is itself", "# METADATA\n# custom:\n#   parameters: {$ref: \"#\"}\npackage a\n\ndeny contains \"no\" if input.dryRun\n",
			"spec.rego:1:1: METADATA custom.parameters: refers to #, which isn't there or refers to itself"},
		{"a schema that holds itself", "# METADATA\n# custom:\n#   parameters: {type: object, properties: {a: {$ref: \"#\"}}}\npackage a\n\ndeny contains \"no\" if input.dryRun\n",
			"spec.rego:1:1: METADATA custom.parameters: # refers to itself, which isn't supported"},
		{"definitions in a circle", "# METADATA\n# custom:\n#   parameters: {properties: {a: {$ref: \"#/$defs/b\"}}, $defs: {b: {items: {$ref: \"#/$defs/c\"}}, c: {items: {$ref: \"#/$defs/b\"}}}}\npackage a\n\ndeny contains \"no\" if input.dryRun\n",
			"spec.rego:1:1: METADATA custom.parameters: #/$defs/"},
		{"a schema that is nested too deep", "# METADATA\n# custom:\n#   parameters: " + strings.Repeat("{items: ", 40) + "{}" + strings.Repeat("}", 40) + "\npackage a\n\ndeny contains \"no\" if input.dryRun\n",
			"spec.rego:1:1: METADATA custom.parameters: the schema is nested more than 32 deep"},
		{"a definition that isn't there", "# METADATA\n# custom:\n#   parameters: {properties: {a: {$ref: \"#/$defs/b\"}}}\npackage a\n\ndeny contains \"no\" if input.dryRun\n",
			"spec.rego:1:1: METADATA custom.parameters: refers to #/$defs/b, which isn't there"},
		{"a parameter that the schema lacks", "# METADATA\n# custom:\n#   parameters: {type: object, properties: {maximum: {type: integer}}}\npackage a\n\ndeny contains \"no\" if input.ticket.spec.number > input.parameters.maxmum\n",
			`spec.rego:6:50: undefined ref: input.parameters.maxmum: input.parameters has no field maxmum (did you mean "maximum"?); there are: maximum`},
		{"a parameter of a policy that has none", "package a\n\ndeny contains \"no\" if input.ticket.spec.number > input.parameters.max\n",
			`spec.rego:3:50: input.parameters.max: the policy has no schema for its parameters: describe them in METADATA above package (custom.parameters)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := validate(t.Context(), regoPolicy("p", c.rego))
			var compile *CompileError
			if !errors.As(err, &compile) {
				t.Fatalf("got %v, want a CompileError", err)
			}
			if got := compile.Problems[0].String(); !strings.HasPrefix(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", err, c.want)
			}
		})
	}
}

// TestEngineRefusesBareOptionalFields is about messages: one that formats what isn't there is undefined, and the rule
// doesn't fire.
func TestEngineRefusesBareOptionalFields(t *testing.T) {
	for _, c := range []struct {
		name, rule string
		want       string // "" when the rule is fine
	}{
		{"in sprintf", `deny contains msg if {
	input.ticket.spec.number > 1
	msg := sprintf("no %s", [input.ticket.spec.cabin])
}`, `spec.rego:5:27: input.ticket.spec.cabin may be absent, and then the message is undefined and deny doesn't fire: write object.get(input.ticket.spec, "cabin", "none") or a template string $"... {input.ticket.spec.cabin}"`},
		{"in the head", `deny contains sprintf("no %s", [input.ticket.spec.cabin]) if input.ticket.spec.number > 1`, `spec.rego:3:33: input.ticket.spec.cabin may be absent`},
		{"as the head", `deny contains input.ticket.spec.cabin if input.ticket.spec.number > 1`, `spec.rego:3:15: input.ticket.spec.cabin may be absent`},
		{"in an object", `deny contains {"msg": "no", "code": input.ticket.spec.costCenter} if input.ticket.spec.number > 1`, `spec.rego:3:37: input.ticket.spec.costCenter may be absent`},
		{"in concat", `deny contains concat(" ", ["no", input.ticket.spec.cabin]) if input.ticket.spec.number > 1`, `spec.rego:3:34: input.ticket.spec.cabin may be absent`},
		{"in format_int", `deny contains format_int(input.ticket.spec.maxPrice.minor, 10) if input.ticket.spec.number > 1`, `spec.rego:3:26: input.ticket.spec.maxPrice may be absent`},
		{"of an offer", `warn contains sprintf("%v", [input.offer.price.minor]) if input.ticket.spec.number > 1`, `spec.rego:3:30: input.offer may be absent, and then the message is undefined and warn doesn't fire`},
		{"a label", `deny contains sprintf("%v", [input.ticket.metadata.labels.team]) if input.ticket.spec.number > 1`, `spec.rego:3:30: input.ticket.metadata.labels.team may be absent`},
		{"a fixed passenger", `deny contains sprintf("%v", [input.ticket.spec.passengers[0].givenName]) if input.ticket.spec.number > 1`, `spec.rego:3:30: input.ticket.spec.passengers[0] may be absent`},
		{"by a variable", `deny contains msg if {
	input.ticket.spec.number > 1
	cabin := input.ticket.spec.cabin
	msg := sprintf("no %s", [cabin])
}`, `spec.rego:5:11: input.ticket.spec.cabin may be absent`},
		{"by a variable of the spec", `deny contains msg if {
	spec := input.ticket.spec
	spec.number > 1
	msg := sprintf("no %s", [spec.cabin])
}`, `spec.rego:6:27: input.ticket.spec.cabin may be absent`},
		{"by several variables", `deny contains msg if {
	input.ticket.spec.number > 1
	cabin := lower(input.ticket.spec.cabin)
	words := ["no", cabin]
	msg := concat(" ", words)
}`, `spec.rego:5:17: input.ticket.spec.cabin may be absent`},
		{"by an import", "import input.ticket.spec\n\n" + `deny contains sprintf("no %s", [spec.cabin]) if spec.number > 1`, `spec.rego:5:33: input.ticket.spec.cabin may be absent`},
		{"by a visited passenger", `deny contains msg if {
	some p in input.ticket.spec.passengers
	msg := sprintf("no %s", [p.birthDate])
}`, `spec.rego:5:27: input.ticket.spec.passengers`},
		{"by a helper rule", `deny contains sprintf("no %s", [cabin]) if input.ticket.spec.number > 1

cabin := input.ticket.spec.cabin`, `spec.rego:5:10: input.ticket.spec.cabin may be absent`},
		{"by a helper function", `deny contains sprintf("no %s", [cabin(input.ticket)]) if input.ticket.spec.number > 1

cabin(ticket) := ticket.spec.cabin`, `spec.rego:5:18: input.ticket.spec.cabin may be absent`},
		{"by the variable of a template string", `deny contains msg if {
	input.ticket.spec.number > 1
	cabin := input.ticket.spec.cabin
	msg := $"no {cabin}"
}`, `spec.rego:5:11: input.ticket.spec.cabin may be absent`},
		{"by the third operand", `deny contains msg if {
	input.ticket.spec.number > 1
	sprintf("no %s", [input.ticket.spec.cabin], msg)
}`, `spec.rego:5:20: input.ticket.spec.cabin may be absent`},
		{"of date parts", `deny contains msg if {
	input.ticket.spec.number > 1
	[year, _, _] := split(input.ticket.spec.departureDate, "-")
	msg := sprintf("no %s", [year])
}`, `spec.rego:5:24: input.ticket.spec.departureDate may be absent`},
		{"gathered in another set", `deny contains msgs[_]

msgs contains sprintf("no %s", [input.ticket.spec.cabin]) if input.ticket.spec.number > 1`, `spec.rego:5:33: input.ticket.spec.cabin may be absent`},
		{"gathered in another set and picked", `deny contains msg if {
	input.ticket.spec.number > 1
	some msg in msgs
}

msgs contains sprintf("no %s", [input.ticket.spec.cabin])`, `spec.rego:8:33: input.ticket.spec.cabin may be absent`},
		{"values in another set are fine", `deny contains sprintf("no %s", [cabin]) if some cabin in cabins

cabins contains input.ticket.spec.cabin`, ""},
		{"by a name for the field", `deny contains msg if {
	input.ticket.spec.number > 1
	field := "cabin"
	msg := sprintf("no %s", [input.ticket.spec[field]])
}`, `spec.rego:6:27: input.ticket.spec.cabin may be absent`},
		{"guarded by not", `deny contains msg if {
	not input.ticket.spec.cabin
	msg := sprintf("no %s", [input.ticket.spec.cabin])
}`, `spec.rego:5:27: input.ticket.spec.cabin may be absent`},

		{"object.get is a way out", `deny contains sprintf("no %s", [object.get(input.ticket.spec, "cabin", "none")]) if input.ticket.spec.number > 1`, ""},
		{"object.get by a path is a way out", `deny contains sprintf("no %s", [object.get(input, ["oldTicket", "spec", "cabin"], "none")]) if input.ticket.spec.number > 1`, ""},
		{"object.get of what may be absent isn't", `deny contains sprintf("no %s", [object.get(input.oldTicket.spec, "cabin", "none")]) if input.ticket.spec.number > 1`, `spec.rego:3:44: input.oldTicket may be absent`},
		{"a template string is a way out", `deny contains $"no {input.ticket.spec.cabin}" if input.ticket.spec.number > 1`, ""},
		{"a comprehension is a way out", `deny contains msg if {
	input.ticket.spec.number > 1
	cabins := [c | c := input.ticket.spec.cabin]
	msg := sprintf("no %v", [cabins])
}`, ""},
		{"a helper with a default is a way out", `deny contains sprintf("no %s", [cabin]) if input.ticket.spec.number > 1

default cabin := "none"

cabin := input.ticket.spec.cabin`, ""},
		{"a rule that asks for the field is meant for tickets that have it", `deny contains msg if {
	input.ticket.spec.maxPrice.minor > 100
	msg := sprintf("%d is too much", [input.ticket.spec.maxPrice.minor])
}`, ""},
		{"a rule that asks by a variable too", `deny contains msg if {
	cabin := input.ticket.spec.cabin
	cabin != "Economy"
	msg := sprintf("%s is too good", [cabin])
}`, ""},
		{"a rule that asks by an alias too", `deny contains msg if {
	spec := input.ticket.spec
	spec.cabin != "Economy"
	msg := sprintf("%s is too good", [input.ticket.spec.cabin])
}`, ""},
		{"a visited collection may be absent", `deny contains msg if {
	some p in input.oldTicket.spec.passengers
	msg := sprintf("%s", [p.givenName])
}`, ""},
		{"required fields are there", `deny contains msg if {
	msg := sprintf("%s %d %s", [input.ticket.spec.from, input.ticket.spec.number, input.route.origin.iata])
}`, ""},
		{"a visited label is there", `deny contains msg if {
	some key, value in input.namespace.labels
	msg := sprintf("%s %s", [key, value])
}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := validate(t.Context(), regoPolicy("p", "package a\n\n"+c.rule+"\n"))
			if c.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if got := fmt.Sprint(err); !strings.HasPrefix(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", got, c.want)
			}
		})
	}
}

func TestEngineRefusesBareParametersThatTheSchemaLeavesOpen(t *testing.T) {
	for _, schema := range []string{"{}", "{required: [other]}", "{anyOf: [{properties: {level: {type: string}}}]}", "{type: [object, array]}"} {
		rego := "# METADATA\n# custom:\n#   parameters: {type: object, required: [open], properties: {open: " + schema + "}}\npackage a\n\n" +
			"deny contains sprintf(\"%v\", [input.parameters.open.level]) if input.ticket.spec.number > 1\n"
		err := validate(t.Context(), withParameters(regoPolicy("a", rego), `{"open": {}}`))
		if err == nil || !strings.Contains(err.Error(), "spec.rego:6:30: input.parameters.open.level may be absent") {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// What the type checker can't see: the arguments of functions, and what every visits.
func TestEngineRefusesFieldsThatFunctionsAndEveryCanNeverFind(t *testing.T) {
	for _, c := range []struct{ name, rules, want string }{
		{"an argument", "deny contains \"x\" if f(input.ticket)\n\nf(t) if t.spec.nmber > 1",
			`spec.rego:5:9: input.ticket.spec has no field nmber (did you mean "number"?); there are: cabin, costCenter,`},
		{"the whole input", "deny contains \"x\" if f(input)\n\nf(i) if i.tickt.spec.number > 1", `spec.rego:5:9: input has no field tickt (did you mean "ticket"?)`},
		{"a name for an argument", "deny contains \"x\" if f(input.ticket)\n\nf(t) if {\n\ts := t.spec\n\ts.nmber > 1\n}", `spec.rego:7:2: input.ticket.spec has no field nmber`},
		{"an argument that is handed on", "deny contains \"x\" if f(input)\n\nf(i) if g(i.ticket)\n\ng(t) if t.spce.number > 1", `spec.rego:7:9: input.ticket has no field spce`},
		{"a result", "deny contains \"x\" if f(input.route) == \"LHR\"\n\nf(r) := r.origin.iatta", `spec.rego:5:9: input.route.origin has no field iatta`},
		{"else", "deny contains \"x\" if f(input.route) == \"LHR\"\n\nf(r) := r.origin.iata if r.international\n\nelse := r.origen.iata", `spec.rego:7:9: input.route has no field origen`},
		{"a function in a message", "deny contains sprintf(\"%s\", [f(input.route)])\n\nf(r) := r.origin.iatta", `spec.rego:5:9: input.route.origin has no field iatta`},
		{"a number that is written as a text", "deny contains \"x\" if input.ticket.spec.number > \"1\"", `spec.rego:3:22: > compares a number with a string, which comes out the same for every ticket`},
		{"a text compared with a number", "deny contains \"x\" if 18 >= input.ticket.spec.costCenter", `>= compares a number with a string`},
		{"names for both", "deny contains \"x\" if {\n\tn := input.ticket.spec.number\n\tmost := \"1\"\n\tn > most\n}", `spec.rego:6:2: > compares a number with a string`},
		{"an amount of money", "deny contains \"x\" if input.ticket.spec.maxPrice > 100", `> compares an object with a number`},
		{"an order in a function", "deny contains \"x\" if f(input.ticket.spec)\n\nf(s) if s.number > \"1\"", `spec.rego:5:9: > compares a number with a string`},
		{"an order in a comprehension", "deny contains \"x\" if count([1 | input.ticket.spec.number > \"1\"]) == 1", `> compares a number with a string`},
		{"dates are texts and have an order", "deny contains \"x\" if input.ticket.spec.departureDate < \"2027-01-01\"", ""},
		{"numbers have an order", "deny contains \"x\" if {\n\tn := input.ticket.spec.number\n\tn + 1 > 3\n\tn > input.route.distanceKm\n}", ""},
		{"a name for a mistyped field", "deny contains \"x\" if { k := \"tickt\"; input[k].spec }", `spec.rego:3:38: input has no field tickt`},
		{"a word in a list", "deny contains \"x\" if input.ticket.spec.cabin in {\"Business\", \"first\"}", `spec.rego:3:22: input.ticket.spec.cabin is never "first" (did you mean "First"?)`},
		{"a word in no list", "deny contains \"x\" if not input.stage in [\"booking\"]", `input.stage is never "booking" (did you mean "Booking"?)`},
		{"every", "deny contains \"x\" if every p in input.ticket.spec.passengers { p.givenNam == \"x\" }", `spec.rego:3:64: input.ticket.spec.passengers[_] has no field givenNam`},
		{"every in a function", "deny contains \"x\" if f(input.ticket)\n\nf(t) if every p in t.spec.passengers { p.givenNam == \"x\" }", `spec.rego:5:40: input.ticket.spec.passengers[_] has no field givenNam`},
		{"a passenger in a function", "deny contains \"x\" if f(input.ticket)\n\nf(t) if {\n\tsome p in t.spec.passengers\n\tp.givenNam == \"x\"\n}", `has no field givenNam`},

		{"a function for values of two kinds is fine", "deny contains \"x\" if { f(input.ticket.spec) == \"x\"; f(input.route) == \"x\" }\n\nf(x) := x.cabin\n\nf(x) := x.origin.iata", ""},
		{"a label may have any name", "deny contains \"x\" if f(input.ticket.metadata)\n\nf(m) if m.labels.anything == \"x\"", ""},
		{"a value that isn't input's may have any field", "deny contains \"x\" if f({\"anything\": 2})\n\nf(x) if x.anything == 1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := validate(t.Context(), regoPolicy("a", "package a\n\n"+c.rules+"\n"))
			if c.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got\n  %v\nwant\n  %s", err, c.want)
			}
		})
	}
}
