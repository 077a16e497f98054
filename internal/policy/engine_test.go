package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/places"
)

// validate validates as an engine does whose program acts on deny and warn alone.
func validate(ctx context.Context, p *flightsv1.FlightPolicy) error {
	return NewEngine().Validate(ctx, p)
}

// regoPolicy is an enforced policy with a module of its own.
func regoPolicy(name, rego string) *flightsv1.FlightPolicy {
	return &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-policy", Generation: 1},
		Spec:       flightsv1.FlightPolicySpec{Rego: rego, Enforcement: flightsv1.EnforcementEnforce},
	}
}

func withParameters(p *flightsv1.FlightPolicy, raw string) *flightsv1.FlightPolicy {
	p.Spec.Parameters = &apiextensionsv1.JSON{Raw: []byte(raw)}
	return p
}

// request is a create of the ticket Mumbai to London for two.
func request() Request {
	return Request{
		Stage: StageAdmission, Operation: flightsv1.OperationCreate,
		User:      User{Username: "asha", Groups: []string{"system:authenticated"}},
		Namespace: Namespace{Name: "travel", Labels: map[string]string{"team": "blue"}},
		Ticket: &flightsv1.FlightTicket{
			ObjectMeta: metav1.ObjectMeta{Name: "my-flight-ticket", Namespace: "travel"},
			Spec:       flightsv1.FlightTicketSpec{From: "Mumbai", To: "London", Number: 2},
		},
		Route: mumbaiLondon(),
		Now:   time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC),
	}
}

func mumbaiLondon() places.Route {
	return places.Route{
		Origin: places.Place{Text: "Mumbai", Kind: places.KindAirport, IATA: "BOM", Airports: []string{"BOM"}, City: "Mumbai", Country: "IN"},
		Destination: places.Place{Text: "London", Kind: places.KindCity, IATA: "LON",
			Airports: []string{"LCY", "LGW", "LHR", "LTN", "SEN", "STN"}, City: "London", Country: "GB"},
		DistanceKm: 7200, International: true,
	}
}

const denyMany = `package a

deny contains msg if {
	input.ticket.spec.number > 1
	msg := sprintf("%d seats are too many", [input.ticket.spec.number])
}
`

// broken has a mistyped field in line 3.
const broken = "package a\n\ndeny contains \"no\" if input.ticket.spec.fom == \"BOM\"\n"

func decide(t *testing.T, e *Engine, r Request) Decision {
	t.Helper()
	d, err := e.Decide(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Evaluated {
		d.Evaluated[i].Duration = 0
	}
	return d
}

func denied(d Decision) []string {
	var messages []string
	for _, denial := range d.Denials {
		messages = append(messages, denial.Policy+": "+denial.Message)
	}
	return messages
}

func warned(d Decision) []string {
	var messages []string
	for _, w := range d.Warnings {
		messages = append(messages, w.Policy+": "+w.Message)
	}
	return messages
}

func TestAnEngineWithoutPoliciesAllows(t *testing.T) {
	if d := decide(t, NewEngine(), request()); !d.Allowed() || len(d.Evaluated) != 0 {
		t.Errorf("got %+v", d)
	}
}

func TestEngineHoldsAndDropsPolicies(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, regoPolicy("b", denyMany))
	mustSet(t, e, regoPolicy("a", denyMany))
	want := []string{"a: 2 seats are too many", "b: 2 seats are too many"}
	if diff := cmp.Diff(want, denied(decide(t, e, request()))); diff != "" {
		t.Error(diff)
	}
	e.Delete("a")
	e.Delete("a")
	e.Delete("never there")
	if diff := cmp.Diff(want[1:], denied(decide(t, e, request()))); diff != "" {
		t.Error(diff)
	}
	if got := e.Loaded(); len(got) != 1 || got["b"].Err != nil || got["b"].Generation != 1 || got["b"].Digest == "" {
		t.Errorf("loaded %+v", got)
	}
}

