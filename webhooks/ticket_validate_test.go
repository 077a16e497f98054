package webhooks

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/places"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// ticketCase is a ticket under some policies, and the answer.
type ticketCase struct {
	policies []*flightsv1.FlightPolicy
	ticket   *flightsv1.FlightTicket
	want     []string // parts of the message; none means allowed
	warnings []string
}

func ticketCases() map[string]ticketCase {
	seats := rego("few-seats", fewSeats, flightsv1.EnforcementEnforce)
	london := rego("no-london", noLondon, flightsv1.EnforcementEnforce)
	gently := rego("few-seats", fewSeats, flightsv1.EnforcementWarn)
	return map[string]ticketCase{
		"without policies everything goes": {ticket: ticket()},
		"every reason of every policy is told, sorted": {
			policies: []*flightsv1.FlightPolicy{london, seats}, ticket: ticket(),
			want: []string{"3 reasons:\nfew-seats: at most 1 seat\nno-london: never to London\nno-london: no flights to LON"},
		},
		"a policy in Warn refuses nobody": {
			policies: []*flightsv1.FlightPolicy{gently}, ticket: ticket(),
			warnings: []string{"few-seats: would refuse: at most 1 seat"},
		},
		"an unknown place is refused with suggestions": {
			ticket:   ticket(func(ft *flightsv1.FlightTicket) { ft.Spec.To = "Londn" }),
			want:     []string{`spec.to: "Londn" is not a place we know`, "London"},
			warnings: []string{"the policies were not asked: they need to know from and to"},
		},
		"an ambiguous place is refused with the candidates": {
			ticket:   ticket(func(ft *flightsv1.FlightTicket) { ft.Spec.From = "San Jose" }),
			want:     []string{`spec.from: "San Jose" means several places`, "San Jose, CR"},
			warnings: []string{"the policies were not asked: they need to know from and to"},
		},
		"both ends are told when both are wrong": {
			ticket:   ticket(func(ft *flightsv1.FlightTicket) { ft.Spec.From, ft.Spec.To = "Atlantis", "Eldorado Gulch" }),
			want:     []string{"2 reasons:", "spec.from: ", "spec.to: "},
			warnings: []string{"the policies were not asked: they need to know from and to"},
		},
		"two names of one place are refused, and the policies add their reasons": {
			policies: []*flightsv1.FlightPolicy{seats},
			ticket:   ticket(func(ft *flightsv1.FlightTicket) { ft.Spec.From, ft.Spec.To = "Bombay", "Mumbai" }),
			want:     []string{`spec.to: "Bombay" and "Mumbai" are the same place (BOM)`, "few-seats: at most 1 seat"},
		},
		"a price in a currency that doesn't exist is refused": {
			ticket: ticket(func(ft *flightsv1.FlightTicket) { ft.Spec.MaxPrice = &flightsv1.Money{Amount: "10", Currency: "QQQ"} }),
			want:   []string{"spec.maxPrice: "},
		},
		"a price of nothing is refused, for it could mean any price": {
			ticket: ticket(func(ft *flightsv1.FlightTicket) { ft.Spec.MaxPrice = &flightsv1.Money{Amount: "0.00", Currency: "EUR"} }),
			want:   []string{"spec.maxPrice: nothing can be booked for nothing"},
		},
		"a departure that is over everywhere is refused": {
			ticket: ticket(func(ft *flightsv1.FlightTicket) { ft.Spec.DepartureDate = "2026-12-31" }),
			want:   []string{"spec.departureDate: 2026-12-31 is in the past: name a day from 2027-01-01 on"},
		},
		"a departure on a day that still is one somewhere is accepted": {
			ticket: ticket(func(ft *flightsv1.FlightTicket) { ft.Spec.DepartureDate = "2027-01-01" }),
		},
		"a code that the table lacks is accepted with a warning": {
			ticket:   ticket(func(ft *flightsv1.FlightTicket) { ft.Spec.To = "QZQ" }),
			warnings: []string{"spec.to: QZQ is in no table of " + places.TableDate() + "; it is taken as an IATA code and sent as it is"},
		},
		"a provider that doesn't exist yet is a warning": {
			ticket: ticket(func(ft *flightsv1.FlightTicket) {
				ft.Spec.ProviderRef = &flightsv1.ProviderReference{Name: "other"}
			}),
			warnings: []string{`BookingProvider "other" does not exist yet (there is main); the ticket waits for it`},
		},
	}
}

