package story

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flight-operator/flight-operator/test/scene"
)

// policy is a manifest of a policy that concerns the scene's namespace alone; body is the rest of its spec.
func policy(s *scene.Scene, name, body string) string {
	return "apiVersion: flights.com/v1\nkind: FlightPolicy\nmetadata: {name: " + name + "-" + s.Namespace +
		"}\nspec:\n  match: {namespaces: [" + s.Namespace + "]}\n  " + strings.ReplaceAll(strings.TrimSpace(body), "\n", "\n  ") + "\n"
}

// enforce applies a policy, waits until it is served and takes it away after the test.
func enforce(s *scene.Scene, name, body string) {
	s.Helper()
	s.Apply(policy(s, name, body))
	s.Cleanup(func() {
		if out, err := house.kubectl("delete", "flightpolicy", name+"-"+s.Namespace, "--ignore-not-found"); err != nil {
			s.Errorf("clean up: %v: %s", err, out)
		}
	})
	s.Do("", "wait", "--for=condition=Ready", "flightpolicy/"+name+"-"+s.Namespace, "--timeout=120s")
}

func TestARefusedTicketGetsEveryReasonOfEveryPolicyInOneMessage(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	enforce(s, "allowed", "library: route-allowlist\nparameters:\n  routes:\n  - from: {countries: [IN]}\n    to: {countries: [FR]}")
	enforce(s, "seats", "library: seats-per-ticket\nparameters: {max: 2}")
	enforce(s, "own", `rego: |
  package own

  deny contains "name a cost center in spec.costCenter" if not input.ticket.spec.costCenter

  deny contains $"{input.user.username} must name every passenger" if {
    count(object.get(input.ticket.spec, "passengers", [])) < input.ticket.spec.number
  }`)
	got := s.Refused(s.TicketManifest("trip", "number: 4"), "apply", "-f", "-", "--as=asha", "--as-group=system:masters")
	want := `Error from server (Forbidden): error when creating "STDIN": admission webhook "validate.flighttickets.flights.com" denied the request: 4 reasons:
allowed-NS: Mumbai (BOM) to London (LON) isn't on the list of allowed routes: choose an allowed route, or ask a cluster admin to allow this one
own-NS: asha must name every passenger
own-NS: name a cost center in spec.costCenter
seats-NS: 4 seats are more than the 2 that one ticket may have: lower spec.number to 2 or less
`
	if diff := cmp.Diff(want, strings.ReplaceAll(got, s.Namespace, "NS")); diff != "" {
		t.Errorf("the message (-want +got):\n%s", diff)
	}
	if stored := s.Do("", "get", "tickets", "-o", "name"); stored != "" {
		t.Errorf("a refused ticket is stored: %s", stored)
	}
	s.Apply(s.TicketManifest("trip", `to: "Paris"`, "number: 1", "costCenter: R-12", "suspend: true",
		"passengers: [{givenName: Asha, familyName: Rao}]"))
}

func TestAPolicyThatWarnsLetsTheTicketThroughWithAWarning(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	enforce(s, "seats", "library: seats-per-ticket\nenforcement: Warn\nparameters: {max: 1}")
	s.Says(s.Apply(s.TicketManifest("trip", "suspend: true")),
		"would refuse: 2 seats are more than the 1 that one ticket may have")
}

