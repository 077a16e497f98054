package webhooks

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// rightsOf is a Rights that gives some verbs, or fails, and notes what it was asked.
type rightsOf struct {
	verbs []string
	err   error
	asked []string
}

func (r *rightsOf) May(_ context.Context, user authenticationv1.UserInfo, verb, namespace, name string) (bool, error) {
	r.asked = append(r.asked, user.Username+" "+verb+" "+namespace+"/"+name)
	return slices.Contains(r.verbs, verb), r.err
}

func annotated(key, value string) func(*flightsv1.FlightTicket) {
	return func(ft *flightsv1.FlightTicket) {
		if ft.Annotations == nil {
			ft.Annotations = map[string]string{}
		}
		ft.Annotations[key] = value
	}
}

func holding(id string) func(*flightsv1.FlightTicket) {
	return func(ft *flightsv1.FlightTicket) { ft.Status.Booking = &flightsv1.BookingStatus{ID: id} }
}

func operating(id string, kind flightsv1.OperationKind) func(*flightsv1.FlightTicket) {
	return func(ft *flightsv1.FlightTicket) {
		ft.Status.Operation = &flightsv1.OperationStatus{ID: id, Kind: kind}
	}
}

func deleting(ft *flightsv1.FlightTicket) {
	now := metav1.Unix(1800000000, 0)
	ft.DeletionTimestamp = &now
}

const (
	adopt   = flightsv1.AdoptBookingAnnotation
	resolve = flightsv1.ResolveOperationAnnotation
	retain  = flightsv1.RetainBookingAnnotation
)

// decisionCase is an update, or a create where there is no old ticket, by somebody who has every verb.
type decisionCase struct {
	old, now []func(*flightsv1.FlightTicket)
	create   bool
	want     string // part of the message; empty means allowed
	asked    string // the verbs that the API server is asked about
}

type changes = []func(*flightsv1.FlightTicket)