func TestTicketsAreDecidedOnWithAllReasonsInOneAnswer(t *testing.T) {
	for name, c := range ticketCases() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.policies...)
			got := w.review(t, PathValidateTicket, create(t, "FlightTicket", c.ticket))
			if got.Allowed != (len(c.want) == 0) {
				t.Fatalf("allowed = %v: %+v", got.Allowed, got.Result)
			}
			for _, part := range c.want {
				if !strings.Contains(got.Result.Message, part) {
					t.Errorf("message %q lacks %q", got.Result.Message, part)
				}
			}
			if !got.Allowed && (got.Result.Code != http.StatusForbidden || got.Result.Reason != metav1.StatusReasonForbidden) {
				t.Errorf("status is %d %s, want 403 Forbidden", got.Result.Code, got.Result.Reason)
			}
			if diff := cmp.Diff(c.warnings, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARefusalNamesFieldsAndPoliciesAsCauses(t *testing.T) {
	w := newWorld(t, rego("few-seats", fewSeats, flightsv1.EnforcementEnforce))
	same := ticket(func(ft *flightsv1.FlightTicket) { ft.Spec.From = "LHR" })
	got := w.review(t, PathValidateTicket, create(t, "FlightTicket", same))
	want := &metav1.StatusDetails{
		Name: "my-flight-ticket", Group: "flights.com", Kind: "FlightTicket",
		Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.to", Message: `"LHR" and "London" are the same place (LON): use two places that are apart`},
			{Type: "PolicyDenied", Message: "few-seats: at most 1 seat"},
		},
	}
	if diff := cmp.Diff(want, got.Result.Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

func TestUpdatesAskPoliciesOnlyWhereSomethingChangesThatTheySee(t *testing.T) {
	booked := func(ft *flightsv1.FlightTicket) { ft.Status.Booking = &flightsv1.BookingStatus{ID: "b1"} }
	operating := func(ft *flightsv1.FlightTicket) { ft.Status.Operation = &flightsv1.OperationStatus{ID: "o1"} }
	going := func(ft *flightsv1.FlightTicket) { now := metav1.Unix(1800000000, 0); ft.DeletionTimestamp = &now }
	suspended := func(ft *flightsv1.FlightTicket) { ft.Spec.Suspend = true }
	labelled := func(ft *flightsv1.FlightTicket) { ft.Labels = map[string]string{"a": "b"} }
	annotated := func(key string) func(*flightsv1.FlightTicket) {
		return func(ft *flightsv1.FlightTicket) { ft.Annotations = map[string]string{key: "b"} }
	}
	elsewhere := func(ft *flightsv1.FlightTicket) { ft.Spec.ProviderRef = &flightsv1.ProviderReference{Name: "main"} }
	for name, c := range map[string]struct {
		old, now *flightsv1.FlightTicket
		want     string // part of the message; empty means allowed
	}{
		"an unchanged ticket that a newer policy would refuse":  {old: ticket(), now: ticket()},
		"kubectl's own annotation is no concern of policies":    {old: ticket(), now: ticket(annotated("kubectl.kubernetes.io/last-applied-configuration"))},
		"another try may always be asked for":                   {old: ticket(), now: ticket(annotated("flights.com/reconcile-requested-at"))},
		"an annotation that is added is decided on":             {old: ticket(), now: ticket(annotated("a")), want: "few-seats: at most 1 seat"},
		"an annotation that is taken away is decided on":        {old: ticket(annotated("a")), now: ticket(), want: "few-seats: at most 1 seat"},
		"a changed spec is decided on":                          {old: ticket(), now: ticket(suspended), want: "few-seats: at most 1 seat"},
		"a changed label is decided on":                         {old: ticket(), now: ticket(labelled), want: "few-seats: at most 1 seat"},
		"a ticket that is being deleted may lose its finalizer": {old: ticket(going), now: ticket(going)},
		"a ticket that is being deleted keeps its spec":         {old: ticket(going), now: ticket(suspended), want: "being deleted"},
		"a booked ticket keeps its provider":                    {old: ticket(booked), now: ticket(booked, elsewhere), want: "spec.providerRef: "},
		"a ticket with an open operation keeps its provider":    {old: ticket(operating), now: ticket(elsewhere), want: "spec.providerRef: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rego("few-seats", fewSeats, flightsv1.EnforcementEnforce))
			got := w.review(t, PathValidateTicket, update(t, "FlightTicket", c.old, c.now))
			if got.Allowed != (c.want == "") || !strings.Contains(got.Result.Message, c.want) {
				t.Errorf("allowed = %v, message %q; want %q", got.Allowed, got.Result.Message, c.want)
			}
		})
	}
}

func TestADepartureThatWasFineWhenItWasSetStaysFine(t *testing.T) {
	over := func(ft *flightsv1.FlightTicket) { ft.Spec.DepartureDate = "2026-06-01" }
	charged := func(ft *flightsv1.FlightTicket) { ft.Spec.CostCenter = "research" }
	got := newWorld(t).review(t, PathValidateTicket, update(t, "FlightTicket", ticket(over), ticket(over, charged)))
	if !got.Allowed {
		t.Errorf("refused with %q", got.Result.Message)
	}
}

// deciderFunc is a Decider that can fail as none of ours should.
type deciderFunc func(context.Context, policy.Request) (policy.Decision, error)

func (f deciderFunc) Decide(ctx context.Context, r policy.Request) (policy.Decision, error) {
	return f(ctx, r)
}

func TestWhatCanNotBeDecidedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		given func(*testing.T, *world)
		want  string
	}{
		"the policies are not loaded":  {func(_ *testing.T, w *world) { w.synced = false }, "the policies are still being loaded"},
		"the cache fails":              {func(_ *testing.T, w *world) { w.cached.err = errors.New("cache not started") }, "cache not started"},
		"the namespace is not there":   {func(_ *testing.T, w *world) { w.cached.namespaces, w.live.namespaces = nil, nil }, "read namespace team-a"},
		"the engine can't decide":      {decideWith(func() error { return errors.New("boom") }), "boom"},
		"the engine panics":            {decideWith(func() error { panic("secret passenger") }), "the webhook failed"},
		"the engine ends with no time": {decideWith(func() error { return context.DeadlineExceeded }), "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.given(t, w)
			got := w.review(t, PathValidateTicket, create(t, "FlightTicket", ticket()))
			if got.Allowed || got.Result.Code != http.StatusInternalServerError {
				t.Fatalf("allowed = %v, code %d", got.Allowed, got.Result.Code)
			}
			if m := got.Result.Message; !strings.HasPrefix(m, "could not decide: ") || !strings.Contains(m, c.want) || !strings.HasSuffix(m, "retry") {
				t.Errorf("message is %q, want %q", m, c.want)
			}
			if strings.Contains(got.Result.Message, "secret passenger") {
				t.Error("the answer quotes a panic")
			}
		})
	}
}

