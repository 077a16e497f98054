package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// spoken is an operation of a kind that was sent long ago, whose outcome is unknown, and of which a person says something.
func spoken(kind flightsv1.OperationKind, word string, edit func(*lifecycle.Observation)) lifecycle.Observation {
	return with(sent(kind, booking.Outcome{}), func(o *lifecycle.Observation) {
		o.Heard, o.Fresh = lifecycle.Heard{}, false
		o.Ticket.Status.Operation.Outcome = string(booking.Unknown)
		o.Ticket.Resolve = o.Ticket.Status.Operation.ID + " " + word
		o.Ticket.DecidedBy = "olga"
		late(o)
		edit(o)
	})
}

// shows has the booking of the operation read with a status.
func shows(status booking.Status) func(*lifecycle.Observation) {
	return func(o *lifecycle.Observation) {
		b := asRead(*o)
		b.Status = status
		o.Heard.Read = &lifecycle.Reading{AskedAt: o.Now, KnownFor: o.KnownFor, Booking: b}
	}
}

// names has a booking read that a person named as what came of a book operation.
func names(id, reference string, status booking.Status) func(*lifecycle.Observation) {
	return func(o *lifecycle.Observation) {
		o.Heard.Read = &lifecycle.Reading{AskedAt: o.Now, Booking: booking.Booking{
			ID: id, Status: status, Order: *o.Ticket.Wanted, Names: booking.Names{ClientReference: reference, Owner: o.Ticket.Names.Owner()},
		}}
	}
}

// blind can't look anything up.
func blind(o *lifecycle.Observation) { o.Provider.Lookup = false }

func TestAPersonsWordEndsAnOperation(t *testing.T) {
	unable := func(o *lifecycle.Observation) { blind(o); o.Provider.Ready = false }
	own := "prod/uid-1/1"
	decide(t, map[string]decision{
		"not done closes it": {
			seen: spoken(flightsv1.OperationBook, "not-done", blind), action: lifecycle.CloseOperation, reason: flightsv1.ReasonBooking,
		},
		"also while the provider can't be asked": {
			seen: spoken(flightsv1.OperationBook, "not-done", unable), action: lifecycle.CloseOperation,
		},
		"not done is looked up first where that can be done": {
			seen: spoken(flightsv1.OperationBook, "not-done", func(*lifecycle.Observation) {}), action: lifecycle.Find,
		},
		"not done counts though the look-up fails": {
			seen: spoken(flightsv1.OperationBook, "not-done", func(o *lifecycle.Observation) {
				o.Heard.Found = &lifecycle.Listing{Err: failure(booking.ClassUnavailable, "http_503")}
			}), action: lifecycle.CloseOperation,
		},
		"not done waits for our own limiter": {
			seen: spoken(flightsv1.OperationBook, "not-done", func(o *lifecycle.Observation) {
				o.Heard.Found = &lifecycle.Listing{Err: failure(booking.ClassUnavailable, booking.CodeRateLimited)}
				o.Heard.Found.Err.RetryAfter = 3 * time.Second
			}), action: lifecycle.Wait, after: 3 * time.Second,
		},
		"not done doesn't undo a booking that exists": {
			seen: spoken(flightsv1.OperationBook, "not-done", func(o *lifecycle.Observation) {
				o.Heard.Found = ownListing(o, booking.StatusConfirmed)
				o.Heard.Found.Bookings[0].Names.ClientReference = own
			}), action: lifecycle.Record, reason: flightsv1.ReasonBooked,
		},
		"done without a booking asks for one": {
			seen:   spoken(flightsv1.OperationBook, "done", blind),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: pollInterval, mood: flightsv1.ConditionStalled,
		},
		"done reads the booking": {seen: spoken(flightsv1.OperationBook, "done b-1", blind), action: lifecycle.ReadBooking},
		"done records the booking": {
			seen:   spoken(flightsv1.OperationBook, "done b-1", names("b-1", own, booking.StatusConfirmed)),
			action: lifecycle.Record, reason: flightsv1.ReasonBooked,
		},
		"a booking with another reference is not what came of it": {
			seen:   spoken(flightsv1.OperationBook, "done b-1", names("b-1", "prod/uid-1/2", booking.StatusConfirmed)),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: pollInterval,
		},
		"nor is one without a reference": {
			seen:   spoken(flightsv1.OperationBook, "done b-1", names("b-1", "", booking.StatusConfirmed)),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: pollInterval,
		},
		"nor is one that the provider doesn't show": {
			seen: spoken(flightsv1.OperationBook, "done b-1", func(o *lifecycle.Observation) {
				o.Heard.Read = &lifecycle.Reading{AskedAt: o.Now, Err: failure(booking.ClassNotFound, "booking_not_found")}
			}), action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: pollInterval,
		},
		"done at another account proves nothing": {
			seen:   spoken(flightsv1.OperationBook, "done b-1", func(o *lifecycle.Observation) { o.Provider.Identity.Account = "acct-8" }),
			action: lifecycle.Wait, reason: flightsv1.ReasonAccountChanged, after: pollInterval,
		},
		"a done change records what is there": {
			seen:   spoken(flightsv1.OperationChange, "done", shows(booking.StatusConfirmed)),
			action: lifecycle.Record, reason: flightsv1.ReasonChanging,
		},
		"a done change of a booking that is gone leaves that to be told": {
			seen: spoken(flightsv1.OperationChange, "done", shows(booking.StatusCancelled)), action: lifecycle.CloseOperation,
		},
		"a done cancellation is recorded once the booking is gone": {
			seen:   spoken(flightsv1.OperationCancel, "done", shows(booking.StatusCancelled)),
			action: lifecycle.Record, reason: flightsv1.ReasonCancelled,
		},
		"a done cancellation is not believed while the booking is shown": {
			seen:   spoken(flightsv1.OperationCancel, "done", shows(booking.StatusConfirmed)),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: pollInterval, mood: flightsv1.ConditionStalled,
		},
		"a word of another operation counts for nothing": {
			seen: spoken(flightsv1.OperationBook, "not-done", func(o *lifecycle.Observation) {
				blind(o)
				o.Ticket.Resolve = "op-of-yore not-done"
			}), action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: pollInterval,
		},
		"nor does what can't be read": {
			seen: spoken(flightsv1.OperationBook, "perhaps", blind), action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown,
			after: pollInterval,
		},
	})
}

