package webhooks

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/quota"
	"github.com/flight-operator/flight-operator/internal/quota/store"
)

func TestAnAllowedTicketIsReservedWithWhatItAndItsStoredFormClaim(t *testing.T) {
	w := quotaWorld(t)
	req := update(t, "FlightTicket", ticket(seats(1)), ticket(seats(3), func(ft *flightsv1.FlightTicket) { ft.UID, ft.Generation = "u-1", 7 }))
	if got := w.review(t, PathValidateTicket, req); !got.Allowed {
		t.Fatalf("refused: %s", got.Result.Message)
	}
	claim := func(policy, key string, scope quota.Scope, amount, limit int64) quota.Claim {
		return quota.Claim{
			Policy: policy, PolicyUID: types.UID("uid-" + policy), PolicyGeneration: 1, Key: key, Scope: scope, Amount: amount, Limit: limit,
		}
	}
	sorted := func(all, one quota.Claim) []quota.Claim {
		list := []quota.Claim{all, one}
		slices.SortFunc(list, func(a, b quota.Claim) int { return strings.Compare(a.Bucket(), b.Bucket()) })
		return list
	}
	people, now, before := claim("tickets", "all", quota.Namespace, 1, 1), claim("seats", "Asha Rao", quota.Cluster, 3, 4), claim("seats", "Asha Rao", quota.Cluster, 1, 4)
	people.Resets, now.WarnAt, before.WarnAt = time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC), 3, 3
	want := []quota.Review{{
		Ticket: types.NamespacedName{Namespace: "team-a", Name: "my-flight-ticket"}, UID: "u-1", Generation: 7,
		Claims: sorted(people, now), Old: sorted(people, before),
	}}
	if diff := cmp.Diff(want, w.quotas.reserved); diff != "" {
		t.Errorf("reserved (-want +got):\n%s", diff)
	}
	if len(w.quotas.checked)+len(w.quotas.released) > 0 {
		t.Errorf("checked %v, released %v", w.quotas.checked, w.quotas.released)
	}
}