func TestWhatAPolicyHadNoTimeForIsAskedAgainUnlessSomethingElseRefuses(t *testing.T) {
	slow := policy.Denial{Policy: "slow", Code: policy.CodePolicyError, Message: "policy slow could not be evaluated: it took too long", Late: true}
	slower := policy.Denial{Policy: "slower", Code: policy.CodePolicyError, Message: "policy slower could not be evaluated: it is in quarantine", Late: true}
	broken := policy.Denial{Policy: "broken", Code: policy.CodePolicyError, Message: "policy broken could not be evaluated: divide by zero"}
	never := policy.Denial{Policy: "never", Message: "no flights"}
	past := func(ft *flightsv1.FlightTicket) { ft.Spec.DepartureDate = "2020-01-01" }
	for name, c := range map[string]struct {
		denials []policy.Denial
		change  func(*flightsv1.FlightTicket)
		code    int32
		says    []string
	}{
		"one that is late":        {[]policy.Denial{slow}, nil, http.StatusTooManyRequests, []string{"slow: policy slow could not be evaluated: it took too long; nothing was stored, retry"}},
		"two that are late":       {[]policy.Denial{slow, slower}, nil, http.StatusTooManyRequests, []string{"2 reasons:\nslow: ", "\nslower: ", "; nothing was stored, retry"}},
		"one late and one denies": {[]policy.Denial{never, slow}, nil, http.StatusForbidden, []string{"2 reasons:\nnever: no flights\nslow: "}},
		"one late and one fails":  {[]policy.Denial{broken, slow}, nil, http.StatusForbidden, []string{"broken: policy broken", "slow: policy slow"}},
		"one that fails":          {[]policy.Denial{broken}, nil, http.StatusForbidden, []string{"divide by zero"}},
		"one late and a bad date": {[]policy.Denial{slow}, past, http.StatusForbidden, []string{"spec.departureDate: ", "slow: policy slow"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.serve(t, deciderFunc(func(context.Context, policy.Request) (policy.Decision, error) {
				return policy.Decision{Denials: c.denials, Claims: []quota.Claim{{Policy: "seats", Key: "all", Amount: 1}}}, nil
			}))
			asked := ticket()
			if c.change != nil {
				asked = ticket(c.change)
			}
			got := w.review(t, PathValidateTicket, create(t, "FlightTicket", asked))
			if got.Allowed || got.Result.Code != c.code {
				t.Fatalf("allowed = %v, code %d: %s", got.Allowed, got.Result.Code, got.Result.Message)
			}
			if again := got.Result.Details.RetryAfterSeconds > 0; again != (c.code == http.StatusTooManyRequests) {
				t.Errorf("to be asked again: %v", again)
			}
			for _, text := range c.says {
				if !strings.Contains(got.Result.Message, text) {
					t.Errorf("message is %q, want %q", got.Result.Message, text)
				}
			}
			if n := len(got.Result.Details.Causes); n < len(c.denials) {
				t.Errorf("%d causes of %d denials", n, len(c.denials))
			}
		})
	}
}