// What can be known at admission is said there.
func TestBadInputIsRefusedAtAdmissionWithWhatToDo(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	const provider = "apiVersion: flights.com/v1\nkind: BookingProvider\nmetadata: {name: bad-provider}\nspec:\n  credentialsSecretRef: {key: token}\n  "
	for _, c := range []struct {
		what, manifest string
		want           []string
	}{
		{"an unknown place", s.TicketManifest("bad", `to: "Lodnon"`),
			[]string{`spec.to: "Lodnon" is not a place we know; did you mean "London"?`, "use a city, an airport or an IATA code"}},
		{"two unknown places", s.TicketManifest("bad", `from: "Xyzzy"`, `to: "Plugh"`),
			[]string{`spec.from: "Xyzzy" is not a place we know`, `spec.to: "Plugh" is not a place we know`}},
		{"an ambiguous place", s.TicketManifest("bad", `from: "San Jose"`),
			[]string{`spec.from: "San Jose" means several places: write one of "San Jose, CR"`, `"San Jose, US"`, "or an IATA code"}},
		{"two names of one place", s.TicketManifest("bad", `to: "Bombay"`),
			[]string{`"Mumbai" and "Bombay" are the same place (BOM): use two places that are apart`}},
		{"an airport and its own city", s.TicketManifest("bad", `from: "Heathrow"`),
			[]string{`"Heathrow" and "London" are the same place`}},
		{"no seat", s.TicketManifest("bad", "number: 0"), []string{"spec.number", "greater than or equal to 1"}},
		{"six seats", s.TicketManifest("bad", "number: 6"), []string{"spec.number", "less than or equal to 5"}},
		{"an empty spec", "apiVersion: flights.com/v1\nkind: FlightTicket\nmetadata: {name: bad}\nspec: {}\n",
			[]string{"spec.from: Required value", "spec.to: Required value"}},
		{"no spec", "apiVersion: flights.com/v1\nkind: FlightTicket\nmetadata: {name: bad}\n", []string{"spec: Required value"}},
		{"a mistyped field", s.TicketManifest("bad", "nubmer: 2"), []string{`unknown field "spec.nubmer"`}},
		{"a day that no calendar has", s.TicketManifest("bad", "departureDate: 2027-02-30"), []string{"must be a day that exists in the calendar"}},
		{"a return before the departure", s.TicketManifest("bad", "departureDate: 2099-02-03", "returnDate: 2099-02-01"),
			[]string{"returnDate must not be before departureDate"}},
		{"more passengers than seats", s.TicketManifest("bad", "number: 1",
			"passengers: [{givenName: A, familyName: B}, {givenName: C, familyName: D}]"), []string{"more passengers than seats"}},
		{"a currency that there is not", s.TicketManifest("bad", `maxPrice: {amount: "10", currency: ZZZ}`), []string{"spec.maxPrice", "ZZZ"}},

		{"a policy with a syntax error", policy(s, "bad", "rego: |\n  package bad\n  deny contains if {"), []string{"spec.rego: line 2, column", "unexpected if keyword"}},
		{"a shipped policy that there is not", policy(s, "bad", "library: route-denylits"),
			[]string{"spec.library", "route-denylits", "route-denylist"}},
		{"parameters that break the schema", policy(s, "bad", "library: seats-per-ticket\nparameters: {max: many}"),
			[]string{"spec.parameters", "max"}},
		{"a missing parameter", policy(s, "bad", "library: seats-per-ticket"), []string{"spec.parameters", "max"}},
		{"neither library nor rego", policy(s, "bad", "enforcement: Warn"), []string{"set exactly one of library (a shipped policy's name) and rego (a Rego module)"}},

		{"an http endpoint", provider + "endpoint: http://flights.example.com", []string{"spec.endpoint", "must be an https URL such as https://flights.example.com/v1"}},
		{"an endpoint inside", provider + "endpoint: https://127.0.0.1:1", []string{"spec.endpoint: is a loopback, link-local or private address; set spec.allowPrivate if that is meant"}},
		{"a second default provider", provider + "endpoint: https://flights.example.com\n  default: true",
			[]string{"spec.default", "is the default BookingProvider already, and there can be one; set its spec.default to false first"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := s.In(t)
			s.Says(s.Refused(c.manifest, "create", "-f", "-"), c.want...)
		})
	}
}

// What the engine refuses, as the author of a policy reads it.
func TestTheEngineRefusesPoliciesThatCouldNotWorkAndSaysWhy(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	rego := func(rule string) string { return policy(s, "bad", "rego: |\n  package bad\n\n  "+rule) }
	for _, c := range []struct {
		what, manifest string
		want           []string
	}{
		{"a mistyped input field", rego(`deny contains "no" if input.ticket.spec.fom == "BOM"`),
			[]string{"spec.rego: line 3, column 23", `input.ticket.spec has no field fom (did you mean "from"?); there are: cabin, costCenter`}},
		{"http.send", rego(`deny contains "no" if http.send({"method": "get", "url": "https://example.com"}).status_code == 200`),
			[]string{"line 3, column 23", "the built-in http.send isn't available to policies: policies have no network"}},
		{"opa.runtime", rego(`deny contains "no" if opa.runtime().env.HOME`),
			[]string{"line 3, column 23", "the built-in opa.runtime isn't available to policies"}},
		{"numbers.range", rego(`deny contains "no" if count(numbers.range(1, 1000000)) > 1`),
			[]string{"line 3, column 29", "the built-in numbers.range isn't available to policies: it can make a list of any length"}},
		{"a rule named denny", rego("denny contains \"no\" if input.dryRun\n\n  deny contains \"no\" if input.dryRun"),
			[]string{"line 3, column 1", "the rule denny is never used", `did you mean "deny"?`}},
		{"a complete deny", rego(`deny := "x"`), []string{"line 3, column 1", "deny must be a partial set, not a single value: write deny contains msg if"}},
		{"an optional field formatted bare", rego(`deny contains sprintf("no %s", [input.ticket.spec.cabin]) if input.ticket.spec.number > 1`),
			[]string{"line 3, column 33", "input.ticket.spec.cabin may be absent, and then the message is undefined and deny doesn't fire", "object.get("}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := s.In(t)
			s.Says(s.Refused(c.manifest, "apply", "-f", "-"), c.want...)
		})
	}
	if stored := s.Do("", "get", "flightpolicy", "bad-"+s.Namespace, "--ignore-not-found"); stored != "" {
		t.Errorf("a refused policy is stored: %s", stored)
	}
}
