package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

func shadow(p *flightsv1.FlightPolicy) *flightsv1.FlightPolicy {
	p.Spec.Enforcement = flightsv1.EnforcementShadow
	return p
}

const holdMany = `package a

hold contains "ask your manager" if input.ticket.spec.number > 1

hold contains "ask the treasurer" if not input.ticket.spec.maxPrice
`

func TestDecideTellsWhatMustWaitForAnApproval(t *testing.T) {
	e := NewEngine(RuleHold)
	mustSet(t, e, regoPolicy("b", holdMany))
	mustSet(t, e, regoPolicy("a", holdMany))
	mustSet(t, e, warning(regoPolicy("w", holdMany)))
	mustSet(t, e, regoPolicy("n", "package a\n\nhold contains \"never\" if input.dryRun\n"))
	d := decide(t, e, request())
	want := Decision{
		Warnings: []Warning{{"w", "would wait for approval: ask the treasurer"}, {"w", "would wait for approval: ask your manager"}},
		Holds:    []Hold{{"a", "ask the treasurer"}, {"a", "ask your manager"}, {"b", "ask the treasurer"}, {"b", "ask your manager"}},
		Evaluated: []PolicyResult{{Policy: "a", Result: ResultHold}, {Policy: "b", Result: ResultHold},
			{Policy: "n", Result: ResultAllow}, {Policy: "w", Result: ResultWarn}},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	if !d.Allowed() {
		t.Error("a ticket that must wait isn't admitted")
	}
}

func TestHoldsAreBoundedAndReadStrictly(t *testing.T) {
	e := NewEngine(RuleHold)
	mustSet(t, e, regoPolicy("a", "package a\n\nhold contains word if some word in split(input.user.username, \" \")\n"))
	r := request()
	r.User.Username = "a b c d e f g h i j k l m n o p q r s t u v w"
	if d := decide(t, e, r); len(d.Holds) != maxMessages+1 || d.Holds[maxMessages].Message != "…and 3 more reasons" {
		t.Errorf("got %+v", d.Holds)
	}
	r.User.Username = "a  b"
	if d := decide(t, e, r); d.Allowed() || !strings.Contains(d.Denials[0].Message, "hold: an element is an empty text") || len(d.Holds) != 0 {
		t.Errorf("got %+v", d)
	}
}

// A Shadow policy is evaluated and tells nobody anything.
func TestShadowPoliciesAreRecordedAndRefuseNobody(t *testing.T) {
	e := NewEngine(Rules()...)
	all := denyMany + "\nwarn contains \"careful\"\n" + strings.TrimPrefix(holdMany, "package a\n") + strings.TrimPrefix(seatsQuota, "package a\n")
	mustSet(t, e, shadow(regoPolicy("s", all)))
	mustSet(t, e, shadow(regoPolicy("bad", "package a\n\ndeny contains msg if msg := trim(input.user.username, \"asha\")\n")))
	if err := e.Set(t.Context(), shadow(regoPolicy("broken", broken))); err == nil {
		t.Fatal("a broken policy was taken")
	}
	d := decide(t, e, request())
	if !d.Allowed() || len(d.Warnings)+len(d.Holds)+len(d.Claims)+len(d.WarnClaims)+len(d.BookingClaims) != 0 || len(d.Shadow) != 3 {
		t.Fatalf("got %+v", d)
	}
	if d.Shadow[0].Policy != "bad" || d.Shadow[0].Err == nil || d.Shadow[1].Policy != "broken" || d.Shadow[1].Err == nil {
		t.Errorf("got %+v", d.Shadow)
	}
	want := ShadowResult{
		Policy: "s", Denials: []Denial{{Policy: "s", Message: "2 seats are too many"}}, Warnings: []Warning{{"s", "careful"}},
		Holds:  []Hold{{"s", "ask the treasurer"}, {"s", "ask your manager"}},
		Claims: []quota.Claim{{Policy: "s", PolicyUID: "uid-of-policy", PolicyGeneration: 1, Key: "seats", Scope: quota.Namespace, Amount: 2, Limit: 10}},
	}
	if diff := cmp.Diff(want, d.Shadow[2]); diff != "" {
		t.Error(diff)
	}
	results := []string{d.Evaluated[0].Result, d.Evaluated[1].Result, d.Evaluated[2].Result}
	if diff := cmp.Diff([]string{ResultError, ResultError, ResultShadow}, results); diff != "" {
		t.Error(diff)
	}
}

func TestPoliciesConcernTicketsByTheirLabels(t *testing.T) {
	e := NewEngine()
	p := regoPolicy("a", denyMany)
	p.Spec.Match.TicketSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"class": "guest"}}
	mustSet(t, e, p)
	guest, other := map[string]string{"class": "guest", "x": "y"}, map[string]string{"class": "staff"}
	for _, c := range []struct {
		name     string
		now, old map[string]string
		want     bool
	}{
		{"a new ticket with the label", guest, nil, true},
		{"a new ticket without it", other, nil, false},
		{"a ticket that is given the label", guest, other, true},
		{"a ticket that the label is taken from", other, guest, true},
		{"a ticket that never had it", other, other, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request()
			r.Ticket.Labels = c.now
			if c.old != nil {
				r.Operation, r.OldTicket = flightsv1.OperationUpdate, r.Ticket.DeepCopy()
				r.OldTicket.Labels = c.old
			}
			if got := len(decide(t, e, r).Evaluated) == 1; got != c.want {
				t.Errorf("asked: %v, want %v", got, c.want)
			}
		})
	}
	p.Spec.Match.TicketSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
	if err := validate(t.Context(), p); err == nil || !strings.HasPrefix(err.Error(), `spec.match.ticketSelector: "Like" is not a valid`) {
		t.Errorf("got %v", err)
	}
}