// A working policy is updated with broken Rego, and later every replica restarts.
func TestTheLastGoodRevisionServesWhileABrokenOneIsMended(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, regoPolicy("seats", denyMany))
	good := e.Loaded()["seats"]

	update := regoPolicy("seats", broken)
	update.Generation = 2
	update.Spec.Enforcement = flightsv1.EnforcementWarn
	var compile *CompileError
	if err := e.Set(t.Context(), update); !errors.As(err, &compile) || compile.Problems[0].Row != 3 {
		t.Fatalf("got %v, want a problem in line 3", err)
	}
	if diff := cmp.Diff([]string{"seats: 2 seats are too many"}, denied(decide(t, e, request()))); diff != "" {
		t.Errorf("the good revision doesn't serve as it did: %s", diff)
	}
	l := e.Loaded()["seats"]
	if l.Generation != 1 || l.FailedGeneration != 2 || l.Digest != good.Digest || l.Err == nil {
		t.Errorf("loaded %+v", l)
	}

	restarted := NewEngine()
	if err := restarted.Set(t.Context(), update); err == nil {
		t.Fatal("a broken policy was taken")
	}
	update.Spec.Enforcement = flightsv1.EnforcementEnforce
	if err := restarted.Set(t.Context(), update); err == nil {
		t.Fatal("a broken policy was taken")
	}
	d := decide(t, restarted, request())
	if d.Allowed() || d.Denials[0].Code != CodePolicyError || !strings.Contains(d.Denials[0].Message, "spec.rego:3:23: ") {
		t.Errorf("a broken policy without a good revision must refuse and name the line: %+v", d)
	}
	if l := restarted.Loaded()["seats"]; l.Generation != 0 || l.Digest != "" || l.FailedGeneration != 2 || l.UID != update.UID {
		t.Errorf("loaded %+v", l)
	}

	update.Spec.Rego, update.Generation = denyMany, 3
	mustSet(t, e, update)
	if l := e.Loaded()["seats"]; l.Generation != 3 || l.FailedGeneration != 0 || l.Err != nil || l.Digest != good.Digest {
		t.Errorf("loaded %+v", l)
	}
}

func TestABrokenPolicyOfAnotherObjectHasNoGoodRevision(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, regoPolicy("seats", "package a\n\nwarn contains \"hello\"\n"))
	again := regoPolicy("seats", broken)
	again.UID = "another"
	if err := e.Set(t.Context(), again); err == nil {
		t.Fatal("a broken policy was taken")
	}
	if d := decide(t, e, request()); d.Allowed() {
		t.Error("the deleted policy serves for the one that was created under its name")
	}
}

func TestABrokenPolicyKeepsItsMatchAndEnforcement(t *testing.T) {
	e := NewEngine()
	elsewhere := regoPolicy("elsewhere", broken)
	elsewhere.Spec.Match.Namespaces = []string{"other"}
	warning := regoPolicy("warning", broken)
	warning.Spec.Enforcement = flightsv1.EnforcementWarn
	for _, p := range []*flightsv1.FlightPolicy{elsewhere, warning} {
		if err := e.Set(t.Context(), p); err == nil {
			t.Fatal("a broken policy was taken")
		}
	}
	d := decide(t, e, request())
	if !d.Allowed() || len(d.Warnings) != 1 || d.Evaluated[0].Result != ResultError || d.Evaluated[0].Err == nil {
		t.Errorf("got %+v", d)
	}
}

