package lifecycle

import (
	"fmt"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// leave lets a ticket go that is being deleted and has no open operation: at once if it has no booking, else when the
// booking is gone.
func leave(o Observation) Step {
	was := o.Ticket.Status.Booking
	switch {
	case was == nil:
		return Step{Action: RemoveFinalizer}
	case o.Ticket.Retain:
		return Step{Action: RemoveFinalizer, Event: &Event{
			Reason: flightsv1.ReasonRetained, Message: describe(*was) + " stays with the provider",
		}}
	}
	if step, held := reach(o, &was.Provider, report{state: flightsv1.StateCancelling}); held {
		return step
	}
	read := o.Heard.Read
	switch {
	case read == nil:
		return Step{Action: ReadBooking, Reference: was.ID}
	case o.gone(*read):
		return cancelled(o)
	case read.Err != nil && read.Err.Class == booking.ClassNotFound:
		return o.wait(firstPoll, o.trouble(read.Err))
	case read.Err != nil:
		return o.failed(read.Err, o.trouble(read.Err))
	case read.Booking.Status == booking.StatusPending:
		return o.wait(slowestPoll, report{
			state: flightsv1.StateCancelling, reason: flightsv1.ReasonOperationPending, mood: reconciling,
			message: "the provider has not finished an earlier change of " + describe(*was),
		})
	case !o.mine(read.Booking):
		return o.warn(o.Recheck, report{
			state: flightsv1.StateCancelling, reason: flightsv1.ReasonCancellationRefused, mood: stalled,
			message: fmt.Sprintf("%s carries the client reference of another ticket at the provider, so it is not cancelled: "+
				"cancel it there yourself, or set spec.deletionPolicy to Retain before deleting", describe(*was)),
		})
	case o.refusalStands():
		return Step{Action: Wait, After: o.Recheck, Status: o.Ticket.Status}
	default:
		return start(o, flightsv1.OperationCancel)
	}
}

// gone says whether a read at the booking's own account shows that the booking no longer exists. The caller has made
// sure of the account.
func (o Observation) gone(r Reading) bool {
	if r.Err != nil {
		return o.absent(r)
	}
	return r.Booking.Status == booking.StatusCancelled || r.Booking.Status == booking.StatusFailed
}

// cancelled records that the booking is gone.
func cancelled(o Observation) Step {
	s := o.prior()
	text := "the booking is cancelled"
	if s.Booking != nil {
		text = describe(*s.Booking) + " is cancelled"
	}
	step := Step{Action: Record, Event: &Event{Reason: flightsv1.ReasonCancelled, Message: text}}
	if s.Operation != nil {
		step.Closed = &Closed{Kind: flightsv1.OperationCancel, Result: ResultDone}
	}
	s.Booking, s.Operation, s.Refusal = nil, nil, nil
	step.Status = o.tell(s, report{
		state: flightsv1.StateCancelling, reason: flightsv1.ReasonCancelled, mood: reconciling, message: text,
	})
	return step
}
