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

// bookedAs is the answer to the book operation of sent, edited.
func bookedAs(edit func(*booking.Booking)) lifecycle.Observation {
	o := sent(flightsv1.OperationBook, booking.Outcome{Kind: booking.Confirmed})
	op := o.Ticket.Status.Operation
	b := &booking.Booking{
		ID: "b-1", Status: booking.StatusConfirmed, Order: *op.Order, Price: euros(100),
		Names: booking.Names{ClientReference: op.ClientReference, Owner: op.Owner},
	}
	edit(b)
	o.Heard.Sent.Booking = b
	return o
}

func TestAProviderThatBooksSomethingElseIsNotBelieved(t *testing.T) {
	o := bookedAs(func(b *booking.Booking) { b.Order.Seats = 1 })
	step := lifecycle.Next(o)
	if step.Action != lifecycle.Record || step.Status.Booking.Order.Seats != 1 {
		t.Fatalf("got %s of %+v, want what exists", step.Action, step.Status.Booking)
	}
	if step.Event == nil || !step.Event.Warning || !strings.Contains(step.Event.Message, "seats 1 instead of 2") {
		t.Errorf("told %+v", step.Event)
	}
	o.Ticket.Status, o.Heard, o.Fresh = step.Status, lifecycle.Heard{}, false
	if again := lifecycle.Next(o); again.Action != lifecycle.Nothing {
		t.Errorf("got %s, want a person to decide: asking again could cost again", again.Action)
	}
	o.Ticket.ReconcileRequestedAt = "now"
	if again := lifecycle.Next(o); again.Action != lifecycle.ReadBooking {
		t.Errorf("got %s once a person asks, want a change", again.Action)
	}
	o.Ticket.Deleting = true
	if again := lifecycle.Next(o); again.Action != lifecycle.ReadBooking {
		t.Errorf("got %s once it is deleted, want a cancellation", again.Action)
	}
}

func TestABookingThatCostsMoreThanAgreedIsToldOf(t *testing.T) {
	for name, edit := range map[string]func(*booking.Booking){
		"dearer":           func(b *booking.Booking) { b.Price.Minor++ },
		"another currency": func(b *booking.Booking) { b.Price.Currency = "USD" },
	} {
		t.Run(name, func(t *testing.T) {
			step := lifecycle.Next(bookedAs(edit))
			if step.Action != lifecycle.Record || !step.Event.Warning || step.Event.Reason != flightsv1.ReasonPriceExceeded {
				t.Errorf("got %s, event %+v", step.Action, step.Event)
			}
		})
	}
}

func TestAnAttemptThatNobodyCanCountOnFromIsNone(t *testing.T) {
	names := lifecycle.Names{Installation: "prod", Namespace: "team-a", Name: "t", UID: "uid-1"}
	for _, reference := range []string{
		"prod/uid-1/9223372036854775807", "prod/uid-1/007", "prod/uid-1/+1", "prod/uid-1/0", "prod/uid-1/-1", "prod/uid-1/",
		"prod/uid-1/1/2", "prod/uid-11/1", "",
	} {
		if attempt, ours := names.Attempt(reference); ours {
			t.Errorf("%q is taken for attempt %d", reference, attempt)
		}
	}
}

// waiting is an operation that another process wrote and that may be repeated under its key.
func waiting(edit func(*lifecycle.Observation)) lifecycle.Observation {
	return with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) {
		o.Heard, o.Fresh, o.Provider.KeyTTL = lifecycle.Heard{}, false, time.Hour
		o.Ticket.Status.Operation.Keyed = true
		edit(o)
	})
}

