package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

// leftBehind is a booking whose ticket is gone and kept it.
func (p *place) leftBehind() string {
	p.Helper()
	ticket := p.apply(func(t *flightsv1.FlightTicket) { t.Spec.DeletionPolicy = flightsv1.DeletionPolicyRetain })
	id := p.untilBooked(2).Status.Booking.ID
	p.remove(ticket)
	p.untilGone()
	return id
}

// called waits for a ticket of that name that is as wanted.
func (p *place) called(name, what string, wanted func(*flightsv1.FlightTicket) bool) *flightsv1.FlightTicket {
	p.Helper()
	return p.until(name+" "+what, func(t *flightsv1.FlightTicket) bool { return t.Name == name && wanted(t) })
}

func saying(reason string) func(*flightsv1.FlightTicket) bool {
	return func(t *flightsv1.FlightTicket) bool { return readyOf(t) != nil && readyOf(t).Reason == reason }
}

func TestOneOfManyTicketsThatAdoptABookingGetsIt(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	id := p.leftBehind()
	for i := range 6 {
		p.apply(func(t *flightsv1.FlightTicket) {
			t.Name, t.Spec.Number = fmt.Sprintf("adopter-%d", i), 3
			t.Annotations = map[string]string{flightsv1.AdoptBookingAnnotation: id, flightsv1.DecidedByAnnotation: "olga"}
		})
	}
	var holders []*flightsv1.FlightTicket
	for i := range 6 {
		ticket := p.called(fmt.Sprintf("adopter-%d", i), "adopting or refused", func(t *flightsv1.FlightTicket) bool {
			return saying(flightsv1.ReasonAdoptionRefused)(t) || meta.IsStatusConditionTrue(t.Status.Conditions, flightsv1.ConditionReady)
		})
		if ticket.Status.Booking != nil {
			holders = append(holders, ticket)
		}
	}
	if len(holders) != 1 || holders[0].Status.Booking.ID != id || holders[0].Status.Booking.AdoptedBy != "olga" {
		t.Fatalf("%d tickets hold booking %s", len(holders), id)
	}
	if seats := p.sim.LiveBookings()[0].Order.Seats; seats != 3 {
		t.Errorf("the adopted booking has %d seats, want those of the spec", seats)
	}
	p.live(1)
	p.events("Adopted", "AdoptionRefused")
	p.remove(holders[0])
	p.until("no other ticket", func(*flightsv1.FlightTicket) bool { return len(p.sim.LiveBookings()) == 0 })
}

func TestABookingThatSomebodyChangedOrCancelledIsToldOfAndNotMended(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	ticket := p.apply(nil)
	id := p.untilBooked(2).Status.Booking.ID
	order := p.sim.LiveBookings()[0].Order
	order.Seats = 4
	if err := p.sim.ChangeOutside(id, order); err != nil {
		t.Fatal(err)
	}
	drifted := p.sync(ticket, "1", flightsv1.ReasonDrifted)
	if !strings.Contains(readyOf(drifted).Message, "seats 4 instead of 2") {
		t.Errorf("it says %q", readyOf(drifted).Message)
	}
	order.Seats = 2
	if err := p.sim.ChangeOutside(id, order); err != nil {
		t.Fatal(err)
	}
	p.sync(ticket, "2", flightsv1.ReasonBooked)
	if err := p.sim.CancelOutside(id); err != nil {
		t.Fatal(err)
	}
	gone := p.sync(ticket, "3", flightsv1.ReasonDrifted)
	if meta.IsStatusConditionTrue(gone.Status.Conditions, flightsv1.ConditionBooked) {
		t.Error("it says that the booking exists")
	}
	if changes, made := p.sim.Count(simulator.OpChange), p.sim.Totals().Made; changes != 0 || made != 1 {
		t.Errorf("%d changes were sent and %d bookings made, want none and 1", changes, made)
	}
	p.remove(ticket)
	p.untilGone()
}

// sync asks for a look at the booking, and waits until it is handled with a reason.
func (p *place) sync(ticket *flightsv1.FlightTicket, value, reason string) *flightsv1.FlightTicket {
	p.Helper()
	p.patch(ticket, fmt.Sprintf(`{"metadata":{"annotations":{"flights.com/reconcile-requested-at":%q}}}`, value))
	return p.until("handled as "+reason, func(t *flightsv1.FlightTicket) bool {
		return t.Status.LastHandledReconcileAt == value && saying(reason)(t)
	})
}

func TestOtherPeoplesEditsOfAWaitingTicketCauseNoCalls(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	p.inject(simulator.Fault{Operation: simulator.OpQuote, Effect: simulator.EffectErrorBefore})
	ticket := p.apply(nil)
	p.untilReason(flightsv1.ReasonProviderNotReady)
	const edits = 60
	for i := range edits {
		p.patch(ticket, fmt.Sprintf(`{"metadata":{"labels":{"edit":"%d"},"annotations":{"example.com/edit":"%d"}}}`, i, i))
	}
	// The pauses double: in the minutes that this test may last, fewer attempts than this fit.
	if quotes := p.sim.Count(simulator.OpQuote); quotes > 12 {
		t.Errorf("%d quotes were asked for during %d edits", quotes, edits)
	}
	p.sim.ClearFaults()
	p.patch(ticket, `{"metadata":{"annotations":{"flights.com/reconcile-requested-at":"now"}}}`)
	p.untilBooked(2)
	p.live(1)
}

func TestABookingIsKeptForATicketThatIsBeingDeleted(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	ticket := p.apply(nil)
	id := p.untilBooked(2).Status.Booking.ID
	p.inject(simulator.Fault{Operation: simulator.OpCancel, Effect: simulator.EffectRefuse})
	p.remove(ticket)
	p.until("refused", saying(flightsv1.ReasonCancellationRefused))
	p.patch(ticket, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, flightsv1.RetainBookingAnnotation, id))
	p.untilGone()
	p.live(1)
	p.events("CancellationRefused", "Retained")
}

func TestAPersonEndsAnOperationThatNobodyElseCanLookUp(t *testing.T) {
	// Keys that live for so short a time that sends stop after ten seconds.
	p := newPlace(t, simulator.Settings{IdempotencyKeyTTL: metav1.Duration{Duration: 20 * time.Second}},
		func(provider *flightsv1.BookingProvider) {
			provider.Spec.Capabilities.Lookup = ptr.To(false)
			provider.Spec.Timeout = metav1.Duration{Duration: time.Second}
		})
	p.inject(simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectDropAfter})
	ticket := p.apply(nil)
	unknown := p.until("left to a person", func(t *flightsv1.FlightTicket) bool {
		return saying(flightsv1.ReasonOutcomeUnknown)(t) && strings.Contains(readyOf(t).Message,
			"kubectl flights resolve my-flight-ticket -n "+p.namespace+" --not-done")
	})
	word := unknown.Status.Operation.ID + " done " + p.sim.LiveBookings()[0].Id
	p.patch(ticket, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, flightsv1.ResolveOperationAnnotation, word))
	p.untilBooked(2)
	p.live(1)
	if made := p.sim.Totals().Made; made != 1 {
		t.Errorf("%d bookings were made, want 1", made)
	}
	p.events("Resolved")
}