func TestWhatRaisesNothingOrIsRefusedReservesNothing(t *testing.T) {
	going := func(ft *flightsv1.FlightTicket) { now := metav1.Unix(1800000000, 0); ft.DeletionTimestamp = &now }
	labelled := func(ft *flightsv1.FlightTicket) { ft.Labels = map[string]string{"a": "b"} }
	annotated := func(ft *flightsv1.FlightTicket) { ft.Annotations = map[string]string{"a": "b"} }
	free := func(ft *flightsv1.FlightTicket) { ft.Spec.MaxPrice = &flightsv1.Money{Amount: "0.00", Currency: "EUR"} }
	for name, c := range map[string]struct {
		req  func(*testing.T) admission.Request
		also []*flightsv1.FlightPolicy
		want bool // allowed
	}{
		"a label": {req: func(t *testing.T) admission.Request {
			return update(t, "FlightTicket", ticket(), ticket(labelled))
		}, want: true},
		"an annotation": {req: func(t *testing.T) admission.Request {
			return update(t, "FlightTicket", ticket(), ticket(annotated))
		}, want: true},
		"fewer seats": {req: func(t *testing.T) admission.Request {
			return update(t, "FlightTicket", ticket(seats(3)), ticket(seats(1)))
		}, want: true},
		"a ticket that is being deleted": {req: func(t *testing.T) admission.Request {
			return update(t, "FlightTicket", ticket(going), ticket(going, labelled))
		}, want: true},
		"a ticket that another policy refuses": {
			req:  func(t *testing.T) admission.Request { return create(t, "FlightTicket", ticket()) },
			also: []*flightsv1.FlightPolicy{rego("few-seats", fewSeats, flightsv1.EnforcementEnforce)},
		},
		"a ticket that no policy would let through": {req: func(t *testing.T) admission.Request {
			return create(t, "FlightTicket", ticket(free))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := quotaWorld(t)
			for _, p := range c.also {
				if err := w.engine.Set(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.review(t, PathValidateTicket, c.req(t)); got.Allowed != c.want {
				t.Errorf("allowed = %v: %+v", got.Allowed, got.Result)
			}
			if n := len(w.quotas.reserved) + len(w.quotas.checked); n > 0 {
				t.Errorf("the ledger was asked %d times", n)
			}
		})
	}
}

func TestOnlyTheValidatingWebhookOfTicketsAsksTheLedger(t *testing.T) {
	w := quotaWorld(t)
	w.review(t, PathMutateTicket, create(t, "FlightTicket", ticket()))
	w.review(t, PathValidatePolicy, create(t, "FlightPolicy", rego("seats", countsSeats, flightsv1.EnforcementEnforce)))
	if n := len(w.quotas.reserved) + len(w.quotas.checked); n > 0 {
		t.Errorf("the ledger was asked %d times", n)
	}
}

// full is a refusal by two buckets.
func full() error {
	return quota.NewRefusedError(
		quota.Refusal{Policy: "tickets", Key: "all", Requested: 1, Limit: 1, Used: 1, Resets: time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC)},
		quota.Refusal{Policy: "seats", Key: "Asha Rao", Requested: 2, Old: 1, Limit: 4, Used: 3, Reserved: 1},
	)
}

const (
	seatsText   = `seats: quota "Asha Rao" has no room: requested 2 in place of 1, limit 4, used 3, reserved 1, left 0; it never resets; ask for less, or shrink or delete other tickets that it counts`
	ticketsText = `tickets: quota "all" has no room: requested 1, limit 1, used 1, reserved 0, left 0; it resets at 2027-04-01 00:00 UTC; ask for less, or shrink or delete other tickets that it counts`
)

func TestEveryBucketWithoutRoomIsAReason(t *testing.T) {
	w := quotaWorld(t)
	w.quotas.reserve, w.quotas.check = failing(full()), failing(full())
	req := create(t, "FlightTicket", ticket(func(ft *flightsv1.FlightTicket) { ft.Spec.ProviderRef = &flightsv1.ProviderReference{Name: "later"} }))
	got := w.review(t, PathValidateTicket, req)
	if len(got.Warnings) > 0 {
		t.Errorf("who is refused is told what comes once the ticket is stored: %v", got.Warnings)
	}
	want := &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: "2 reasons:\n" + seatsText + "\n" + ticketsText,
		Details: &metav1.StatusDetails{
			Name: "my-flight-ticket", Group: "flights.com", Kind: "FlightTicket",
			Causes: []metav1.StatusCause{{Type: "QuotaExceeded", Message: seatsText}, {Type: "QuotaExceeded", Message: ticketsText}},
		},
	}
	if diff := cmp.Diff(want, got.Result); diff != "" {
		t.Errorf("the refusal (-want +got):\n%s", diff)
	}
	for _, name := range []string{"seats", "tickets"} {
		if n := w.counted(t, "flight_operator_policy_decisions_total", map[string]string{"policy": name, "result": policy.ResultDeny}); n != 1 {
			t.Errorf("policy %s is counted as having denied %v times", name, n)
		}
	}
	if dry := w.review(t, PathValidateTicket, dryRun(req)); !cmp.Equal(dry.Result, got.Result) {
		t.Errorf("a dry run gets another answer:\n%s", cmp.Diff(got.Result, dry.Result))
	}
	if len(w.quotas.reserved) != 1 || len(w.quotas.checked) != 1 {
		t.Errorf("reserved %d times, checked %d times", len(w.quotas.reserved), len(w.quotas.checked))
	}
}