func TestKeysAndClocksThatChangeMeanwhileBuyNothingTwice(t *testing.T) {
	decide(t, map[string]decision{
		"another process says so before it sends an operation again": {
			seen: waiting(func(*lifecycle.Observation) {}), action: lifecycle.Wait,
			reason: flightsv1.ReasonOutcomeUnknown, after: 2 * time.Second,
		},
		"and then sends it": {
			seen:   waiting(func(o *lifecycle.Observation) { o.Ticket.Status.Operation.Outcome = "Unknown" }),
			action: lifecycle.Send,
		},
		"what another process sends too is not closed on a refusal": {
			seen: waiting(func(o *lifecycle.Observation) {
				out := rejected(booking.ClassRefused, "sold_out")
				o.Fresh, o.Ticket.Status.Operation.Outcome, o.Heard.Sent = true, "Unknown", &out
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: 2 * time.Second,
		},
		"nor because its ticket is deleted": {
			seen: waiting(func(o *lifecycle.Observation) {
				o.Fresh, o.Ticket.Deleting, o.Ticket.Status.Operation.Outcome = true, true, "Unknown"
			}),
			action: lifecycle.Send,
		},
		"what was sent without a key is not sent again with one": {
			seen:   waiting(func(o *lifecycle.Observation) { o.Ticket.Status.Operation.Keyed = false }),
			action: lifecycle.Find,
		},
		"a key that the provider now forgets earlier is not relied on": {
			seen: waiting(func(o *lifecycle.Observation) { o.Provider.KeyTTL = 90 * time.Second }), action: lifecycle.Find,
		},
		"what this process wrote for keys is not sent without one": {
			seen:   waiting(func(o *lifecycle.Observation) { o.Fresh, o.Provider.KeyTTL = true, 0 }),
			action: lifecycle.CloseOperation,
		},
		"a wall clock that was set back does not extend the time to send": {
			seen: waiting(func(o *lifecycle.Observation) { o.Now = o.Now.Add(-time.Second) }), action: lifecycle.Find,
		},
		"nor does one that stands still": {
			seen: waiting(func(o *lifecycle.Observation) { o.KnownFor = time.Minute }), action: lifecycle.Find,
		},
		"what this process wrote is given up when the wall clock was set back": {
			seen:   waiting(func(o *lifecycle.Observation) { o.Fresh, o.Now = true, o.Now.Add(-time.Hour) }),
			action: lifecycle.CloseOperation,
		},
		"a wall clock that was set forward proves no absence": {
			seen: waiting(func(o *lifecycle.Observation) {
				late(o)
				o.Heard.Found = &lifecycle.Listing{AskedAt: o.Now, KnownFor: 3 * time.Minute}
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: time.Minute,
		},
		"times that are declared shorter meanwhile prove no absence": {
			seen: waiting(func(o *lifecycle.Observation) {
				op := o.Ticket.Status.Operation
				o.Provider.Timeout, o.Provider.MaxProcessing, o.Provider.ReadLag = time.Second, 0, 0
				o.Now, o.KnownFor = op.SendBy.Add(time.Minute), 2*time.Minute
				o.Heard.Found = &lifecycle.Listing{AskedAt: o.Now, KnownFor: o.KnownFor}
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: time.Minute,
		},
		"times that are declared longer meanwhile are waited for": {
			seen: waiting(func(o *lifecycle.Observation) {
				late(o)
				o.Provider.MaxProcessing = 2 * time.Hour
				o.Heard.Found = &lifecycle.Listing{AskedAt: o.Now, KnownFor: o.KnownFor}
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: time.Minute,
		},
	})
}

// TestWhatIsSentWhileTheProviderIsSlowIsWaitedForAsLong: a provider declares longer times between the moment an operation
// was written and a send, and the shorter ones again after it. What was sent in between takes as long as was declared then.
func TestWhatIsSentWhileTheProviderIsSlowIsWaitedForAsLong(t *testing.T) {
	slow := 5 * time.Minute
	operation := func() lifecycle.Observation {
		o := sent(flightsv1.OperationBook, booking.Outcome{})
		o.Heard.Sent, o.Provider.KeyTTL = nil, time.Hour
		o.Ticket.Status.Operation.Keyed = true
		return o
	}
	t.Run("a fresh operation is written anew", func(t *testing.T) {
		o := operation()
		o.Provider.MaxProcessing += slow
		if step := lifecycle.Next(o); step.Action != lifecycle.CloseOperation {
			t.Errorf("%s, want that it is closed unsent", step.Action)
		}
	})
	t.Run("a repeat is written down before it is sent", func(t *testing.T) {
		o := operation()
		o.Fresh, o.Ticket.Status.Operation.Outcome = false, string(booking.Unknown)
		o.Provider.MaxProcessing += slow
		step := lifecycle.Next(o)
		if step.Action != lifecycle.Wait {
			t.Fatalf("%s, want that the status is written first", step.Action)
		}
		o.Ticket.Status = step.Status
		if step := lifecycle.Next(o); step.Action != lifecycle.Send {
			t.Fatalf("%s, want that it is sent now", step.Action)
		}
		o.Provider.MaxProcessing -= slow
		op := o.Ticket.Status.Operation
		short := op.SendBy.Add(o.Provider.Timeout + o.Provider.MaxProcessing + o.Provider.ReadLag)
		late(&o)
		for asked, want := range map[time.Time]lifecycle.Action{
			short.Add(time.Second): lifecycle.Wait, short.Add(slow + time.Second): lifecycle.CloseOperation,
		} {
			o.Heard = lifecycle.Heard{Found: &lifecycle.Listing{AskedAt: asked, KnownFor: time.Hour}}
			if step := lifecycle.Next(o); step.Action != want {
				t.Errorf("a look at %s that finds nothing: %s, want %s", asked.Format(time.TimeOnly), step.Action, want)
			}
		}
	})
}

func TestAnOperationThatIsTriedAnewSaysWhatTheProviderSaid(t *testing.T) {
	step := lifecycle.Next(sent(flightsv1.OperationBook, rejected(booking.ClassRefused, "price_above_ceiling")))
	ready := meta.FindStatusCondition(step.Status.Conditions, flightsv1.ConditionReady)
	if step.Action != lifecycle.CloseOperation || !strings.Contains(ready.Message, "price_above_ceiling") {
		t.Errorf("got %s, saying %q", step.Action, ready.Message)
	}
}
