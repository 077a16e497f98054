package lifecycle_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// due is a booked ticket whose booking is to be read again, and that was read as edited by the test.
func due(edit func(*booking.Booking)) lifecycle.Observation {
	return with(booked(), func(o *lifecycle.Observation) {
		b := asRead(*o)
		edit(&b)
		o.Heard.Read = &lifecycle.Reading{AskedAt: o.Now, KnownFor: time.Hour, Booking: b}
	})
}

// unread is one whose booking could not be read.
func unread(err *booking.CallError, knownFor time.Duration) lifecycle.Observation {
	return with(booked(), func(o *lifecycle.Observation) {
		o.LookIn = -time.Second
		o.Heard.Read = &lifecycle.Reading{AskedAt: o.Now, KnownFor: knownFor, Err: err}
	})
}

func asItWas(*booking.Booking) {}

func reseated(b *booking.Booking) { b.Order.Seats = 5 }

func TestABookingIsLookedAfter(t *testing.T) {
	recent := func(o lifecycle.Observation) lifecycle.Observation {
		o.Heard.Read.KnownFor = o.Provider.ReadLag
		return o
	}
	decide(t, map[string]decision{
		"it is read when its time has come": {
			seen: with(booked(), func(o *lifecycle.Observation) { o.LookIn = 0 }), action: lifecycle.ReadBooking,
		},
		"it is read when a person asks": {
			seen: with(booked(), func(o *lifecycle.Observation) { o.Ticket.ReconcileRequestedAt = "now" }), action: lifecycle.ReadBooking,
		},
		"shown as it was it stays ready": {
			seen: due(asItWas), action: lifecycle.Wait, reason: flightsv1.ReasonBooked, after: pollInterval,
		},
		"changed by somebody": {
			seen: due(reseated), action: lifecycle.Wait, reason: flightsv1.ReasonDrifted, after: pollInterval,
			mood: flightsv1.ConditionStalled,
		},
		"changed, as a read shows that may be older than what was recorded": {
			seen: recent(due(reseated)), action: lifecycle.Wait, reason: flightsv1.ReasonBooked, after: 2 * time.Second,
		},
		"cancelled by somebody": {
			seen:   due(func(b *booking.Booking) { b.Status = booking.StatusCancelled }),
			action: lifecycle.Wait, reason: flightsv1.ReasonDrifted, after: pollInterval, mood: flightsv1.ConditionStalled,
		},
		"cancelled, as a read shows that may be older than what was recorded": {
			seen:   recent(due(func(b *booking.Booking) { b.Status = booking.StatusCancelled })),
			action: lifecycle.Wait, reason: flightsv1.ReasonBooked, after: 2 * time.Second,
		},
		"of another ticket": {
			seen:   due(func(b *booking.Booking) { b.Names.ClientReference = "prod/uid-9/1" }),
			action: lifecycle.Wait, reason: flightsv1.ReasonDrifted, after: pollInterval,
		},
		"worked on by the provider": {
			seen:   due(func(b *booking.Booking) { b.Status = booking.StatusPending }),
			action: lifecycle.Wait, reason: flightsv1.ReasonBooked, after: 2 * time.Second,
		},
		"missing for good": {
			seen:   unread(failure(booking.ClassNotFound, "booking_not_found"), time.Hour),
			action: lifecycle.Wait, reason: flightsv1.ReasonDrifted, after: pollInterval,
		},
		"missing while reads may lag": {
			seen:   unread(failure(booking.ClassNotFound, "booking_not_found"), time.Second),
			action: lifecycle.Wait, reason: flightsv1.ReasonBooked, after: 2 * time.Second,
		},
		"unreadable it stays ready": {
			seen:   unread(failure(booking.ClassUnavailable, "http_503"), time.Hour),
			action: lifecycle.Wait, reason: flightsv1.ReasonBooked, after: time.Second,
		},
		"a provider out of order doesn't make it unready": {
			seen: with(booked(), func(o *lifecycle.Observation) {
				o.LookIn, o.Provider.Ready, o.Provider.Trouble = 0, false, "is down"
			}), action: lifecycle.Wait, reason: flightsv1.ReasonBooked, after: pollInterval,
		},
		"nor does another account": {
			seen:   with(booked(), func(o *lifecycle.Observation) { o.LookIn, o.Provider.Identity.Account = 0, "acct-8" }),
			action: lifecycle.Wait, reason: flightsv1.ReasonBooked, after: pollInterval,
		},
		"a suspended ticket's is read too": {
			seen: with(booked(), func(o *lifecycle.Observation) {
				o.LookIn, o.Ticket.Suspend, o.Ticket.Wanted.Seats = 0, true, 4
			}), action: lifecycle.ReadBooking,
		},
	})
}