func TestADryRunAndAQuotaThatWarnsAreChecked(t *testing.T) {
	notice := quota.Notice{Policy: "seats", Key: "Asha Rao", Held: 3, Limit: 4}
	fits := func(context.Context, quota.Review) ([]quota.Notice, error) { return []quota.Notice{notice}, nil }
	const nearly = `seats: quota "Asha Rao": 3 of 4 taken, 1 left`
	gently := rego("seats", countsSeats, flightsv1.EnforcementWarn)
	strictly := rego("seats", countsSeats, flightsv1.EnforcementEnforce)
	refusal := quota.NewRefusedError(quota.Refusal{Policy: "seats", Key: "Asha Rao", Requested: 2, Limit: 4, Used: 4})
	for name, c := range map[string]struct {
		policy         *flightsv1.FlightPolicy
		check, reserve func(context.Context, quota.Review) ([]quota.Notice, error)
		dry            bool
		warning        string
		result         string // what the policy is counted as
	}{
		"an enforced quota that is nearly full":            {policy: strictly, reserve: fits, warning: nearly, result: policy.ResultAllow},
		"an enforced quota that is nearly full, a dry run": {policy: strictly, dry: true, check: fits, warning: nearly, result: policy.ResultAllow},
		"a quota that warns and is nearly full":            {policy: gently, check: fits, warning: nearly, result: policy.ResultAllow},
		"a quota that warns and is full": {policy: gently, check: failing(refusal), result: policy.ResultWarn,
			warning: `seats: would refuse: quota "Asha Rao" has no room: requested 2, limit 4, used 4, reserved 0, left 0; it never resets`},
		"a quota that warns and is full, a dry run": {policy: gently, dry: true, check: failing(refusal), result: policy.ResultWarn,
			warning: `seats: would refuse: quota "Asha Rao" has no room: requested 2, limit 4, used 4, reserved 0, left 0; it never resets`},
		"a quota that warns and is being counted": {policy: gently, result: policy.ResultAllow,
			check:   failing(&store.CountingError{Policy: "seats", Key: "Asha Rao", Generation: 2, Counted: 1}),
			warning: `seats: could not compare: quota "Asha Rao" of policy seats is being counted (generation 2 of the policy; generation 1 is done): try again in a moment`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.policy)
			w.quotas.check, w.quotas.reserve = c.check, c.reserve
			req := create(t, "FlightTicket", ticket())
			if c.dry {
				req = dryRun(req)
			}
			got := w.review(t, PathValidateTicket, req)
			if !got.Allowed {
				t.Fatalf("refused: %s", got.Result.Message)
			}
			if diff := cmp.Diff([]string{c.warning}, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if wrote := len(w.quotas.reserved) > 0; wrote != (c.reserve != nil) {
				t.Errorf("reserved = %v", wrote)
			}
			if n := w.counted(t, "flight_operator_policy_decisions_total", map[string]string{"policy": "seats", "result": c.result}); n != 1 {
				t.Errorf("the policy is counted as %s %v times", c.result, n)
			}
		})
	}
}

// unheld are the answers of the ledger that aren't final.
func unheld() map[string]error {
	return map[string]error{
		reservationStale:    &quota.StaleError{Policy: "seats", Generation: 1, Newest: 2},
		reservationCounting: &store.CountingError{Policy: "seats", Key: "Asha Rao", Generation: 1},
		reservationBusy:     &quota.BusyError{Policy: "seats", Key: "Asha Rao", Reason: "others were ahead", Cause: context.DeadlineExceeded},
	}
}