func TestSetChangesNothingOnceItsContextIsOver(t *testing.T) {
	e := NewEngine()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Set(ctx, regoPolicy("seats", denyMany)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(e.Loaded()) != 0 {
		t.Error("a policy is in force")
	}
}

func TestDigestTellsWhatDecides(t *testing.T) {
	base := withParameters(libraryPolicy("seats-per-ticket"), `{"max": 2}`)
	for _, c := range []struct {
		name   string
		change func(*flightsv1.FlightPolicy)
		same   bool
	}{
		{"name and generation don't", func(p *flightsv1.FlightPolicy) { p.Name, p.Generation = "other", 7 }, true},
		{"the form of parameters doesn't", func(p *flightsv1.FlightPolicy) { withParameters(p, "{ \"max\" : 2 }") }, true},
		{"the default of enforcement doesn't", func(p *flightsv1.FlightPolicy) { p.Spec.Enforcement = "" }, true},
		{"parameters do", func(p *flightsv1.FlightPolicy) { withParameters(p, `{"max": 3}`) }, false},
		{"enforcement does", func(p *flightsv1.FlightPolicy) { p.Spec.Enforcement = flightsv1.EnforcementWarn }, false},
		{"match does", func(p *flightsv1.FlightPolicy) { p.Spec.Match.Namespaces = []string{"a"} }, false},
		{"the module does", func(p *flightsv1.FlightPolicy) { p.Spec.Library = "route-denylist" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := base.DeepCopy()
			c.change(changed)
			if same := digest(base) == digest(changed); same != c.same {
				t.Errorf("same digest: %v, want %v", same, c.same)
			}
		})
	}
}

func TestPoliciesOfOneTextShareItsProgramAndKeepTheirParameters(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, withParameters(libraryPolicy("seats-per-ticket"), `{"max": 1}`))
	other := withParameters(libraryPolicy("seats-per-ticket"), `{"max": 3}`)
	other.Name = "three"
	mustSet(t, e, other)
	held := e.snapshot.Load().policies
	if held[0].serving.program != held[1].serving.program {
		t.Error("two programs for one text")
	}
	if d := decide(t, e, request()); len(d.Denials) != 1 || d.Denials[0].Policy != "seats-per-ticket" {
		t.Errorf("got %+v", d)
	}
	if err := e.Set(t.Context(), withParameters(other, `{"max": "3"}`)); err == nil || !strings.HasPrefix(err.Error(), "spec.parameters.max: got string, want integer") {
		t.Errorf("got %v", err)
	}
}

// Policies come and go while tickets are decided on. Run with -race.
func TestSetDeleteAndDecideAtOnce(t *testing.T) {
	e := NewEngine()
	e.limits.policy = time.Minute // the race detector and others on the machine are slow
	mustSet(t, e, regoPolicy("always", denyMany))
	const rounds = 30
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			name := fmt.Sprintf("policy-%d", n%2)
			for i := range rounds {
				p := regoPolicy(name, denyMany)
				if i%3 == 1 {
					p.Spec.Rego = broken
				}
				if err := e.Set(t.Context(), p); (err != nil) != (i%3 == 1) {
					t.Errorf("set %d: %v", i, err)
				}
				if i%5 == 4 {
					e.Delete(name)
				}
				e.Loaded()
			}
		})
		group.Go(func() {
			for range rounds {
				d, err := e.Decide(t.Context(), request())
				if err != nil || d.Allowed() || d.Denials[0].Policy != "always" {
					t.Errorf("got %+v, %v", d, err)
				}
			}
		})
	}
	group.Wait()
}

func TestAMatchThatCannotBeReadConcernsEverybody(t *testing.T) {
	e := NewEngine()
	p := regoPolicy("a", denyMany)
	p.Spec.Match.Namespaces = []string{"*x*"}
	if err := e.Set(t.Context(), p); err == nil {
		t.Fatal("accepted")
	}
	if decide(t, e, request()).Allowed() {
		t.Error("a broken policy refuses nobody")
	}
}

// A stored policy was tried when it was applied. When a replica starts on a busy machine, being slow mustn't break it: a
// broken policy refuses everybody.
func TestAStoredPolicyIsNotBrokenByABusyMachine(t *testing.T) {
	slow := regoPolicy("a", strings.Replace(poison, "input.ticket.spec.number == 5", "input.ticket.spec.number > 0", 1))
	if err := validate(t.Context(), slow); err == nil {
		t.Fatal("it is accepted when it is applied")
	}
	e := NewEngine()
	if err := e.Set(t.Context(), slow); err != nil {
		t.Errorf("it is held as broken: %v", err)
	}
	if d := decide(t, e, request()); d.Allowed() || !errors.Is(d.Evaluated[0].Err, errTimeout) {
		t.Errorf("what takes too long isn't refused: %+v", d)
	}
}