func decideWith(fail func() error) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		w.serve(t, deciderFunc(func(context.Context, policy.Request) (policy.Decision, error) {
			return policy.Decision{}, fail()
		}))
	}
}

func TestGarbageIsRefused(t *testing.T) {
	w := newWorld(t)
	for path := range w.handlers {
		for name, text := range map[string]string{"nothing": "", "no JSON": "{", "a number": "7", "a mistyped field": `{"metadata":{"labels":3}}`} {
			req := create(t, "FlightTicket", ticket())
			req.Object.Raw = []byte(text)
			if got := w.review(t, path, req); got.Allowed {
				t.Errorf("%s allows %s", path, name)
			}
		}
	}
}

func TestATicketOfANamespaceThatTheCacheLacksIsDecidedOn(t *testing.T) {
	w := newWorld(t)
	req := create(t, "FlightTicket", ticket())
	req.Namespace = "new"
	if got := w.review(t, PathValidateTicket, req); !got.Allowed {
		t.Errorf("refused: %s", got.Result.Message)
	}
}

func TestPoliciesSeeTheReview(t *testing.T) {
	w := newWorld(t)
	var seen policy.Request
	w.serve(t, deciderFunc(func(ctx context.Context, r policy.Request) (policy.Decision, error) {
		seen = r
		if _, has := ctx.Deadline(); !has {
			t.Error("the review has no deadline")
		}
		return policy.Decision{}, nil
	}))
	req := create(t, "FlightTicket", ticket())
	dry := true
	req.DryRun = &dry
	w.review(t, PathValidateTicket, req)

	if seen.Stage != policy.StageAdmission || seen.Operation != flightsv1.OperationCreate || !seen.DryRun {
		t.Errorf("stage %s, operation %s, dry run %v", seen.Stage, seen.Operation, seen.DryRun)
	}
	if diff := cmp.Diff(policy.User{Username: "asha", Groups: []string{"system:authenticated", "travellers"}}, seen.User); diff != "" {
		t.Errorf("user (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(policy.Namespace{Name: "team-a", Labels: map[string]string{"tier": "gold"}}, seen.Namespace); diff != "" {
		t.Errorf("namespace (-want +got):\n%s", diff)
	}
	if seen.Route.Origin.IATA != "BOM" || seen.Route.Destination.IATA != "LON" || !seen.Now.Equal(time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("route %s-%s at %s", seen.Route.Origin.IATA, seen.Route.Destination.IATA, seen.Now)
	}
}

// The fourth pitfall: a review that is delivered twice, and a dry run.
func TestReviewedTwice(t *testing.T) {
	w := newWorld(t, rego("no-london", noLondon, flightsv1.EnforcementEnforce), rego("few-seats", fewSeats, flightsv1.EnforcementEnforce))
	req := create(t, "FlightTicket", ticket())
	first := w.review(t, PathValidateTicket, req)
	again := w.review(t, PathValidateTicket, req)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same review gets another answer:\n%s", diff)
	}
	dry := true
	req.UID, req.DryRun = "review-2", &dry
	third := w.review(t, PathValidateTicket, req)
	if diff := cmp.Diff(first.Result, third.Result); diff != "" {
		t.Errorf("a dry run gets another answer:\n%s", diff)
	}
	if len(first.Patches) != 0 || first.Allowed {
		t.Errorf("the validating webhook patches or allows: %+v", first)
	}
}

// The eighth pitfall: a lookup that fails, an old object that can't be read. An error is never "skip".
func TestWaysRound(t *testing.T) {
	w := newWorld(t, rego("few-seats", fewSeats, flightsv1.EnforcementEnforce))
	broken := update(t, "FlightTicket", ticket(), ticket())
	broken.OldObject.Raw = []byte(`{"spec":7}`)
	misspelt := create(t, "FlightTicket", ticket())
	misspelt.Object.Raw = []byte(`{"metadata":{"name":"x"},"spec":{"from":"Mumbai","to":"London","NUMBER":1,"number":5,"Number":1}}`)
	for name, req := range map[string]admission.Request{
		"a stored object that can't be read":          broken,
		"a second spelling of a field that is stored": misspelt,
	} {
		if got := w.review(t, PathValidateTicket, req); got.Allowed {
			t.Errorf("%s is a way round", name)
		}
	}
}
