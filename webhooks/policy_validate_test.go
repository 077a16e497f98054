package webhooks

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

const typo = `package typo
deny contains "no" if input.ticket.spec.fom == "x"
deny contains "no" if input.ticket.spec.too == "x"
`

func TestPoliciesThatDoNotCompileAreRefusedWithEveryProblem(t *testing.T) {
	w := newWorld(t)
	got := w.review(t, PathValidatePolicy, create(t, "FlightPolicy", rego("typo", typo, flightsv1.EnforcementEnforce)))
	if got.Allowed || got.Result.Code != http.StatusUnprocessableEntity || got.Result.Reason != metav1.StatusReasonInvalid {
		t.Fatalf("allowed = %v, status %+v", got.Allowed, got.Result)
	}
	for _, part := range []string{"spec.rego: line 2, column ", "spec.rego: line 3, column ", "fom", "too", "from"} {
		if !strings.Contains(got.Result.Message, part) {
			t.Errorf("message %q lacks %q", got.Result.Message, part)
		}
	}
	if len(got.Result.Details.Causes) < 2 || got.Result.Details.Causes[0].Field != "spec.rego" {
		t.Errorf("causes are %+v", got.Result.Details.Causes)
	}
}

func TestGoodPoliciesAndUnchangedBrokenOnesPass(t *testing.T) {
	broken := rego("typo", typo, flightsv1.EnforcementEnforce)
	labelled := broken.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	for name, req := range map[string]admission.Request{
		"a policy that compiles":                    create(t, "FlightPolicy", rego("few-seats", fewSeats, flightsv1.EnforcementEnforce)),
		"a label on a stored policy that is broken": update(t, "FlightPolicy", broken, labelled),
	} {
		if got := newWorld(t).review(t, PathValidatePolicy, req); !got.Allowed {
			t.Errorf("%s: refused: %s", name, got.Result.Message)
		}
	}
}

// The seventh pitfall, first half: the update that would break a working policy never reaches the store.
func TestOneBadPolicyTakesTheServerDown(t *testing.T) {
	working := rego("few-seats", fewSeats, flightsv1.EnforcementEnforce)
	w := newWorld(t, working)
	bad := working.DeepCopy()
	bad.Spec.Rego, bad.Generation = "package seats\ndeny contains", 2
	if got := w.review(t, PathValidatePolicy, update(t, "FlightPolicy", working, bad)); got.Allowed {
		t.Fatal("the broken update is stored")
	}
	// Stored all the same, while the webhook was bypassed: the last good revision serves.
	if err := w.engine.Set(t.Context(), bad); err == nil {
		t.Fatal("the engine takes broken Rego")
	}
	got := w.review(t, PathValidateTicket, create(t, "FlightTicket", ticket()))
	if got.Allowed || got.Result.Message != "few-seats: at most 1 seat" {
		t.Errorf("allowed = %v, message %q", got.Allowed, got.Result.Message)
	}
}

func TestABrokenPolicyConcernsOnlyWhatItMatches(t *testing.T) {
	for name, c := range map[string]struct {
		enforcement flightsv1.Enforcement
		namespace   string
		allowed     bool
	}{
		"Enforce refuses what it matches":      {flightsv1.EnforcementEnforce, "team-a", false},
		"Enforce leaves the others alone":      {flightsv1.EnforcementEnforce, "team-b", true},
		"Warn warns and refuses nobody at all": {flightsv1.EnforcementWarn, "team-a", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			bad := rego("typo", typo, c.enforcement)
			bad.Spec.Match.Namespaces = []string{c.namespace}
			if err := w.engine.Set(t.Context(), bad); err == nil {
				t.Fatal("the policy compiles")
			}
			got := w.review(t, PathValidateTicket, create(t, "FlightTicket", ticket()))
			if got.Allowed != c.allowed {
				t.Errorf("allowed = %v: %+v", got.Allowed, got.Result)
			}
			if warned := len(got.Warnings) > 0; warned != (c.enforcement == flightsv1.EnforcementWarn) {
				t.Errorf("warnings: %v", got.Warnings)
			}
		})
	}
}

func TestPoliciesAreCompiledAFewAtATimeAndWithADeadline(t *testing.T) {
	started := make(chan struct{}, maxCompiles)
	v := policyValidator{slots: make(chan struct{}, maxCompiles), compile: func(ctx context.Context, _ *flightsv1.FlightPolicy) error {
		started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}}
	busy, finish := context.WithCancel(t.Context())
	answers := make(chan outcome, maxCompiles)
	req := create(t, "FlightPolicy", rego("slow", fewSeats, flightsv1.EnforcementEnforce))
	for range maxCompiles {
		go func() { answers <- v.decide(busy, req) }()
	}
	for range maxCompiles {
		<-started
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if out := v.decide(late, req); out.result != resultUndecided || !strings.Contains(out.response.Result.Message, "other policies are being compiled") {
		t.Errorf("a third compile: %s %+v", out.result, out.response.Result)
	}
	finish()
	for range maxCompiles {
		if out := <-answers; out.result != resultUndecided || !errors.Is(out.err, context.Canceled) {
			t.Errorf("a compile that is cut off: %s, %v", out.result, out.err)
		}
	}
}