func TestAPersonsWordIsToldWithTheNameOfWhoGaveIt(t *testing.T) {
	for _, o := range []lifecycle.Observation{
		spoken(flightsv1.OperationBook, "not-done", blind),
		spoken(flightsv1.OperationBook, "done b-1", names("b-1", "prod/uid-1/1", booking.StatusConfirmed)),
		spoken(flightsv1.OperationCancel, "done", shows(booking.StatusCancelled)),
	} {
		e := lifecycle.Next(o).Event
		if e == nil || e.Reason != flightsv1.ReasonResolved || !strings.Contains(e.Message, "olga") {
			t.Errorf("%s: told %+v", o.Ticket.Resolve, e)
		}
	}
}

func TestAnEarlyWordIsToldWhenItCounts(t *testing.T) {
	o := spoken(flightsv1.OperationBook, "not-done", blind)
	op := o.Ticket.Status.Operation
	o.Now, o.KnownFor = op.StartedAt.Time, 0
	step := lifecycle.Next(o)
	ready := meta.FindStatusCondition(step.Status.Conditions, flightsv1.ConditionReady)
	due := op.SettlesAt.Truncate(time.Minute).Add(time.Minute).UTC().Format(time.RFC3339)
	if step.Action != lifecycle.Wait || !strings.Contains(ready.Message, due) {
		t.Errorf("got %s, saying %q, want it to say %s", step.Action, ready.Message, due)
	}
	if want := op.SettlesAt.Sub(o.Now) + time.Second; step.After != want {
		t.Errorf("it is looked at again after %s, want %s", step.After, want)
	}
	o.Now, o.KnownFor = o.Now.Add(step.After), 0 // a new process doesn't know what the one before sent
	if again := lifecycle.Next(o); again.Action != lifecycle.Wait {
		t.Errorf("got %s from a process that has only just seen the operation", again.Action)
	}
	o.KnownFor = step.After
	if again := lifecycle.Next(o); again.Action != lifecycle.CloseOperation {
		t.Errorf("got %s when it counts", again.Action)
	}
}

func TestNothingIsSentAgainOnceAPersonHasSpoken(t *testing.T) {
	o := waiting(func(o *lifecycle.Observation) {
		o.Ticket.Status.Operation.Outcome = string(booking.Unknown)
		o.Ticket.Resolve = o.Ticket.Status.Operation.ID + " not-done"
	})
	if step := lifecycle.Next(o); step.Action != lifecycle.Wait {
		t.Errorf("got %s, though what a person knows may be older", step.Action)
	}
	o.Fresh, o.Ticket.Status.Operation.Outcome = true, ""
	if step := lifecycle.Next(o); step.Action != lifecycle.CloseOperation {
		t.Errorf("got %s of an operation that was never sent", step.Action)
	}
}

func TestABookingThatIsToStayIsNotCancelled(t *testing.T) {
	retained := func(o *lifecycle.Observation) { o.Ticket.Retained = o.Ticket.Status.Booking.ID }
	decide(t, map[string]decision{
		"the annotation names it": {seen: with(leaving(), retained), action: lifecycle.RemoveFinalizer},
		"the annotation names another": {
			seen: with(leaving(), func(o *lifecycle.Observation) { o.Ticket.Retained = "b-9" }), action: lifecycle.Admit,
		},
		"its cancellation was not sent yet": {
			seen: with(sent(flightsv1.OperationCancel, booking.Outcome{}), func(o *lifecycle.Observation) {
				o.Heard = lifecycle.Heard{}
				retained(o)
			}), action: lifecycle.CloseOperation,
		},
		"its cancellation may have been sent, and is not sent again": {
			seen: with(sent(flightsv1.OperationCancel, booking.Outcome{}), func(o *lifecycle.Observation) {
				o.Fresh, o.Heard, o.Ticket.Status.Operation.Outcome = false, lifecycle.Heard{}, string(booking.Unknown)
				retained(o)
				shows(booking.StatusConfirmed)(o)
			}), action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: 2 * time.Second,
		},
		"an open order is resolved first": {
			seen: with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) {
				o.Fresh, o.Heard = false, lifecycle.Heard{}
				o.Ticket.Deleting, o.Ticket.Retain, o.Ticket.Suspend = true, true, true
			}), action: lifecycle.Find,
		},
	})
}
