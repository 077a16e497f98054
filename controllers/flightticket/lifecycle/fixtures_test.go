package lifecycle_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
)

// room is a limiter's yes.
var room = &lifecycle.Admission{}

// quotaRoom is what quotas say that have room.
var quotaRoom = lifecycle.QuotaAnswer{Kind: lifecycle.QuotaRoom}

// affordable has heard that the quotas have room, and keep nothing of the ticket.
func affordable(o lifecycle.Observation) lifecycle.Observation {
	o.Heard.Quotas, o.Heard.Hold, o.Heard.Departure = quotaRoom, quotaRoom, &lifecycle.Departure{}
	return o
}

// unbooked is a ticket that has its finalizer and nothing else, with all that it needs.
func unbooked() lifecycle.Observation {
	w := newWorld(script{}.choose)
	w.ticket.finalizer = true
	return affordable(w.observe(w.ticket))
}

// booked is a ticket that is booked as its spec asks.
func booked() lifecycle.Observation {
	w := newWorld(script{}.choose)
	w.run(3)
	w.clock = w.clock.Add(time.Hour)
	o := w.observe(w.ticket)
	o.LookIn = pollInterval
	return affordable(o)
}

// edited is a booked ticket whose spec asks for something else, and whose booking was just read.
func edited() lifecycle.Observation {
	o := booked()
	o.Ticket.Generation++
	o.Ticket.Wanted.Seats = 4
	o.Heard.Read = &lifecycle.Reading{AskedAt: o.Now, Booking: asRead(o)}
	return o
}

// leaving is a booked ticket that is being deleted, and whose booking was just read.
func leaving() lifecycle.Observation {
	o := booked()
	o.Ticket.Deleting = true
	o.Ticket.Generation++
	o.Heard.Read = &lifecycle.Reading{AskedAt: o.Now, Booking: asRead(o)}
	return o
}

// sent is a ticket whose operation of a kind this process wrote, and whose answer is heard.
func sent(kind flightsv1.OperationKind, out booking.Outcome) lifecycle.Observation {
	o := unbooked()
	switch kind {
	case flightsv1.OperationChange:
		o = edited()
	case flightsv1.OperationCancel:
		o = leaving()
	}
	o.Heard.Owner, o.Heard.Verdict.Kind, o.Heard.Room = &lifecycle.Listing{}, lifecycle.VerdictAllowed, room
	o.Heard.Offer = &lifecycle.Quotation{Offer: booking.Offer{ID: "q-1", Price: euros(100)}}
	step := lifecycle.Next(o)
	if step.Action != lifecycle.StartOperation || step.Status.Operation.Kind != kind {
		panic("no " + string(kind) + " operation was started: " + string(step.Action))
	}
	o.Ticket.Status, o.Fresh = step.Status, true
	o.Heard = lifecycle.Heard{Sent: &out}
	return o
}

func asRead(o lifecycle.Observation) booking.Booking {
	b := o.Ticket.Status.Booking
	return booking.Booking{
		ID: b.ID, Names: booking.Names{ClientReference: b.ClientReference, Owner: o.Ticket.Names.Owner()},
		Status: booking.StatusConfirmed, Version: b.Version, Order: b.Order,
	}
}

func euros(cents int64) money.Amount { return money.Amount{Minor: cents, Currency: "EUR"} }

func failure(class booking.Class, code string) *booking.CallError {
	return &booking.CallError{Class: class, Code: code, Detail: "words of the provider"}
}

// with edits an observation.
func with(o lifecycle.Observation, edit func(*lifecycle.Observation)) lifecycle.Observation {
	edit(&o)
	return o
}

// quoted has heard that nothing is booked, and an offer.
func quoted(o *lifecycle.Observation) {
	o.Heard.Owner = &lifecycle.Listing{AskedAt: o.Now}
	o.Heard.Offer = &lifecycle.Quotation{Offer: booking.Offer{ID: "q-1", Price: euros(91240)}}
}

func ownListing(o *lifecycle.Observation, status booking.Status) *lifecycle.Listing {
	return &lifecycle.Listing{AskedAt: o.Now, Bookings: []booking.Booking{{
		ID: "b-7", Status: status, Order: *o.Ticket.Wanted,
		Names: booking.Names{Owner: o.Ticket.Names.Owner(), ClientReference: o.Ticket.Names.ClientReference(7)},
	}}}
}

// decision is what is expected of one observation.
type decision struct {
	seen   lifecycle.Observation
	action lifecycle.Action
	reason string        // of Ready; empty: not looked at
	after  time.Duration // of a Wait
	mood   string        // the kstatus condition beside Ready; empty: not looked at
}

// late is long after everything that was sent.
func late(o *lifecycle.Observation) { o.Now, o.KnownFor = o.Now.Add(time.Hour), time.Hour }

func decide(t *testing.T, cases map[string]decision) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.check(t) })
	}
}

func (c decision) check(t *testing.T) {
	t.Helper()
	step := lifecycle.Next(c.seen)
	if step.Action != c.action || step.Action == lifecycle.Wait && step.After != c.after {
		t.Fatalf("got %s after %s, want %s after %s", step.Action, step.After, c.action, c.after)
	}
	if c.reason == "" {
		return
	}
	ready := meta.FindStatusCondition(step.Status.Conditions, flightsv1.ConditionReady)
	if ready == nil || ready.Reason != c.reason {
		t.Errorf("got %+v, want the reason %s", ready, c.reason)
	}
	for _, mood := range []string{flightsv1.ConditionReconciling, flightsv1.ConditionStalled} {
		is := meta.IsStatusConditionTrue(step.Status.Conditions, mood)
		if c.mood != "" && is != (mood == c.mood) {
			t.Errorf("%s is %t", mood, is)
		}
	}
}
