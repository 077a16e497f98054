package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/santhosh-tekuri/jsonschema/v6"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

func mustParseBody(t *testing.T, query string) ast.Body {
	t.Helper()
	body, err := ast.ParseBody(query)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// inputOf is the input document of a request as plain JSON.
func inputOf(tb testing.TB, r Request) any {
	tb.Helper()
	fields, err := buildInput(r)
	if err != nil {
		tb.Fatal(err)
	}
	v, err := ast.JSON(ast.NewObject(append(fields, field{ast.InternedTerm("parameters"), ast.ObjectTerm()})...))
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func schemaOf(tb testing.TB) (map[string]any, *jsonschema.Schema) {
	tb.Helper()
	schema, err := schemaOfInput(nil)
	if err != nil {
		tb.Fatal(err)
	}
	compiled, err := compileSchema(schema)
	if err != nil {
		tb.Fatal(err)
	}
	return schema, compiled
}

func TestInputIsWhatItsSchemaSays(t *testing.T) {
	schema, compiled := schemaOf(t)
	seen := map[string]bool{}
	for _, s := range samples() {
		in := inputOf(t, s.request)
		if err := compiled.Validate(in); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		walkJSON(in, "input", seen)
	}
	for _, path := range schemaPaths(schema, "input") {
		if !seen[path] {
			t.Errorf("the schema has %s, and no sample does", path)
		}
	}
}

func walkJSON(v any, path string, seen map[string]bool) {
	seen[path] = true
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			walkJSON(member, path+"."+k, seen)
		}
	case []any:
		for _, item := range v {
			walkJSON(item, path+"[]", seen)
		}
	}
}

func schemaPaths(schema map[string]any, path string) []string {
	paths := []string{path}
	props, _ := schema["properties"].(map[string]any)
	for name, p := range props {
		paths = append(paths, schemaPaths(p.(map[string]any), path+"."+name)...)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		paths = append(paths, schemaPaths(items, path+"[]")...)
	}
	slices.Sort(paths)
	return paths
}

