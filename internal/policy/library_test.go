package policy

import (
	"bytes"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/tester"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/policies"
)

// libraryParameters are parameters that each shipped policy takes.
var libraryParameters = map[string]string{
	"advance-purchase": `{"minDays": 14, "maxDays": 330}`,
	"route-allowlist":  `{"routes": [{"from": {"cities": ["Mumbai, IN"]}, "to": {"countries": ["GB"]}}]}`,
	"route-denylist":   `{"routes": [{"from": {"airports": ["BOM"]}, "to": {"countries": ["RU"]}}], "directions": "One"}`,
	"seats-per-ticket": `{"max": 5}`,

	"quota-budget-per-cost-center":    `{"budgets": {"4711": 1000000}, "currency": "EUR", "period": "Month"}`,
	"quota-seats-per-namespace-month": `{"max": 20, "warnAt": 16}`,
	"quota-seats-per-route-day":       `{"max": 9}`,
	"quota-tickets-per-requester":     `{"max": 3}`,
	"quota-travellers-per-flight":     `{"max": 3}`,
}

func libraryPolicy(name string) *flightsv1.FlightPolicy {
	p := regoPolicy(name, "")
	p.Spec.Library = name
	return withParameters(p, libraryParameters[name])
}

func TestLibraryPoliciesAreComplete(t *testing.T) {
	if got, want := len(Library()), len(libraryParameters); got != want {
		t.Errorf("%d policies are shipped, %d are tested: %v", got, want, Library())
	}
	for _, name := range Library() {
		t.Run(name, func(t *testing.T) {
			if err := NewEngine(Rules()...).Validate(t.Context(), libraryPolicy(name)); err != nil {
				t.Errorf("the engine refuses it: %v", err)
			}
			module := parseLibrary(t, name+"/"+name+".rego")
			if len(module.Annotations) == 0 || module.Annotations[0].Title == "" || module.Annotations[0].Description == "" {
				t.Error("METADATA above package has no title or no description")
			}
			tests := parseLibrary(t, name+"/"+name+"_test.rego")
			for rule, kind := range map[string]string{"": "test_allow", "deny": "test_deny", "quota": "test_claim"} {
				if hasRule(module, rule) && !hasRule(tests, kind) {
					t.Errorf("no test is named %s...", kind)
				}
			}
		})
	}
}

func hasRule(m *ast.Module, prefix string) bool {
	for _, r := range m.Rules {
		if strings.HasPrefix(ruleName(r), prefix) {
			return true
		}
	}
	return false
}