func decisionCases() map[string]decisionCase {
	cancelled := func(ft *flightsv1.FlightTicket) {
		now := metav1.Unix(1800000000, 0)
		ft.Status.Booking.CancelledAt = &now
	}
	accepted := func(ft *flightsv1.FlightTicket) { ft.Status.Operation.BookingID = "bk_1" }
	long := strings.Repeat("x", maxBookingID)
	return map[string]decisionCase{
		"a ticket adopts a booking at its creation":              {create: true, now: changes{annotated(adopt, "bk_1")}, asked: "adopt"},
		"a ticket without a booking adopts one":                  {now: changes{annotated(adopt, "bk_1")}, asked: "adopt"},
		"another booking is adopted instead":                     {old: changes{annotated(adopt, "bk_1")}, now: changes{annotated(adopt, "bk_2")}, asked: "adopt"},
		"an adoption that stays as it is asks nobody":            {old: changes{annotated(adopt, "bk_1"), holding("bk_1")}, now: changes{annotated(adopt, "bk_1")}},
		"an adoption may be taken away":                          {old: changes{annotated(adopt, "bk_1")}},
		"an empty adoption decides nothing":                      {old: changes{annotated(adopt, "bk_1")}, now: changes{annotated(adopt, "")}},
		"a ticket with a booking adopts no other":                {old: changes{holding("bk_1")}, now: changes{annotated(adopt, "bk_2")}, want: "has booking bk_1 already", asked: "adopt"},
		"a ticket that is being deleted adopts nothing":          {old: changes{deleting}, now: changes{deleting, annotated(adopt, "bk_1")}, want: "takes no booking over", asked: "adopt"},
		"the longest id of a booking":                            {now: changes{annotated(adopt, long)}, asked: "adopt"},
		"an id of a booking that is too long":                    {now: changes{annotated(adopt, long+"x")}, want: "is no booking's id", asked: "adopt"},
		"an id of a booking with a blank":                        {now: changes{annotated(adopt, "bk 1")}, want: "is no booking's id", asked: "adopt"},
		"an id of a booking with a control character":            {now: changes{annotated(adopt, "bk\x1b[2J")}, want: "is no booking's id", asked: "adopt"},
		"an id of a booking that nobody can see":                 {now: changes{annotated(adopt, "bk\u200b1")}, want: "is no booking's id", asked: "adopt"},
		"the ticket's own booking is retained":                   {old: changes{holding("bk_1")}, now: changes{holding("bk_1"), annotated(retain, "bk_1")}, asked: "retain"},
		"the booking of a ticket that is being deleted":          {old: changes{holding("bk_1"), deleting}, now: changes{deleting, annotated(retain, "bk_1")}, asked: "retain"},
		"another booking than the ticket's can't be retained":    {old: changes{holding("bk_1")}, now: changes{annotated(retain, "bk_2")}, want: "the ticket's booking is bk_1 and not bk_2", asked: "retain"},
		"a ticket without a booking retains none":                {now: changes{annotated(retain, "bk_1")}, want: "has no booking that could stay", asked: "retain"},
		"a booking that is cancelled can't be retained":          {old: changes{holding("bk_1"), cancelled}, now: changes{annotated(retain, "bk_1")}, want: "has no booking that could stay", asked: "retain"},
		"a new ticket retains nothing":                           {create: true, now: changes{annotated(retain, "bk_1")}, want: "a new ticket has no booking yet", asked: "retain"},
		"the open operation is not done":                         {old: changes{operating("op1", flightsv1.OperationBook)}, now: changes{annotated(resolve, "op1 not-done")}, asked: "resolve"},
		"the open operation is done and its booking named":       {old: changes{operating("op1", flightsv1.OperationBook)}, now: changes{annotated(resolve, "op1 done bk_1")}, asked: "resolve"},
		"the open operation of a ticket that is being deleted":   {old: changes{operating("op1", flightsv1.OperationCancel), deleting}, now: changes{deleting, annotated(resolve, "op1 done")}, asked: "resolve"},
		"a book operation that is done names its booking":        {old: changes{operating("op1", flightsv1.OperationBook)}, now: changes{annotated(resolve, "op1 done")}, want: `name the booking that the operation made: "op1 done" and`, asked: "resolve"},
		"a book operation whose booking is known needs no name":  {old: changes{operating("op1", flightsv1.OperationBook), accepted}, now: changes{annotated(resolve, "op1 done")}, asked: "resolve"},
		"an operation that is over can't be resolved":            {old: changes{operating("op2", flightsv1.OperationBook)}, now: changes{annotated(resolve, "op1 not-done")}, want: `the open operation is op2 and not "op1"`, asked: "resolve"},
		"a ticket without an open operation has none to resolve": {now: changes{annotated(resolve, "op1 not-done")}, want: "has no open operation", asked: "resolve"},
		"a new ticket has no operation to resolve":               {create: true, now: changes{annotated(resolve, "op1 not-done")}, want: "a new ticket has no open operation", asked: "resolve"},
		"a cancellation makes no booking":                        {old: changes{operating("op1", flightsv1.OperationCancel)}, now: changes{annotated(resolve, "op1 done bk_1")}, want: `write "op1 done"`, asked: "resolve"},
		"a resolution in no known form":                          {old: changes{operating("op1", flightsv1.OperationBook)}, now: changes{annotated(resolve, "op1 perhaps")}, want: "is not an operation's id and then", asked: "resolve"},
		"a resolution that names something that is no booking":   {old: changes{operating("op1", flightsv1.OperationBook)}, now: changes{annotated(resolve, "op1 done bk\u200b1")}, want: "is no booking's id", asked: "resolve"},
		"a poll interval takes no verb":                          {now: changes{annotated(flightsv1.PollIntervalAnnotation, "30m")}},
		"a poll interval that would burn the provider's quota":   {now: changes{annotated(flightsv1.PollIntervalAnnotation, "1s")}, want: "below the least interval"},
		"a poll interval that is none":                           {create: true, now: changes{annotated(flightsv1.PollIntervalAnnotation, "often")}, want: "is not a duration"},
		"a poll interval that was stored before the rule":        {old: changes{annotated(flightsv1.PollIntervalAnnotation, "1s")}, now: changes{annotated(flightsv1.PollIntervalAnnotation, "1s")}},
		"a poll interval may be taken away":                      {old: changes{annotated(flightsv1.PollIntervalAnnotation, "1s")}},
		"all decisions of one update are checked":                {old: changes{holding("bk_1")}, now: changes{annotated(adopt, "bk_2"), annotated(resolve, "op1 done"), annotated(retain, "bk_2")}, want: "3 reasons:", asked: "adopt resolve retain"},
		"a decision and a wrong spec are told together":          {now: changes{annotated(retain, "bk_1"), func(ft *flightsv1.FlightTicket) { ft.Spec.To = "BOM" }}, want: "2 reasons:", asked: "retain"},
		"a decision can't smuggle a spec into a deletion":        {old: changes{holding("bk_1"), deleting}, now: changes{deleting, annotated(retain, "bk_1"), func(ft *flightsv1.FlightTicket) { ft.Spec.Number = 1 }}, want: "so its spec can't change", asked: "retain"},
	}
}