func TestInputSchemaExplainsEveryField(t *testing.T) {
	var check func(schema map[string]any, path string)
	check = func(schema map[string]any, path string) {
		title, _ := schema["title"].(string)
		description, _ := schema["description"].(string)
		if title == "" || !strings.HasSuffix(description, ".") {
			t.Errorf("%s: title %q, description %q", path, title, description)
		}
		props, _ := schema["properties"].(map[string]any)
		if props != nil && schema["additionalProperties"] != false {
			t.Errorf("%s takes other fields", path)
		}
		for name, p := range props {
			check(p.(map[string]any), path+"."+name)
		}
		if items, ok := schema["items"].(map[string]any); ok {
			check(items, path+"[]")
		}
	}
	var schema map[string]any
	if err := json.Unmarshal(InputSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	check(schema, "input")
}

func TestInputOfASmallTicketHasTheDefaults(t *testing.T) {
	r := request()
	r.Ticket.Spec.Number = 0
	r.Ticket.Annotations = map[string]string{lastApplied: "{}", "flights.com/requested-by": "asha"}
	r.User.Groups = nil
	want := map[string]any{
		"metadata": map[string]any{
			"name": "my-flight-ticket", "namespace": "travel", "labels": map[string]any{},
			"annotations": map[string]any{"flights.com/requested-by": "asha"},
		},
		"spec": map[string]any{
			"from": "Mumbai", "to": "London", "number": json.Number("1"), "passengers": []any{},
			"deletionPolicy": "Cancel", "suspend": false,
		},
	}
	in := inputOf(t, r).(map[string]any)
	if diff := cmp.Diff(want, in["ticket"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"username": "asha", "groups": []any{}}, in["user"]); diff != "" {
		t.Error(diff)
	}
	if in["now"] != "2027-03-01T09:00:00Z" {
		t.Errorf("now is %v", in["now"])
	}
}

func TestAnOldPriceThatCannotBeReadIsLeftOut(t *testing.T) {
	r := request()
	r.Operation, r.OldTicket = flightsv1.OperationUpdate, r.Ticket.DeepCopy()
	r.OldTicket.Spec.MaxPrice = &flightsv1.Money{Amount: "1", Currency: "XXQ"}
	old := inputOf(t, r).(map[string]any)["oldTicket"].(map[string]any)["spec"].(map[string]any)
	if _, there := old["maxPrice"]; there || old["from"] != "Mumbai" {
		t.Errorf("got %v", old)
	}
}

// Every test in this table is a way to give parameters.
func TestParametersAreCheckedAgainstTheirSchema(t *testing.T) {
	const rego = `# METADATA
# custom:
#   parameters:
#     type: object
#     required: [airports]
#     $defs:
#       code: {type: string, pattern: "^[A-Z]{3}$"}
#     properties:
#       airports: {type: array, items: {$ref: "#/$defs/code"}}
#       limit: {type: integer, default: 2}
#       nested: {type: object, properties: {on: {type: boolean, default: true}}}
package a

deny contains $"{input.parameters.airports} {input.parameters.nested.on}" if input.ticket.spec.number > input.parameters.limit
`
	for _, c := range []struct{ name, parameters, want string }{
		{"good ones", `{"airports": ["BOM"], "nested": {}}`, ""},
		{"none where some are required", ``, "spec.parameters: missing property 'airports'"},
		{"null", `null`, "spec.parameters: missing property 'airports'"},
		{"an element of a wrong form", `{"airports": ["BOM", "mumbai"]}`, "spec.parameters.airports[1]: 'mumbai' does not match pattern"},
		{"an element of a wrong type", `{"airports": [1]}`, "spec.parameters.airports[0]: got number, want string"},
		{"a mistyped one", `{"airports": [], "limmit": 2}`, "spec.parameters: there is no \"limmit\" (did you mean \"limit\"?)"},
		{"a mistyped one further in", `{"airports": [], "nested": {"onn": true}}`, "spec.parameters.nested: there is no \"onn\" (did you mean \"on\"?)"},
		{"a list", `[]`, "spec.parameters: must be an object"},
		{"a broken text", `{`, "spec.parameters: is no JSON: unexpected EOF"},
		{"two texts", `{} {}`, "spec.parameters: is no JSON: more than one JSON value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := validate(t.Context(), withParameters(regoPolicy("a", rego), c.parameters))
			if c.want == "" && err != nil || !strings.HasPrefix(fmt.Sprint(err), c.want) && c.want != "" {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	e := NewEngine()
	mustSet(t, e, withParameters(regoPolicy("a", rego), `{"airports": ["BOM"]}`))
	if d := decide(t, e, request()); !d.Allowed() {
		t.Errorf("the default isn't used: %+v", d)
	}
	if d := decide(t, e, requestForFive()); d.Allowed() {
		t.Error("the default isn't used")
	}
}

func TestParametersKeepEveryDigit(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, withParameters(regoPolicy("a", `# METADATA
# custom:
#   parameters: {type: object, required: [n], properties: {n: {type: integer}}}
package a

deny contains $"{input.parameters.n}"
`), `{"n": 9007199254740993}`))
	if diff := cmp.Diff([]string{"a: 9007199254740993"}, denied(decide(t, e, request()))); diff != "" {
		t.Error(diff)
	}
}

func TestParametersWithoutASchemaAreRefused(t *testing.T) {
	err := validate(t.Context(), withParameters(regoPolicy("a", denyMany), `{"max": 1}`))
	if !strings.HasPrefix(fmt.Sprint(err), "spec.parameters: the policy takes no parameters: ") {
		t.Errorf("got %v", err)
	}
	if err := validate(t.Context(), withParameters(regoPolicy("a", denyMany), `{}`)); err != nil {
		t.Errorf("an empty object: %v", err)
	}
}

func TestLibraryNamesAreChecked(t *testing.T) {
	for name, want := range map[string]string{
		"route-alowlist": `spec.library: no policy named "route-alowlist" is shipped (did you mean "route-allowlist"?); there are: advance-purchase, quota-budget-per-cost-center, `,
		"quantum":        `spec.library: no policy named "quantum" is shipped; there are: advance-purchase, `,
		"../policies":    `spec.library: no policy named "../policies" is shipped; `,
	} {
		p := regoPolicy("a", "")
		p.Spec.Library = name
		if err := validate(t.Context(), p); !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	both := libraryPolicy("seats-per-ticket")
	both.Spec.Rego = denyMany
	for _, p := range []*flightsv1.FlightPolicy{both, regoPolicy("a", "")} {
		if err := validate(t.Context(), p); !strings.HasPrefix(fmt.Sprint(err), "spec: set exactly one of library") {
			t.Errorf("got %v", err)
		}
	}
}

func TestCompileErrorsAreBoundedSortedAndTellEachThingOnce(t *testing.T) {
	var problems []Problem
	for i := range 30 {
		problems = append(problems, Problem{"spec.rego", 30 - i, 1, "wrong"}, Problem{"spec.rego", 30 - i, 1, "wrong"})
	}
	lines := strings.Split(compileError(problems).Error(), "\n")
	if len(lines) != maxProblems+1 || lines[0] != "spec.rego:1:1: wrong" || lines[maxProblems] != "spec.rego: and 10 more; mend these first" {
		t.Errorf("got %d lines: %q ... %q", len(lines), lines[0], lines[len(lines)-1])
	}
	if compileError(nil) != nil {
		t.Error("no problems are an error")
	}
}

func TestAllProblemsAreToldAtOnce(t *testing.T) {
	p := regoPolicy("a", "package a\n\ndeny contains \"no\" if input.ticket.spec.fom == http.send({})\n\ndenny contains \"x\"\n\nwarn := 1\n")
	p.Spec.Match.Namespaces = []string{"a*b"}
	var compile *CompileError
	if err := validate(t.Context(), withParameters(p, `{"a": 1}`)); !errors.As(err, &compile) || len(compile.Problems) != 6 {
		t.Errorf("got %v", err)
	}
}

func TestTheCompilerIsGivenUpOnAndItsPanicsAreProblems(t *testing.T) {
	text := moduleText{field: specRego}
	release := make(chan struct{})
	defer close(release)
	_, problems := withinBudget(t.Context(), time.Millisecond, text, func() (executable, []Problem) { <-release; return executable{}, nil })
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "takes more than 1ms to compile") {
		t.Errorf("got %v", problems)
	}
	_, problems = withinBudget(t.Context(), time.Minute, text, func() (executable, []Problem) { panic("index out of range") })
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "the Rego compiler failed on this module (index out of range)") {
		t.Errorf("got %v", problems)
	}
}

func FuzzValidateNeverPanics(f *testing.F) {
	f.Add(denyMany, "{}")
	f.Add(poison, "null")
	f.Add(broken, "{\"a\": 1}")
	f.Add("# METADATA\n# custom:\n#   parameters: {$ref: \"#\"}\npackage a\ndeny contains $\"{input.parameters.a.b[_]}\"", `{"a": {}}`)
	f.Add("package a\n\ndeny contains msg if { x := input.ticket.spec; y := x; msg := f(y, [z | some z in x]) }\n\nf(a, b) := sprintf(\"%v\", [a.cabin, b[0]])\n", "{}")
	for _, name := range Library() {
		source, _ := LibrarySource(name)
		f.Add(source, libraryParameters[name])
	}
	f.Fuzz(func(t *testing.T, rego, parameters string) {
		err := validate(t.Context(), withParameters(regoPolicy("a", rego), parameters))
		var compile *CompileError
		if err != nil && !errors.As(err, &compile) {
			t.Errorf("got %T", err)
		}
		if err != nil && strings.Contains(err.Error(), "the Rego compiler failed") {
			t.Error(err)
		}
	})
}

func FuzzInputFollowsItsSchema(f *testing.F) {
	f.Add("Mumbai", "2027-03-14", "1.50", "EUR", "team", int32(2), false)
	f.Add("\xff", "", "0", "JPY", "\x00", int32(-1), true)
	_, compiled := schemaOf(f)
	f.Fuzz(func(t *testing.T, place, date, amount, currency, label string, number int32, old bool) {
		r := request()
		r.Ticket.Spec.From, r.Ticket.Spec.CostCenter, r.Ticket.Spec.Number = place, label, number
		r.Ticket.Labels = map[string]string{label: place}
		r.Ticket.Spec.Passengers = []flightsv1.Passenger{{GivenName: place, FamilyName: label}}
		r.Ticket.Spec.MaxPrice = &flightsv1.Money{Amount: amount, Currency: currency}
		if len(date) == 10 && strings.Trim(date, "0123456789") == "--" {
			r.Ticket.Spec.DepartureDate = "2027-03-14"
		}
		if old {
			r.OldTicket = r.Ticket.DeepCopy()
			r.Ticket.Spec.MaxPrice = nil
		}
		if _, err := buildInput(r); err != nil {
			return // a price that is none
		}
		if err := compiled.Validate(inputOf(t, r)); err != nil {
			t.Error(err)
		}
	})
}

// Helpers that call helpers several times each: what looks into them must not take more time than the compiler itself.
func TestHelpersThatMultiplyAreCompiledInTime(t *testing.T) {
	var rego strings.Builder
	rego.WriteString("package a\n\ndeny contains f0(input.ticket)\n")
	for i := range 12 {
		calls := strings.Repeat(fmt.Sprintf("f%d(t), ", i+1), 20)
		fmt.Fprintf(&rego, "\nf%d(t) := concat(\"\", [%s]) if t.spec.number < 0\n", i, strings.TrimSuffix(calls, ", "))
	}
	rego.WriteString("\nf12(t) := t.spec.from\n")
	if err := validate(t.Context(), regoPolicy("a", rego.String())); err != nil {
		t.Error(err)
	}
}

// Names that stand for names many times over.
func TestNamesThatMultiplyAreCompiledInTime(t *testing.T) {
	var rego strings.Builder
	rego.WriteString("package a\n\ndeny contains n0 if {\n\tn0 = input.user.username\n")
	for i := range 9 {
		rego.WriteString(strings.Repeat(fmt.Sprintf("\tn%d = n%d\n", i, i+1), 30))
	}
	rego.WriteString("\tn9.x = n9\n}\n")
	if err := validate(t.Context(), regoPolicy("a", rego.String())); err != nil && strings.Contains(err.Error(), "takes more than") {
		t.Error(err)
	}
}
