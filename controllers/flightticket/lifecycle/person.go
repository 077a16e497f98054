package lifecycle

import (
	"fmt"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/instruction"
)

// word returns what a person said of an operation. What was said of another one counts for nothing, nor does what can't be
// read: the webhook refuses that, and says why.
func (o Observation) word(op flightsv1.OperationStatus) (instruction.Resolution, bool) {
	word, err := instruction.ParseResolution(o.Ticket.Resolve)
	return word, err == nil && word.Operation == op.ID
}

// postscript tells somebody who resolved the open operation from when on that counts.
func (o Observation) postscript(op *flightsv1.OperationStatus) string {
	if op == nil {
		return ""
	}
	if _, spoken := o.word(*op); !spoken || settled(*op, o.Provider, o.Now, o.KnownFor) {
		return ""
	}
	at := settlesAt(*op, o.Provider, o.Now, o.KnownFor).UTC().Truncate(time.Minute).Add(time.Minute)
	return fmt.Sprintf("; what %s says of it counts from %s on, when nothing that was sent can take effect any more",
		flightsv1.ResolveOperationAnnotation, at.Format(time.RFC3339))
}

// inTime has a ticket looked at as soon as a person's word counts.
func (o Observation) inTime(op flightsv1.OperationStatus, step Step) Step {
	if step.Action == Wait {
		due := settlesAt(op, o.Provider, o.Now, o.KnownFor).Sub(o.Now) + firstPause
		step.After = min(step.After, max(due, firstPause))
	}
	return step
}

// heed ends an operation by a person's word. Nothing that was sent can take effect any more. What the provider can still be
// asked is asked first: it knows better than anybody.
func heed(o Observation, op flightsv1.OperationStatus, word instruction.Resolution) Step {
	if !word.Done {
		return heedNotDone(o, op)
	}
	if op.Kind == flightsv1.OperationBook {
		return heedBooked(o, op, orElse(word.Booking, op.BookingID))
	}
	return heedByID(o, op)
}

// heedNotDone closes an operation as one without effect. A book operation is looked up before, where that can be done: a
// booking that exists is not bought again because somebody overlooked it.
func heedNotDone(o Observation, op flightsv1.OperationStatus) Step {
	if op.Kind == flightsv1.OperationBook {
		if step, over := lastFind(o, op); over {
			return step
		}
	}
	return o.onWord(notMade(o, nil), fmt.Sprintf("the %s operation %s was not done", verb(op.Kind), op.ID))
}

// lastFind looks for the booking that a book operation may have made. It is over before a person's word counts if the
// provider shows one, or can be asked in a moment.
func lastFind(o Observation, op flightsv1.OperationStatus) (Step, bool) {
	if step, held := reach(o, &op.Provider, report{state: doing(op.Kind)}); held {
		return step, step.Cause == CauseTurn
	}
	if op.BookingID != "" {
		switch read := o.Heard.Read; {
		case read == nil:
			return Step{Action: ReadBooking, Reference: op.BookingID}, true
		case read.Err == nil && len(ofReference([]booking.Booking{read.Booking}, op.ClientReference)) > 0:
			return found(o, []booking.Booking{read.Booking}), true
		}
	}
	if !o.Provider.Lookup {
		return Step{}, false
	}
	switch listing := o.Heard.Found; {
	case listing == nil:
		return Step{Action: Find, Reference: op.ClientReference}, true
	case listing.Err != nil:
		return o.failed(listing.Err, o.open(op)), unheard(listing.Err)
	default:
		return found(o, listing.Bookings), len(ofReference(listing.Bookings, op.ClientReference)) > 0
	}
}