func (c decisionCase) review(t *testing.T, w *world) (allowed bool, code int32, message string) {
	t.Helper()
	now := ticket(c.now...)
	req := create(t, "FlightTicket", now)
	if !c.create {
		req = update(t, "FlightTicket", ticket(c.old...), now)
	}
	got := w.review(t, PathValidateTicket, req)
	return got.Allowed, got.Result.Code, got.Result.Message
}

func TestADecisionNamesWhatTheTicketHas(t *testing.T) {
	for name, c := range decisionCases() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.rights.verbs = []string{"adopt", "resolve", "retain"}
			allowed, code, message := c.review(t, w)
			if allowed != (c.want == "") || !strings.Contains(message, c.want) {
				t.Errorf("allowed = %v, message %q; want %q", allowed, message, c.want)
			}
			if !allowed && code != http.StatusForbidden {
				t.Errorf("the code is %d", code)
			}
			var asked []string
			for _, verb := range strings.Fields(c.asked) {
				asked = append(asked, "asha "+verb+" team-a/my-flight-ticket")
			}
			if diff := cmp.Diff(asked, w.rights.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADecisionTakesItsOwnVerb(t *testing.T) {
	others := map[string][]string{"adopt": {"resolve", "retain"}, "resolve": {"adopt", "retain"}, "retain": {"adopt", "resolve"}}
	for verb, c := range map[string]decisionCase{
		"adopt":   decisionCases()["a ticket without a booking adopts one"],
		"resolve": decisionCases()["the open operation of a ticket that is being deleted"],
		"retain":  decisionCases()["the booking of a ticket that is being deleted"],
	} {
		t.Run(verb, func(t *testing.T) {
			w := newWorld(t)
			w.rights.verbs = others[verb]
			allowed, code, message := c.review(t, w)
			want := `user "asha" lacks the verb ` + verb + " on FlightTicket my-flight-ticket in namespace team-a"
			rule := `{apiGroups: ["flights.com"], resources: ["flighttickets"], verbs: ["` + verb + `"]}`
			if allowed || code != http.StatusForbidden || !strings.Contains(message, want) || !strings.Contains(message, rule) {
				t.Errorf("allowed = %v, code %d, message %q", allowed, code, message)
			}
		})
		t.Run(verb+" that nobody can tell about", func(t *testing.T) {
			w := newWorld(t)
			w.rights.verbs, w.rights.err = []string{verb}, errors.New("connection refused")
			allowed, code, message := c.review(t, w)
			if allowed || code != http.StatusInternalServerError || !strings.Contains(message, "the verb "+verb+": connection refused") {
				t.Errorf("allowed = %v, code %d, message %q", allowed, code, message)
			}
		})
	}
}

// A stuck ticket must be mendable though a younger policy would refuse it.
func TestPoliciesAreNotAskedAboutDecisions(t *testing.T) {
	for name, c := range map[string]decisionCase{
		"adopt":   decisionCases()["a ticket without a booking adopts one"],
		"resolve": decisionCases()["the open operation is not done"],
		"retain":  decisionCases()["the ticket's own booking is retained"],
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rego("few-seats", fewSeats, flightsv1.EnforcementEnforce))
			w.rights.verbs = []string{name}
			if allowed, _, message := c.review(t, w); !allowed {
				t.Errorf("refused: %s", message)
			}
		})
	}
}

