package lifecycle

import (
	"fmt"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// leave lets a ticket go that is being deleted and has no open operation: when its booking is gone and the provider shows
// none besides.
func leave(o Observation) Step {
	was := o.Ticket.Status.Booking
	switch {
	case was == nil || was.CancelledAt != nil:
		return depart(o)
	case o.retains(was.ID):
		return letGo(o, &Event{Reason: flightsv1.ReasonRetained, Message: describe(*was) + " stays with the provider"})
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
		return o.wait(CauseUnknown, o.trouble(read.Err))
	case read.Err != nil:
		return o.failed(read.Err, o.trouble(read.Err))
	case read.Booking.Status == booking.StatusPending:
		return o.unfinished("the provider has not finished an earlier change of " + describe(*was))
	case !o.mine(read.Booking):
		return o.warn(CauseHeld, report{
			state: flightsv1.StateCancelling, reason: flightsv1.ReasonCancellationRefused, mood: stalled,
			message: fmt.Sprintf("%s carries the client reference of another ticket at the provider, so it is not cancelled: "+
				"cancel it there yourself, or let the ticket go without it: %s", describe(*was), o.Ticket.Names.command("retain", "")),
		})
	case o.refusalStands() && o.Ticket.Status.Refusal.Kind == flightsv1.OperationCancel:
		return Step{Action: Wait, After: o.pause(CauseRefused), Cause: CauseRefused, Status: o.unchanged()}
	default:
		return start(o, flightsv1.OperationCancel)
	}
}

// retains says whether a booking is to stay with the provider when the ticket goes: by its spec, or by the annotation,
// which names the booking.
func (o Observation) retains(id string) bool {
	return o.Ticket.Retain || id != "" && o.Ticket.Retained == id
}

// depart takes the finalizer off a ticket that knows of no booking, after it has asked the provider whether that is so:
// a status may be lost or restored from a backup, and a provider may have booked one order twice. What another
// incarnation of the ticket booked is not this one's to cancel.
func depart(o Observation) Step {
	step := letGo(o, nil)
	if o.canTell() {
		step = o.lastLook()
	}
	if step.Action == Wait && o.unseen() {
		step.Status.ObservedGeneration = unseenGeneration // it stays one that must be asked about
	}
	return step
}

// lastLook asks for bookings that this incarnation of the ticket made, and takes up the first that is found.
func (o Observation) lastLook() Step {
	if step, held := reach(o, nil, report{state: flightsv1.StateCancelling}); held {
		return step
	}
	owner := o.Heard.Owner
	switch {
	case owner == nil:
		return Step{Action: LookupOwner, Reference: o.Ticket.Names.Owner()}
	case owner.Err != nil:
		return o.failed(owner.Err, o.trouble(owner.Err))
	}
	for _, b := range owner.Bookings {
		switch was := o.Ticket.Status.Booking; {
		case !live(b) || !o.made(b):
		case was != nil && was.ID == b.ID: // cancelled; the list lags
		case b.Status == booking.StatusPending:
			return o.unfinished(fmt.Sprintf("BookingProvider %s has accepted booking %s and not finished", o.Provider.Name, b.ID))
		default:
			return record(o, b, b.Order)
		}
	}
	return letGo(o, nil)
}

// unseenGeneration is the observedGeneration of a ticket whose status was never written, or was lost.
const unseenGeneration = -1

func (o Observation) unseen() bool { return o.Ticket.Status.ObservedGeneration <= 0 }

// canTell says whether the provider can be asked what it holds for a ticket that knows of no booking. A ticket whose
// provider is missing has nothing to wait for, nor has one whose provider is out of order and whose status says that
// nothing is booked.
func (o Observation) canTell() bool {
	p, was := o.Provider, o.Ticket.Status.Booking
	switch {
	case o.Ticket.Retain || !p.Found || !p.Lookup:
		return false
	case p.Ready:
		return was == nil || p.heldBy(was.Provider)
	default:
		return p.Connecting || o.unseen()
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

// cancelled records that the booking is gone. It stays in the status until the ticket has gone too: a list that lags may
// show it a while longer.
func cancelled(o Observation) Step {
	s := o.prior()
	text := "the booking is cancelled"
	if s.Booking != nil {
		text = describe(*s.Booking) + " is cancelled"
		now := microless(o.Now)
		s.Booking.CancelledAt = &now
	}
	step := Step{Action: Record, Event: &Event{Reason: flightsv1.ReasonCancelled, Message: text}}
	if s.Operation != nil {
		step.Closed = &Closed{Kind: flightsv1.OperationCancel, Result: ResultDone}
	}
	s.Operation, s.Refusal = nil, nil
	step.Status = o.tell(s, report{
		state: flightsv1.StateCancelling, reason: flightsv1.ReasonCancelled, mood: reconciling, message: text,
	})
	return step
}
