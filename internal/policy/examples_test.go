package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// tested is a policy that says something by every rule.
const tested = `
metadata: {name: tested}
spec:
  rego: |
    package a

    deny contains {"msg": "too many", "code": "TooMany"} if input.ticket.spec.number > 2
    deny contains "too long" if input.route.distanceKm > 10000
    warn contains "no cabin" if not input.ticket.spec.cabin
    hold contains "boss" if input.user.username != "boss"
    quota contains {"key": input.requester, "scope": "Cluster", "amount": input.ticket.spec.number, "limit": 9}
    mutate contains {"path": "/spec/maxPrice", "value": {"amount": "9", "currency": "EUR"}, "when": "absent"}
    deny contains $"{input.stage} {input.operation} {input.offer.segments[0].flightNumber} {input.oldTicket.spec.number} {input.now}" if input.offer
  tests:
  - name: three seats by a city name
    input:
      ticket: {metadata: {labels: {a: b}}, spec: {from: Mumbai, to: London, number: 3}}
    expect:
      deny: [too many]
      warn: [no cabin]
      hold: [boss]
      quota: [{key: sample, amount: 3, limit: 9}]
      mutate: [{path: /spec/maxPrice, value: {currency: EUR, amount: "9"}}]
  - name: the boss, at booking
    input:
      user: {username: boss, groups: [a]}
      namespace: {name: x, labels: {a: b}}
      ticket: {spec: {from: BOM, to: LHR, cabin: First, maxPrice: {amount: "1", currency: EUR}}}
      oldTicket: {spec: {from: BOM, to: LHR, number: 2}}
      offer: {id: "1", price: {minor: 1, currency: EUR}, segments: [{flightNumber: BA138, departsAt: "2027-12-31T08:00:00Z"}]}
      now: "2028-01-01T00:00:00Z"
    expect:
      deny: ["Booking UPDATE BA138 2 2028-01-01T00:00:00Z"]
      quota: [{key: boss, amount: 1, limit: 9}]
`

func testedPolicy(t *testing.T) *flightsv1.FlightPolicy {
	t.Helper()
	var p flightsv1.FlightPolicy
	if err := yaml.UnmarshalStrict([]byte(tested), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

func TestPoliciesThatPassTheirTestsAreTaken(t *testing.T) {
	p := testedPolicy(t)
	if err := NewEngine(Rules()...).Validate(t.Context(), p); err != nil {
		t.Error(err)
	}
	without := p.DeepCopy()
	without.Spec.Tests = nil
	if digest(p) != digest(without) {
		t.Error("replicas that hold one rule with other tests are told to decide differently")
	}
}

func TestPoliciesThatFailTheirTestsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*flightsv1.PolicyTest)
		want   string
	}{
		{"another message", func(p *flightsv1.PolicyTest) { p.Expect.Deny = []string{"too few", "too many"} },
			`spec.tests[0]: "three seats by a city name": deny: expected "too few", "too many", actual "too many"`},
		{"nothing expected", func(p *flightsv1.PolicyTest) { p.Expect = flightsv1.PolicyExpectation{} },
			`spec.tests[0]: "three seats by a city name": deny: expected none, actual "too many"; warn: expected none, actual "no cabin"; hold: expected none, actual "boss"; ` +
				`mutate: expected none, actual "/spec/maxPrice = {\"amount\":\"9\",\"currency\":\"EUR\"}"; quota: expected none, actual "sample: 3 of 9"`},
		{"another amount", func(p *flightsv1.PolicyTest) { p.Expect.Quota[0].Amount = 2 }, `quota: expected "sample: 2 of 9", actual "sample: 3 of 9"`},
		{"another value", func(p *flightsv1.PolicyTest) { p.Expect.Mutate[0].Value.Raw = []byte(`"9"`) }, `mutate: expected "/spec/maxPrice = \"9\"", actual`},
		{"a value that is none", func(p *flightsv1.PolicyTest) { p.Expect.Mutate[0].Value.Raw = []byte(`{`) }, `expect.mutate: value of /spec/maxPrice: `},
		{"no ticket", func(p *flightsv1.PolicyTest) { p.Input.Raw = []byte(`{}`) }, "input: there is no ticket"},
		{"a mistyped field", func(p *flightsv1.PolicyTest) { p.Input.Raw = []byte(`{"ticket": {"spec": {"fom": "BOM"}}}`) }, `input: unknown field "fom"`},
		{"a mistyped part", func(p *flightsv1.PolicyTest) { p.Input.Raw = []byte(`{"tiket": {}}`) }, `input: unknown field "tiket"`},
		{"a place that isn't known", func(p *flightsv1.PolicyTest) {
			p.Input.Raw = []byte(`{"ticket": {"spec": {"from": "Atlantis City", "to": "LHR"}}}`)
		}, `input.ticket: `},
		{"a price that is none", func(p *flightsv1.PolicyTest) {
			p.Input.Raw = []byte(`{"ticket": {"spec": {"from": "BOM", "to": "LHR", "maxPrice": {"amount": "x", "currency": "EUR"}}}}`)
		}, `input: spec.maxPrice: `},
		{"a stage that is none", func(p *flightsv1.PolicyTest) {
			p.Input.Raw = []byte(`{"stage": "Boarding", "ticket": {"spec": {"from": "BOM", "to": "LHR"}}}`)
		}, `input: stage: "Boarding" is none of Admission, Booking, Audit`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := testedPolicy(t)
			c.change(&p.Spec.Tests[0])
			err := NewEngine(Rules()...).Validate(t.Context(), p)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "tests[1]") {
				t.Errorf("got\n  %v\nwant\n  %s", err, c.want)
			}
			e := NewEngine(Rules()...)
			if err := e.Set(t.Context(), p); err != nil {
				t.Errorf("a stored policy is run against its tests again: %v", err)
			}
		})
	}
}

func TestATestThatCannotBeEvaluatedFails(t *testing.T) {
	p := regoPolicy("a", "package a\n\ndeny contains msg if msg := trim(input.user.username, \"boss\")\n")
	p.Spec.Tests = []flightsv1.PolicyTest{{Name: "x"}}
	p.Spec.Tests[0].Input.Raw = []byte(`{"user": {"username": "boss"}, "ticket": {"spec": {"from": "BOM", "to": "LHR"}}}`)
	want := `spec.tests[0]: "x": it can't be evaluated: deny: an element is an empty text`
	if diff := cmp.Diff(want, errorText(validate(t.Context(), p))); diff != "" {
		t.Error(diff)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