func TestLibraryIsFormatted(t *testing.T) {
	for _, file := range libraryFiles(t) {
		source, err := fs.ReadFile(policies.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		formatted, err := format.SourceWithOpts(file, source, format.Opts{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(source, formatted) {
			t.Errorf("%s isn't as opa fmt writes it; it should be:\n%s", file, formatted)
		}
	}
}

// TestLibraryRego runs the Rego tests, and fails unless they reach every expression of every policy.
func TestLibraryRego(t *testing.T) {
	modules, shipped := map[string]*ast.Module{}, map[string]*ast.Module{}
	for _, file := range libraryFiles(t) {
		modules[file] = parseLibrary(t, file)
		if !strings.HasSuffix(file, "_test.rego") {
			shipped[file] = modules[file]
		}
	}
	coverage := cover.New()
	runner := tester.NewRunner().SetModules(modules).SetCoverageQueryTracer(coverage).RaiseBuiltinErrors(true).
		SetTimeout(time.Minute)
	results, err := runner.RunTests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for r := range results {
		ran++
		if !r.Pass() {
			t.Errorf("%v: %s.%s: failed (%v)", r.Location, r.Package, r.Name, r.Error)
		}
	}
	if ran < 4*len(shipped) {
		t.Errorf("only %d Rego tests ran", ran)
	}
	for file, report := range coverage.Report(shipped).Files {
		if len(report.NotCovered) > 0 {
			t.Errorf("%s: no test reaches these lines: %v", file, report.NotCovered)
		}
	}
}

func parseLibrary(t *testing.T, file string) *ast.Module {
	t.Helper()
	source, err := fs.ReadFile(policies.FS, file)
	if err != nil {
		t.Fatal(err)
	}
	module, err := ast.ParseModuleWithOpts(file, string(source), ast.ParserOptions{ProcessAnnotation: true, RegoVersion: ast.RegoV1})
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func libraryFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(policies.FS, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && path.Ext(p) == ".rego" {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestRoutesNamePlacesAsTicketsHaveThem(t *testing.T) {
	for _, c := range []struct{ end, want string }{
		{`{"countries": ["GB"], "cities": ["Mumbai, IN", "new york, US"], "airports": ["LHR", "QZQ"]}`, ""},
		{`{"countries": ["UK"]}`, `spec.parameters.routes[0].to.countries[0]: 'UK' is not valid flights-country: it is no ISO 3166-1 code: write "GB" (ISO 3166-1 alpha-2 codes, as in GB)`},
		{`{"countries": ["XQ"]}`, `no ISO 3166-1 code of a country that we know`},
		{`{"cities": ["Bombay, IN"]}`, `spec.parameters.routes[0].to.cities[0]: 'Bombay, IN' is not valid flights-city: tickets have this city by another name: write "Mumbai, IN"`},
		{`{"cities": ["Heathrow, GB"]}`, `it is an airport of "London, GB", write that, or LHR under airports`},
		{`{"cities": ["Lundon, GB"]}`, `tickets never have this city: "Lundon, GB" is not a place we know`},
		{`{"airports": ["LON"]}`, `it stands for a city, write its airports (LCY, LGW, LHR`},
		{`{"airports": ["lhr"]}`, `'lhr' does not match pattern '^[A-Z]{3}$' (IATA codes of airports, as in LHR.`},
		{`{"citys": ["London, GB"]}`, `spec.parameters.routes[0].to: there is no "citys" (did you mean "cities"?); there are: airports, cities, countries (Any of the airports, cities and countries)`},
	} {
		for _, name := range []string{"route-allowlist", "route-denylist"} {
			p := withParameters(libraryPolicy(name), `{"routes": [{"to": `+c.end+`}]}`)
			err := validate(t.Context(), p)
			if (err == nil) != (c.want == "") || c.want != "" && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s with %s: %v", name, c.end, err)
			}
		}
	}
	stored := withParameters(libraryPolicy("route-denylist"), `{"routes": [{"to": {"cities": ["Bombay, IN"]}}]}`)
	if err := NewEngine().Set(t.Context(), stored); err != nil {
		t.Errorf("a stored policy no longer serves because the table has changed: %v", err)
	}
}

func TestAWrongParameterIsToldInWords(t *testing.T) {
	for _, c := range []struct{ library, parameters, want string }{
		{"seats-per-ticket", `{"maximum": 2, "max": 1}`, `spec.parameters: there is no "maximum"; there are: max`},
		{"seats-per-ticket", `{"max": 9}`, `spec.parameters.max: maximum: got 9, want 5 (The most seats that one ticket may ask for)`},
		{"route-denylist", `{"routes": [{"from": {"cities": ["London"]}}]}`, `(City and country, as in "London, GB"; all airports of the city)`},
	} {
		p := libraryPolicy(c.library)
		if err := validate(t.Context(), withParameters(p, c.parameters)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: got %v", c.library, c.parameters, err)
		}
	}
	schema := "# METADATA\n# custom:\n#   parameters: {type: objct}\npackage a\n\ndeny contains \"x\" if input.ticket.spec.number > 1\n"
	const want = "spec.rego:1:1: METADATA custom.parameters: is no JSON schema: type: got string, want array; type: value must be one of 'array',"
	if err := validate(t.Context(), regoPolicy("a", schema)); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a mistyped schema: %v", err)
	}
}
