package lifecycle_test

import (
	"testing"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// going is a ticket that is being deleted, knows of no booking, and whose status was written before.
func going() lifecycle.Observation {
	return with(unbooked(), func(o *lifecycle.Observation) {
		o.Ticket.Deleting, o.Ticket.Status.ObservedGeneration = true, 1
	})
}

// forgotten is one whose status was lost, or never written.
func forgotten() lifecycle.Observation {
	return with(going(), func(o *lifecycle.Observation) { o.Ticket.Status.ObservedGeneration = -1 })
}

func unanswered(o *lifecycle.Observation) {
	o.Heard.Owner = &lifecycle.Listing{Err: failure(booking.ClassUnavailable, "connection_refused")}
}

func TestATicketThatKnowsOfNoBookingAsksBeforeItGoes(t *testing.T) {
	decide(t, map[string]decision{
		"the owner is asked for": {seen: going(), action: lifecycle.LookupOwner},
		"a ticket without bookings goes": {
			seen:   with(going(), func(o *lifecycle.Observation) { o.Heard.Owner = &lifecycle.Listing{} }),
			action: lifecycle.RemoveFinalizer,
		},
		"a live booking that its status lost is taken up, to be cancelled": {
			seen:   with(forgotten(), func(o *lifecycle.Observation) { o.Heard.Owner = ownListing(o, booking.StatusConfirmed) }),
			action: lifecycle.Record, reason: flightsv1.ReasonCancelling,
		},
		"a pending one is waited for": {
			seen:   with(forgotten(), func(o *lifecycle.Observation) { o.Heard.Owner = ownListing(o, booking.StatusPending) }),
			action: lifecycle.Wait, reason: flightsv1.ReasonOperationPending, after: time.Minute,
		},
		"a cancelled one is none": {
			seen:   with(forgotten(), func(o *lifecycle.Observation) { o.Heard.Owner = ownListing(o, booking.StatusCancelled) }),
			action: lifecycle.RemoveFinalizer,
		},
		"one of another incarnation is not cancelled": {
			seen: with(going(), func(o *lifecycle.Observation) {
				o.Heard.Owner = ownListing(o, booking.StatusConfirmed)
				o.Ticket.Names.UID = "uid-2"
			}),
			action: lifecycle.RemoveFinalizer,
		},
		"a failed look-up is no answer": {
			seen: with(going(), unanswered), action: lifecycle.Wait, reason: flightsv1.ReasonProviderNotReady, after: time.Second,
		},
		"a provider out of order doesn't hold a ticket that knows of no booking": {
			seen:   with(going(), func(o *lifecycle.Observation) { o.Provider.Ready = false }),
			action: lifecycle.RemoveFinalizer,
		},
		"a provider out of order holds a ticket whose status was lost": {
			seen:   with(forgotten(), func(o *lifecycle.Observation) { o.Provider.Ready = false }),
			action: lifecycle.Wait, reason: flightsv1.ReasonProviderNotReady, after: 10 * time.Minute,
		},
		"a provider that is being connected is waited for": {
			seen:   with(going(), func(o *lifecycle.Observation) { o.Provider.Ready, o.Provider.Connecting = false, true }),
			action: lifecycle.Wait, after: 2 * time.Second,
		},
		"a provider without look-up is not asked": {
			seen:   with(going(), func(o *lifecycle.Observation) { o.Provider.Lookup = false }),
			action: lifecycle.RemoveFinalizer,
		},
		"a list that lags doesn't bring back what was just cancelled": {
			seen: with(cancelled(), func(o *lifecycle.Observation) {
				b := asRead(*o)
				o.Heard.Owner = &lifecycle.Listing{Bookings: []booking.Booking{b}}
			}),
			action: lifecycle.RemoveFinalizer,
		},
		"an order that was booked twice is cancelled twice": {
			seen: with(cancelled(), func(o *lifecycle.Observation) {
				b := asRead(*o)
				b.ID = "b-twin"
				o.Heard.Owner = &lifecycle.Listing{Bookings: []booking.Booking{b}}
			}),
			action: lifecycle.Record, reason: flightsv1.ReasonCancelling,
		},
	})
}

// cancelled is a ticket whose booking was just cancelled.
func cancelled() lifecycle.Observation {
	o := leaving()
	o.Heard.Read.Booking.Status = booking.StatusCancelled
	o.Ticket.Status, o.Heard = lifecycle.Next(o).Status, lifecycle.Heard{}
	return affordable(o)
}

func TestATicketWhoseStatusWasLostStaysOneUntilItWasAskedAbout(t *testing.T) {
	o := with(forgotten(), unanswered)
	for range 3 {
		step := lifecycle.Next(o)
		if step.Action != lifecycle.Wait {
			t.Fatalf("got %s, want to wait for an answer", step.Action)
		}
		o.Ticket.Status = step.Status
	}
}