// heedBooked records the booking that a person named as what came of a book operation. It must carry the operation's own
// client reference, or it came of something else.
func heedBooked(o Observation, op flightsv1.OperationStatus, id string) Step {
	if id == "" {
		return o.unheeded(op, fmt.Sprintf("what %s says lacks the booking: %q", flightsv1.ResolveOperationAnnotation,
			o.Ticket.Names.command("resolve", "--done --booking ID")))
	}
	read, step := o.readFor(op, id)
	if read == nil {
		return step
	}
	b := read.Booking
	switch {
	case read.Err != nil:
		return o.unheeded(op, fmt.Sprintf("BookingProvider %s shows no booking %.100q in account %s (%s)", op.Provider.Name, id,
			op.Provider.Account, read.Err.Code))
	case b.ID != id || b.Names.ClientReference != op.ClientReference:
		return o.unheeded(op, fmt.Sprintf("booking %s carries the client reference %.200q and not %q, so it did not come of "+
			"this operation", label(b), b.Names.ClientReference, op.ClientReference))
	case b.Status == booking.StatusPending:
		return o.unheeded(op, fmt.Sprintf("BookingProvider %s has not finished booking %s", op.Provider.Name, label(b)))
	}
	return o.onWord(found(o, []booking.Booking{b}), fmt.Sprintf("the book operation %s made booking %s", op.ID, label(b)))
}

// heedByID ends a change or a cancellation with what is there.
func heedByID(o Observation, op flightsv1.OperationStatus) Step {
	read, step := o.readFor(op, op.BookingID)
	if read == nil {
		return step
	}
	said := fmt.Sprintf("the %s operation %s was done", verb(op.Kind), op.ID)
	gone := o.gone(*read)
	switch {
	case read.Err != nil && !gone:
		return o.unheeded(op, fmt.Sprintf("BookingProvider %s could not say what became of booking %s (%s)", op.Provider.Name,
			op.BookingID, read.Err.Code))
	case op.Kind == flightsv1.OperationCancel && gone:
		return o.onWord(cancelled(o), said)
	case op.Kind == flightsv1.OperationCancel:
		return o.unheeded(op, fmt.Sprintf("BookingProvider %s shows booking %s as %s still: cancel it there, or say %q",
			op.Provider.Name, label(read.Booking), read.Booking.Status, o.Ticket.Names.command("resolve", "--not-done")))
	case gone:
		return o.onWord(notMade(o, nil), said) // what became of the booking is told by the next look
	case read.Booking.Status != booking.StatusConfirmed:
		return o.unheeded(op, fmt.Sprintf("BookingProvider %s has not finished booking %s", op.Provider.Name, label(read.Booking)))
	default:
		return o.onWord(record(o, read.Booking, read.Booking.Order), said)
	}
}

// readFor reads a booking at the operation's own account. Without a reading it returns the step that leads to one. An answer
// that there is no such booking is a reading too.
func (o Observation) readFor(op flightsv1.OperationStatus, id string) (*Reading, Step) {
	if step, held := reach(o, &op.Provider, report{state: doing(op.Kind)}); held {
		return nil, step
	}
	switch read := o.Heard.Read; {
	case read == nil:
		return nil, Step{Action: ReadBooking, Reference: id}
	case read.Err != nil && causeOf(read.Err) != CauseRefused:
		return nil, o.failed(read.Err, o.open(op))
	default:
		return read, Step{}
	}
}

// unheeded leaves an operation open though a person spoke of it, and says why.
func (o Observation) unheeded(op flightsv1.OperationStatus, why string) Step {
	if op.Outcome == "" {
		op.Outcome = string(booking.Unknown)
	}
	r := o.open(op)
	r.mood, r.message = stalled, why
	s := o.prior()
	s.Operation = &op
	step := Step{Action: Wait, After: o.pause(CauseHeld), Cause: CauseHeld, Status: o.tell(s, r)}
	if o.news(r.reason) {
		step.Event = &Event{Warning: true, Reason: r.reason, Message: why}
	}
	return step
}

// onWord makes a step that ends an operation the consequence of a person's word.
func (o Observation) onWord(step Step, what string) Step {
	if step.Action == Record || step.Action == CloseOperation {
		step.Event = &Event{
			Reason: flightsv1.ReasonResolved, Message: fmt.Sprintf("%s, on the word of %s", what, orElse(o.Ticket.DecidedBy, unnamed)),
		}
	}
	return step
}