// adrift is a booked ticket whose last look found the booking changed.
func adrift() lifecycle.Observation {
	o := due(reseated)
	o.Ticket.Status, o.Heard = lifecycle.Next(o).Status, lifecycle.Heard{}
	return o
}

func TestDriftIsToldOnceAndEndsWhenTheBookingIsAsItWas(t *testing.T) {
	told := lifecycle.Next(due(reseated))
	if told.Event == nil || !told.Event.Warning {
		t.Fatalf("told %+v", told.Event)
	}
	o := adrift()
	if between := lifecycle.Next(o); between.Event != nil || !equality.Semantic.DeepEqual(between.Status, o.Ticket.Status) {
		t.Errorf("between two looks it says something else: %+v", between.Event)
	}
	o.Heard.Read = due(reseated).Heard.Read
	if again := lifecycle.Next(o); again.Event != nil || !equality.Semantic.DeepEqual(again.Status, o.Ticket.Status) {
		t.Errorf("seen again it is told again: %+v", again.Event)
	}
	o.Heard.Read = due(asItWas).Heard.Read
	right := lifecycle.Next(o)
	if right.Event == nil || !meta.IsStatusConditionTrue(right.Status.Conditions, flightsv1.ConditionReady) {
		t.Errorf("shown as it was the ticket is not ready again: %+v", right.Event)
	}
}

func TestADriftedTicketWhoseSpecChangesIsLookedAtAtOnce(t *testing.T) {
	o := with(adrift(), func(o *lifecycle.Observation) { o.Ticket.Generation++ })
	if step := lifecycle.Next(o); step.Action != lifecycle.ReadBooking {
		t.Errorf("got %s", step.Action)
	}
}

func TestALookThatFindsNothingNewWritesNothing(t *testing.T) {
	o := due(asItWas)
	if step := lifecycle.Next(o); !equality.Semantic.DeepEqual(step.Status, o.Ticket.Status) || step.Event != nil {
		t.Errorf("it writes %+v and tells %+v", step.Status, step.Event)
	}
}

func TestARequestIsHandledOnceTheBookingIsRead(t *testing.T) {
	ask := func(o *lifecycle.Observation) { o.Ticket.ReconcileRequestedAt = "now" }
	failed := lifecycle.Next(with(unread(failure(booking.ClassUnavailable, "http_503"), time.Hour), ask))
	if failed.Status.LastHandledReconcileAt != "" {
		t.Error("a request is handled though the booking could not be read")
	}
	for name, o := range map[string]lifecycle.Observation{"as it was": due(asItWas), "changed": due(reseated)} {
		step := lifecycle.Next(with(o, ask))
		if step.Status.LastHandledReconcileAt != "now" {
			t.Errorf("read %s, the request is not handled", name)
		}
		o.Ticket.Status, o.Heard = step.Status, lifecycle.Heard{}
		if again := lifecycle.Next(with(o, ask)); again.Action != lifecycle.Wait {
			t.Errorf("read %s, it is asked for twice: %s", name, again.Action)
		}
	}
}

func TestALookThatNobodyWaitsForIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		seen lifecycle.Observation
		want bool
	}{
		"a booked ticket":                    {booked(), true},
		"one that a person asked about":      {with(booked(), func(o *lifecycle.Observation) { o.Ticket.ReconcileRequestedAt = "x" }), false},
		"one that is to be changed":          {edited(), false},
		"one that is being deleted":          {leaving(), false},
		"one that is not booked":             {unbooked(), false},
		"one whose operation is open":        {sent(flightsv1.OperationChange, booking.Outcome{}), false},
		"one whose spec can't be understood": {with(booked(), func(o *lifecycle.Observation) { o.Ticket.Wanted = nil }), false},
	} {
		if got := c.seen.Looks(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
