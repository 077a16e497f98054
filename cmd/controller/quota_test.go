package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/internal/replica"
)

// No webhook runs beside these tests: every ticket is stored without a review, and only the second gate holds it.

// seatsQuota charges each ticket its seats in one bucket of its namespace.
func seatsQuota(limit int, retain bool) string {
	return fmt.Sprintf(`package seats

quota contains {"key": "seats", "scope": "Namespace", "amount": input.ticket.spec.number, "limit": %d, "retain": %t}
`, limit, retain)
}

// quota puts a policy in force for the test's namespace.
func (p *place) quota(spec flightsv1.FlightPolicySpec) *flightsv1.FlightPolicy {
	p.Helper()
	spec.Match.Namespaces = []string{p.namespace}
	policy := &flightsv1.FlightPolicy{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Spec: spec}
	if err := admin.Create(p.ctx, policy); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		if err := client.IgnoreNotFound(admin.Delete(context.Background(), policy)); err != nil {
			p.Error(err)
		}
	})
	return policy
}

func (p *place) seats(limit int, retain bool) *flightsv1.FlightPolicy {
	p.Helper()
	return p.quota(flightsv1.FlightPolicySpec{Rego: seatsQuota(limit, retain)})
}

// replace stores another spec of a policy.
func (p *place) replace(policy *flightsv1.FlightPolicy) {
	p.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"rego":%q}}`, policy.Spec.Rego))
	if err := admin.Patch(p.ctx, policy, patch); err != nil {
		p.Fatal(err)
	}
}

// named creates a ticket of a name. A suspended one is stored and not booked.
func (p *place) named(name string, edit func(*flightsv1.FlightTicketSpec)) *flightsv1.FlightTicket {
	p.Helper()
	return p.apply(func(t *flightsv1.FlightTicket) {
		t.Name = name
		if edit != nil {
			edit(&t.Spec)
		}
	})
}

// is waits until the ticket of a name has a reason, and a message that says all of these.
func (p *place) is(name, reason string, says ...string) *flightsv1.FlightTicket {
	p.Helper()
	return p.until(name+" "+reason, func(t *flightsv1.FlightTicket) bool {
		ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
		if t.Name != name || ready == nil || ready.Reason != reason || ready.ObservedGeneration != t.Generation {
			return false
		}
		for _, part := range says {
			if !strings.Contains(ready.Message, part) {
				return false
			}
		}
		return true
	})
}

// calls fails unless the provider was asked so often.
func (p *place) calls(op simulator.Operation, want int) {
	p.Helper()
	if got := p.sim.Count(op); got != want {
		p.Errorf("%d %s calls, want %d", got, op, want)
	}
}

func TestOfTicketsBeyondALoweredLimitTheOldestIsBooked(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	policy := p.seats(4, false)
	suspended := func(s *flightsv1.FlightTicketSpec) { s.Suspend = true }
	first, second := p.named("one", suspended), p.named("two", suspended)
	if second.CreationTimestamp.Equal(&first.CreationTimestamp) && second.UID < first.UID {
		first, second = second, first // both of one second: the UID decides
	}
	p.is(first.Name, flightsv1.ReasonSuspended)
	p.is(second.Name, flightsv1.ReasonSuspended)
	policy.Spec.Rego = seatsQuota(3, false)
	p.replace(policy)
	p.patch(second, `{"spec":{"suspend":false}}`)
	waits := p.is(second.Name, flightsv1.ReasonQuotaExceeded, "requested 2, limit 3, used 2, reserved 0, left 1")
	if waits.Status.State != flightsv1.StateStalled || meta.IsStatusConditionTrue(waits.Status.Conditions, flightsv1.ConditionQuotaHeld) {
		t.Errorf("it says %s", describe(waits))
	}
	p.calls(simulator.OpQuote, 0)
	p.patch(first, `{"spec":{"suspend":false}}`)
	p.is(first.Name, flightsv1.ReasonBooked)
	p.is(second.Name, flightsv1.ReasonQuotaExceeded)
	p.live(1)
	p.remove(first)
	p.is(second.Name, flightsv1.ReasonBooked)
	p.live(1)
	p.calls(simulator.OpBook, 2)
}

func TestATicketThatNobodyReviewedIsNotBookedBeyondTheLimit(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	p.seats(2, false)
	ticket := p.named("large", func(s *flightsv1.FlightTicketSpec) { s.Number = 3 })
	p.is("large", flightsv1.ReasonQuotaExceeded, "requested 3, limit 2, used 0")
	p.calls(simulator.OpQuote, 0)
	p.patch(ticket, `{"spec":{"number":2}}`)
	p.is("large", flightsv1.ReasonBooked)
	p.patch(ticket, `{"spec":{"number":4}}`)
	held := p.is("large", flightsv1.ReasonQuotaExceeded, "the booking stays as it is", "requested 4, limit 2")
	if held.Status.Booking == nil || held.Status.Booking.Order.Seats != 2 {
		t.Errorf("the old booking doesn't stand: %+v", held.Status.Booking)
	}
	p.calls(simulator.OpChange, 0)
	p.remove(ticket)
	p.untilGone()
	p.live(0)
}

func TestWhatATicketTookStaysTakenWhenItIsGone(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	policy := p.seats(3, true)
	unbooked := p.named("unbooked", func(s *flightsv1.FlightTicketSpec) { s.Suspend = true })
	p.bucket(func(b *flightsv1.QuotaBucket) bool { return b.Used == 2 })
	p.remove(unbooked)
	p.untilGone()
	first := p.named("first", nil)
	p.is("first", flightsv1.ReasonBooked)
	p.remove(first)
	p.untilGone()
	p.live(0)
	bucket := p.bucket(func(b *flightsv1.QuotaBucket) bool { return b.Used == 0 })
	if bucket.Retained != 2 {
		t.Fatalf("the bucket holds %+v, want 2 retained", bucket)
	}
	ticket := p.named("second", nil)
	p.is("second", flightsv1.ReasonQuotaExceeded, "kept for tickets that are gone 2")
	if err := admin.Delete(p.ctx, policy); err != nil {
		t.Fatal(err)
	}
	p.is("second", flightsv1.ReasonBooked)
	p.remove(ticket)
	p.untilGone()
	p.live(0)
}

// bucket waits until a bucket of the test's namespace is as wanted.
func (p *place) bucket(wanted func(*flightsv1.QuotaBucket) bool) *flightsv1.QuotaBucket {
	p.Helper()
	watch, err := admin.Watch(p.ctx, &flightsv1.QuotaBucketList{}, client.InNamespace(p.namespace))
	if err != nil {
		p.Fatal(err)
	}
	defer watch.Stop()
	var last *flightsv1.QuotaBucket
	for event := range watch.ResultChan() {
		if b, ok := event.Object.(*flightsv1.QuotaBucket); ok {
			if last = b; wanted(b) {
				return b
			}
		}
	}
	p.Fatalf("no bucket is as wanted; the last was %+v", last)
	return nil
}

// The flight is known when there is an offer: both tickets are admitted, and both are made the same offer at once.
func TestTwoTicketsThatRaceForTheLastSeatsOfAFlightAreNotBothBooked(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	p.served(p.quota(flightsv1.FlightPolicySpec{
		Library: "quota-travellers-per-flight", Parameters: &apiextensionsv1.JSON{Raw: []byte(`{"max":3,"scope":"Namespace"}`)},
	}))
	onOneDay := func(s *flightsv1.FlightTicketSpec) {
		s.From, s.To, s.Suspend = "BOM", "LHR", true
		s.DepartureDate = flightsv1.Date(time.Now().AddDate(0, 1, 0).Format(time.DateOnly))
	}
	tickets := map[string]*flightsv1.FlightTicket{"one": p.named("one", onOneDay), "two": p.named("two", onOneDay)}
	for name, ticket := range tickets {
		p.is(name, flightsv1.ReasonSuspended)
		p.patch(ticket, `{"spec":{"suspend":false}}`)
	}
	waits := p.until("one that waits", func(t *flightsv1.FlightTicket) bool {
		ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
		return ready != nil && ready.Reason == flightsv1.ReasonQuotaExceeded
	})
	other := map[string]string{"one": "two", "two": "one"}[waits.Name]
	booked := p.is(other, flightsv1.ReasonBooked)
	if flights := booked.Status.Booking.Segments; len(flights) == 0 || flights[0].FlightNumber == "" || flights[0].DepartsAt == "" {
		t.Errorf("the booking doesn't tell its flights: %+v", booked.Status.Booking)
	}
	p.live(1)
	p.remove(tickets[other])
	p.is(waits.Name, flightsv1.ReasonBooked)
	p.live(1)
	p.calls(simulator.OpBook, 2)
}

// served lets a replica of the webhook report that it serves a policy, and waits until the policy's quotas are in force.
func (p *place) served(policy *flightsv1.FlightPolicy) {
	p.Helper()
	reports := replica.NewPublisher(replica.PublisherOptions{
		Client: admin, Namespace: systemNamespace, Replica: p.namespace,
		Report:   func() replica.Report { return p.reportOfAll() },
		Synced:   func() bool { return true },
		CaughtUp: func(context.Context) error { return nil }, Clock: clock.RealClock{},
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- reports.Start(ctx) }()
	p.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			p.Error(err)
		}
	})
	options := &client.ListOptions{Raw: &metav1.ListOptions{FieldSelector: "metadata.name=" + policy.Name}}
	watch, err := admin.Watch(p.ctx, &flightsv1.FlightPolicyList{}, options)
	if err != nil {
		p.Fatal(err)
	}
	defer watch.Stop()
	var last *flightsv1.FlightPolicy
	for event := range watch.ResultChan() {
		if seen, ok := event.Object.(*flightsv1.FlightPolicy); ok {
			if last = seen; meta.IsStatusConditionTrue(seen.Status.Conditions, flightsv1.ConditionReady) {
				return
			}
		}
	}
	p.Fatalf("the policy is not in force: %+v", last)
}

// reportOfAll says that every policy is served as it stands.
func (p *place) reportOfAll() replica.Report {
	var all flightsv1.FlightPolicyList
	if err := admin.List(context.Background(), &all); err != nil {
		p.Error(err)
	}
	report := replica.Report{}
	for _, policy := range all.Items {
		report[replica.KeyOf(policy.UID)] = replica.Policy{Generation: policy.Generation, Digest: fmt.Sprint(policy.Generation)}
	}
	return report
}
