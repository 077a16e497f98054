package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// What a look at a booking found out, after "booking REF (id) with provider".
const (
	isCancelled = "is cancelled at the provider, though not by this ticket: delete the ticket, and apply it again if the " +
		"journey is still wanted"
	isAnothers = "carries the client reference of another ticket at the provider, so it is not changed: ask the provider " +
		"what happened"
)

// Looks says whether all that may be asked for a ticket now is whether its booking is still there. Nobody waits for that,
// unless a person asked for it.
func (o Observation) Looks() bool {
	t, was := o.Ticket, o.Ticket.Status.Booking
	return !t.Deleting && t.Status.Operation == nil && was != nil && was.CancelledAt == nil &&
		t.Wanted != nil && same(*t.Wanted, was.Order) && !o.requested()
}

// requested says whether a person asked for a reconcile that has not been handled.
func (o Observation) requested() bool {
	t := o.Ticket
	return t.ReconcileRequestedAt != "" && t.ReconcileRequestedAt != t.Status.LastHandledReconcileAt
}

// adrift says whether the last look found the booking changed or cancelled.
func (o Observation) adrift() bool {
	ready := meta.FindStatusCondition(o.Ticket.Status.Conditions, flightsv1.ConditionReady)
	return ready != nil && ready.Reason == flightsv1.ReasonDrifted
}

// watch reads the booking of a ticket that rests from time to time. Calm is the step of a ticket whose booking is shown as
// it was recorded. What differs is told and never mended: a booking that somebody cancelled is not bought again, and one
// that somebody changed is not changed back.
func watch(o Observation, calm Step) Step {
	was, read := o.Ticket.Status.Booking, o.Heard.Read
	current := o.Ticket.Status.ObservedGeneration == o.Ticket.Generation
	due := o.LookIn <= 0 || o.requested() || o.adrift() && !current
	if read == nil && !due {
		return o.between(calm, o.LookIn, CauseLook)
	}
	if step, held := reach(o, &was.Provider, report{state: o.resting()}); held {
		return o.between(calm, max(step.After, firstPause), step.Cause)
	}
	switch {
	case read == nil:
		return Step{Action: ReadBooking, Reference: was.ID}
	case read.Err != nil && read.Err.Class != booking.ClassNotFound:
		return o.between(calm, max(o.pause(CauseUnavailable), asked(read.Err)), CauseUnavailable)
	}
	switch what, certain := o.drift(*read); {
	case !certain:
		return o.between(calm, o.pause(CauseUnknown), CauseUnknown)
	case what != "":
		return drifted(o, what)
	default:
		return o.looked(calm)
	}
}

// drift says what is not at the provider as it was recorded; empty: nothing. It is not certain while reads may lag behind
// what was recorded, and while the provider still works on the booking.
func (o Observation) drift(read Reading) (what string, certain bool) {
	recent := read.KnownFor <= o.Provider.ReadLag
	switch {
	case read.Err != nil:
		return isCancelled, o.absent(read)
	case o.gone(read):
		return isCancelled, !recent
	case !o.mine(read.Booking):
		return isAnothers, !recent
	case read.Booking.Status != booking.StatusConfirmed:
		return "", false
	}
	differs := deviation(o.Ticket.Status.Booking.Order, read.Booking.Order)
	if differs == "" {
		return "", true
	}
	return "was changed at the provider, though not by this ticket: " + differs + "; ask the provider, or change the spec to " +
		"have the booking changed", !recent
}

// between is the step of a ticket whose booking is not read now, or could not be: it says what it said before.
func (o Observation) between(calm Step, after time.Duration, c Cause) Step {
	calm.Action, calm.After, calm.Cause = Wait, after, c
	if o.adrift() && o.Ticket.Status.ObservedGeneration == o.Ticket.Generation {
		calm.Status, calm.Event = *o.prior(), nil
	}
	calm.Status.LastHandledReconcileAt = o.Ticket.Status.LastHandledReconcileAt
	return calm
}

// looked is the step of a ticket whose booking was just shown as it was recorded.
func (o Observation) looked(calm Step) Step {
	calm.Action, calm.After, calm.Cause = Wait, max(o.LookIn, firstPause), CauseLook
	if o.adrift() && calm.Event == nil {
		calm.Event = &Event{Reason: flightsv1.ReasonBooked, Message: describe(*o.Ticket.Status.Booking) + " is shown as it was booked again"}
	}
	return calm
}

// drifted tells that the booking is not at the provider as it was recorded.
func drifted(o Observation, what string) Step {
	step := o.warn(CauseHeld, report{
		state: o.resting(), reason: flightsv1.ReasonDrifted, mood: stalled,
		message: describe(*o.Ticket.Status.Booking) + " " + what, lost: what == isCancelled,
	})
	if o.LookIn > 0 {
		step.After, step.Cause = o.LookIn, CauseLook
	}
	return step
}