func TestWhatMayFitLaterIsRefusedForTheMomentOnly(t *testing.T) {
	for result, err := range unheld() {
		for _, dry := range []bool{false, true} {
			w := quotaWorld(t)
			w.renew = func(string, types.UID, int64) error { return context.DeadlineExceeded }
			w.quotas.reserve, w.quotas.check = failing(err), failing(err)
			req := create(t, "FlightTicket", ticket())
			if dry {
				req = dryRun(req)
			}
			got := w.review(t, PathValidateTicket, req)
			if got.Allowed || got.Result.Code != http.StatusTooManyRequests || got.Result.Reason != metav1.StatusReasonTooManyRequests ||
				got.Result.Details.RetryAfterSeconds != 1 || !strings.HasSuffix(got.Result.Message, "nothing was stored, retry") ||
				!strings.Contains(got.Result.Message, "policy seats") || len(got.Result.Details.Causes) > 0 {
				t.Errorf("%s: allowed = %v, %+v", result, got.Allowed, got.Result)
			}
			if n := w.counted(t, "flight_operator_quota_reservations_total", map[string]string{"result": result}); n != 1 {
				t.Errorf("%s is counted %v times", result, n)
			}
		}
	}
}

func TestANewerPolicyIsWaitedForAndAskedOnce(t *testing.T) {
	const stricter = `package seats
deny contains "no more" if true
warn contains "the second policy" if true
`
	first := rego("seats", "package seats\nwarn contains \"the first policy\" if true\n"+strings.TrimPrefix(countsSeats, "package seats\n"), flightsv1.EnforcementEnforce)
	for name, c := range map[string]struct {
		second  string
		renewed error
		want    string // part of the refusal
		asked   int    // reservations
	}{
		"the newer one allows":          {second: countsSeats, asked: 2},
		"the newer one refuses":         {second: stricter, want: "seats: no more", asked: 1},
		"the newer one doesn't come":    {renewed: context.DeadlineExceeded, want: "policy seats has changed (generation 2, not 1)", asked: 1},
		"the newer one is stale itself": {second: countsSeats, want: "policy seats has changed", asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, first)
			w.renew = func(policy string, uid types.UID, generation int64) error {
				if policy != "seats" || uid != "uid-seats" || generation != 1 {
					t.Errorf("waits for what follows generation %d of %s (%s)", generation, policy, uid)
				}
				next := rego("seats", c.second, flightsv1.EnforcementEnforce)
				next.Generation = 2
				if c.renewed == nil {
					if err := w.engine.Set(t.Context(), next); err != nil {
						t.Error(err)
					}
				}
				return c.renewed
			}
			w.quotas.reserve = func(_ context.Context, r quota.Review) ([]quota.Notice, error) {
				if r.Claims[0].PolicyGeneration == 1 || name == "the newer one is stale itself" {
					return nil, &quota.StaleError{Policy: "seats", Generation: 1, Newest: 2}
				}
				return nil, nil
			}
			got := w.review(t, PathValidateTicket, create(t, "FlightTicket", ticket()))
			if got.Allowed != (c.want == "") || !strings.Contains(got.Result.Message, c.want) || len(w.quotas.reserved) != c.asked {
				t.Errorf("allowed = %v after %d reservations: %s", got.Allowed, len(w.quotas.reserved), got.Result.Message)
			}
			if first := "seats: the first policy"; c.renewed == nil && slices.Contains(got.Warnings, first) {
				t.Errorf("the answer still warns: %v", got.Warnings)
			}
		})
	}
}

func TestWhatIsHeldForARefusedReviewIsTakenBack(t *testing.T) {
	t.Run("nobody waits for the answer any more", func(t *testing.T) {
		w := quotaWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		w.quotas.reserve = func(context.Context, quota.Review) ([]quota.Notice, error) { cancel(); return nil, nil }
		got := w.handlers[PathValidateTicket].(*admission.Webhook).Handle(ctx, create(t, "FlightTicket", ticket()))
		if got.Allowed || got.Result.Code != http.StatusTooManyRequests {
			t.Errorf("allowed = %v, %+v", got.Allowed, got.Result)
		}
		if diff := cmp.Diff(len(w.quotas.held), len(w.quotas.released)); diff != "" || w.quotas.held[0] != w.quotas.released[0] {
			t.Errorf("held %v, released %v", w.quotas.held, w.quotas.released)
		}
	})
	t.Run("an allowed review keeps it", func(t *testing.T) {
		w := quotaWorld(t)
		if got := w.review(t, PathValidateTicket, create(t, "FlightTicket", ticket())); !got.Allowed || len(w.quotas.held) != 1 || len(w.quotas.released) != 0 {
			t.Errorf("allowed = %v, held %v, released %v", got.Allowed, w.quotas.held, w.quotas.released)
		}
	})
}