func TestTheRightsThatWereAskedAreCounted(t *testing.T) {
	w := newWorld(t)
	c := decisionCases()["a ticket without a booking adopts one"]
	c.review(t, w)
	w.rights.verbs = []string{"adopt"}
	c.review(t, w)
	w.rights.err = errors.New("gone")
	c.review(t, w)
	for _, result := range []string{resultAllowed, resultDenied, resultUndecided} {
		if got := w.counted(t, "flight_operator_decision_rights_total", map[string]string{"verb": "adopt", "result": result}); got != 1 {
			t.Errorf("%s is counted %v times", result, got)
		}
	}
}

func TestWhoDecidedIsStampedAndCannotBeForged(t *testing.T) {
	by := func(who string) func(*flightsv1.FlightTicket) { return annotated(flightsv1.DecidedByAnnotation, who) }
	for name, c := range map[string]struct {
		old, now changes
		create   bool
		want     string
	}{
		"a decision names its user":                              {now: changes{annotated(adopt, "bk_1")}, want: "asha"},
		"a decision that claims another user":                    {now: changes{annotated(adopt, "bk_1"), by("root")}, want: "asha"},
		"another decision names the later user":                  {old: changes{annotated(retain, "bk_1"), by("ben")}, now: changes{annotated(retain, "bk_2"), by("ben")}, want: "asha"},
		"a decision about a ticket that is being deleted":        {old: changes{deleting}, now: changes{deleting, annotated(retain, "bk_1")}, want: "asha"},
		"a decision that stays keeps its user":                   {old: changes{annotated(resolve, "op1 done"), by("ben")}, now: changes{annotated(resolve, "op1 done"), by("ben")}, want: "ben"},
		"a forged user under a decision that stays":              {old: changes{annotated(resolve, "op1 done"), by("ben")}, now: changes{annotated(resolve, "op1 done"), by("root")}, want: "ben"},
		"a user that is taken away is put back":                  {old: changes{annotated(resolve, "op1 done"), by("ben")}, now: changes{annotated(resolve, "op1 done")}, want: "ben"},
		"a forged user without a decision":                       {now: changes{by("root")}},
		"a decision that is taken away keeps who made it":        {old: changes{annotated(adopt, "bk_1"), by("ben")}, now: changes{by("asha")}, want: "ben"},
		"a replace that drops all annotations keeps who decided": {old: changes{annotated(adopt, "bk_1"), by("ben")}, want: "ben"},
		"a new ticket with a decision":                           {create: true, now: changes{annotated(adopt, "bk_1"), by("root")}, want: "asha"},
		"a new ticket without one":                               {create: true, now: changes{by("root")}},
		"a new ticket with an empty one":                         {create: true, now: changes{annotated(adopt, ""), by("root")}},
	} {
		t.Run(name, func(t *testing.T) {
			req := create(t, "FlightTicket", ticket(c.now...))
			if !c.create {
				req = update(t, "FlightTicket", ticket(c.old...), ticket(c.now...))
			}
			got, after := normalised(t, req)
			if who, has := got.Annotations[flightsv1.DecidedByAnnotation]; who != c.want || has != (c.want != "") {
				t.Errorf("decided by %q, want %q", who, c.want)
			}
			req.Object.Raw = after
			if again := newWorld(t).review(t, PathMutateTicket, req); len(again.Patch) != 0 {
				t.Errorf("a second run patches: %s", again.Patch)
			}
		})
	}
}