func TestALedgerThatCanNotBeWrittenRefuses(t *testing.T) {
	bucket := schema.GroupResource{Group: "flights.com", Resource: "quotabuckets"}
	for name, c := range map[string]struct {
		err    error
		logged string
	}{
		"no right to write": {apierrors.NewForbidden(bucket, "abc", errors.New("no RBAC policy matched")), "no RBAC policy matched"},
		"a bucket that the API server calls invalid": {
			apierrors.NewInvalid(schema.GroupKind{Kind: "QuotaBucket"}, "abc", field.ErrorList{field.Invalid(field.NewPath("key"), "Asha Rao", "no")}),
			"the API server calls the quota bucket invalid",
		},
		"a bucket of somebody else": {errors.New(`quota bucket a/abc is not that of policy seats and key "Asha Rao"`), "is not of this operator"},
	} {
		t.Run(name, func(t *testing.T) {
			w := quotaWorld(t)
			w.quotas.reserve = failing(c.err)
			var log bytes.Buffer
			w.log = funcr.New(func(prefix, args string) { log.WriteString(prefix + args + "\n") }, funcr.Options{})
			w.serve(t, w.engine)
			got := w.review(t, PathValidateTicket, create(t, "FlightTicket", ticket()))
			if got.Allowed || got.Result.Code != http.StatusInternalServerError || !strings.Contains(got.Result.Message, "quota can't be reserved") {
				t.Errorf("allowed = %v, %+v", got.Allowed, got.Result)
			}
			for _, part := range []string{c.logged, `"quota"="failed"`, `"quotaPolicies"="seats,tickets"`} {
				if !strings.Contains(log.String(), part) {
					t.Errorf("the log lacks %s:\n%s", part, log.String())
				}
			}
			if strings.Contains(log.String(), "Asha") {
				t.Errorf("the log names a key:\n%s", log.String())
			}
		})
	}
}

func TestTheLogNamesThePoliciesOfFullBucketsAndNoKeys(t *testing.T) {
	errs := unheld()
	errs[reservationRefused] = full()
	for result, err := range errs {
		w := quotaWorld(t)
		w.renew = func(string, types.UID, int64) error { return context.DeadlineExceeded }
		w.quotas.reserve = failing(err)
		var log bytes.Buffer
		w.log = funcr.New(func(prefix, args string) { log.WriteString(prefix + args + "\n") }, funcr.Options{})
		w.serve(t, w.engine)
		w.review(t, PathValidateTicket, create(t, "FlightTicket", ticket()))
		if text := log.String(); !strings.Contains(text, `"quota"="`+result+`"`) || !strings.Contains(text, `"quotaPolicies"="seats`) || strings.Contains(text, "Asha") {
			t.Errorf("%s: the log is\n%s", result, text)
		}
	}
}

func TestRulesThatAreNotInForceAreRefusedAndQuotaIsNot(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]string{
		countsSeats:   "",
		countsTickets: "",
		"package a\nhold contains \"wait\" if true\n":                                                            "hold",
		"package a\nmutate contains {\"path\": \"/spec/cabin\", \"value\": \"Economy\", \"when\": \"absent\"}\n": "mutate",
	} {
		got := w.review(t, PathValidatePolicy, create(t, "FlightPolicy", rego("p", text, flightsv1.EnforcementEnforce)))
		if got.Allowed != (want == "") || want != "" && !strings.Contains(got.Result.Message, want) {
			t.Errorf("%s: allowed = %v: %+v", text, got.Allowed, got.Result)
		}
	}
}
