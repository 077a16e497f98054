package lifecycle

import (
	"fmt"
	"net/http"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// resolve brings the open operation to its end. Nothing else is done for a ticket before that, whether it was edited,
// suspended or deleted meanwhile.
func resolve(o Observation) Step {
	op := o.operation()
	if o.Heard.Sent != nil {
		return answered(o, *o.Heard.Sent)
	}
	if step, over := unsent(o, op); over {
		return step
	}
	if word, spoken := o.word(op); spoken {
		if settled(op, o.Provider, o.Now, o.KnownFor) {
			return heed(o, op, word)
		}
		return o.inTime(op, unrepeated(o, op))
	}
	return pursue(o, op)
}

// unrepeated is pursue without sends: a person who says what became of an operation speaks of what was sent so far.
func unrepeated(o Observation, op flightsv1.OperationStatus) Step {
	switch step := pursue(o, op); {
	case step.Action != Send:
		return step
	case o.alone(op):
		return notMade(o, nil)
	default:
		return o.linger(op)
	}
}

// pursue sends an operation that certainly was not sent, and finds out about one that may have been.
func pursue(o Observation, op flightsv1.OperationStatus) Step {
	if step, held := reach(o, &op.Provider, report{state: doing(op.Kind)}); held {
		return step
	}
	switch {
	case o.alone(op):
		return Step{Action: Send}
	case op.Kind == flightsv1.OperationBook:
		return resolveBook(o, op)
	default:
		return resolveByID(o, op)
	}
}

// unsent closes an operation that this process knows not to have taken effect, and that may no longer be sent or is no
// longer wanted.
func unsent(o Observation, op flightsv1.OperationStatus) (Step, bool) {
	late := !o.sendable(op)
	unwanted := o.Ticket.Deleting && (op.Kind != flightsv1.OperationCancel || o.retains(op.BookingID))
	// Written for a provider that took keys and takes none now, or the other way round, or that takes longer by now.
	otherwise := o.Provider.Found && (op.Keyed != o.Provider.takesKeys() || outgrown(op, o.Provider))
	if !o.alone(op) || (!late && !unwanted && !otherwise) {
		return Step{}, false
	}
	return notMade(o, nil), true
}

// alone says whether this process wrote the operation, nothing can have come of it, and no other process sends it.
func (o Observation) alone(op flightsv1.OperationStatus) bool { return o.Fresh && op.Outcome == "" }

// again sends an operation that may have been sent before. The status must say so first: there may be two controllers,
// and the one that wrote the operation would else close it on a refusal while the other still sends it. It must also say
// until when this send can take effect: the provider may declare shorter times again before that is over.
func (o Observation) again(op flightsv1.OperationStatus) Step {
	longer := outgrown(op, o.Provider)
	if longer {
		op.SettlesAt = settling(op, o.Provider)
	}
	if longer || op.Outcome == "" {
		return o.linger(op)
	}
	return Step{Action: Send}
}

// resolveBook finds out about a book operation that may have been sent.
func resolveBook(o Observation, op flightsv1.OperationStatus) Step {
	switch {
	case op.BookingID != "" && o.Heard.Found == nil:
		// The provider named the booking when it accepted the order.
		if read := o.Heard.Read; read == nil {
			return Step{Action: ReadBooking, Reference: op.BookingID}
		} else if read.Err == nil {
			return found(o, []booking.Booking{read.Booking})
		} else if read.Err.Class != booking.ClassNotFound {
			return o.failed(read.Err, o.open(op))
		} else if !o.Provider.Lookup {
			return missed(o, op, *read)
		}
	case o.mayReplay(op):
		return o.again(op)
	case !o.Provider.Lookup:
		return o.linger(op)
	}
	switch listing := o.Heard.Found; {
	case listing == nil:
		return Step{Action: Find, Reference: op.ClientReference}
	case listing.Err != nil:
		return o.failed(listing.Err, o.open(op))
	case len(ofReference(listing.Bookings, op.ClientReference)) > 0:
		return found(o, ofReference(listing.Bookings, op.ClientReference))
	default:
		return missed(o, op, Reading{AskedAt: listing.AskedAt, KnownFor: listing.KnownFor})
	}
}

// mayReplay says whether the same bytes may be sent again under the same key: only if every send before carried it, to a
// provider that remembers it still by a clock that is wrong, and only until send-by.
func (o Observation) mayReplay(op flightsv1.OperationStatus) bool {
	remembered := op.Keyed && o.Provider.takesKeys() && window(op)+maxSkew <= o.Provider.KeyTTL
	return remembered && op.Outcome != string(booking.Pending) && o.sendable(op)
}

// ofReference leaves out what a provider lists though it was not asked for.
func ofReference(all []booking.Booking, reference string) []booking.Booking {
	var ours []booking.Booking
	for _, b := range all {
		if b.Names.ClientReference == reference {
			ours = append(ours, b)
		}
	}
	return ours
}

// found rests on bookings that carry the operation's own reference.
func found(o Observation, ours []booking.Booking) Step {
	op := o.operation()
	ours = ofReference(ours, op.ClientReference)
	if len(ours) == 0 {
		return o.linger(op)
	}
	for _, b := range ours {
		if b.Status == booking.StatusConfirmed {
			return record(o, b, *op.Order)
		}
	}
	b := ours[0]
	switch b.Status {
	case booking.StatusPending:
		return o.accepted(op, &b)
	case booking.StatusFailed:
		return refuse(o, op.Kind, orElse(b.Reason, "the provider accepted the order and then failed to fulfil it"))
	case booking.StatusCancelled:
		return refuse(o, op.Kind, "booking "+label(b)+" was made and then cancelled at the provider")
	default:
		return o.linger(op)
	}
}

// missed judges a look that found nothing. It proves absence only if it began after anything sent could take effect.
func missed(o Observation, op flightsv1.OperationStatus, look Reading) Step {
	if settled(op, o.Provider, look.AskedAt, look.KnownFor) {
		return notMade(o, nil)
	}
	return o.linger(op)
}

// resolveByID finds out about a change or a cancellation, whose booking is known: it is read before anything else is
// done. Both may be repeated until send-by, since a change names the version it applies to and a cancellation can't
// happen twice.
func resolveByID(o Observation, op flightsv1.OperationStatus) Step {
	read := o.Heard.Read
	switch {
	case read == nil:
		return Step{Action: ReadBooking, Reference: op.BookingID}
	case read.Err != nil && read.Err.Class != booking.ClassNotFound:
		return o.failed(read.Err, o.open(op))
	case op.Kind == flightsv1.OperationCancel && o.gone(*read):
		return cancelled(o)
	case op.Kind == flightsv1.OperationChange && o.applied(op, *read):
		return record(o, read.Booking, *op.Order)
	case settled(op, o.Provider, read.AskedAt, read.KnownFor):
		return outlived(o, op, *read)
	case o.mayRepeat(op, *read):
		return o.again(op)
	default:
		return o.linger(op)
	}
}

// applied says whether a read shows the booking as the change asks. While reads lag, the same order may be an older one
// that was changed before this operation.
func (o Observation) applied(op flightsv1.OperationStatus, read Reading) bool {
	lag := o.Provider.ReadLag
	recent := read.AskedAt.After(op.StartedAt.Add(lag)) && read.KnownFor > lag
	return recent && read.Err == nil && read.Booking.Status == booking.StatusConfirmed && same(read.Booking.Order, *op.Order)
}

// outlived ends a change or cancellation that can't take effect any more and did not, also one that the provider had
// accepted: a repeat is safe, as a change names its version and a cancellation can't happen twice.
func outlived(o Observation, op flightsv1.OperationStatus, read Reading) Step {
	pending := read.Err == nil && read.Booking.Status == booking.StatusPending
	unconditional := op.Kind == flightsv1.OperationChange && op.BookingVersion == "" && read.Err == nil
	if pending || unconditional {
		return o.linger(op)
	}
	return notMade(o, nil)
}

func (o Observation) mayRepeat(op flightsv1.OperationStatus, read Reading) bool {
	conditional := op.Kind == flightsv1.OperationCancel && !o.retains(op.BookingID) || op.BookingVersion != ""
	return conditional && read.Err == nil && read.Booking.Status == booking.StatusConfirmed &&
		op.Outcome != string(booking.Pending) && o.sendable(op)
}

// answered rests on what came of the send that was just made.
func answered(o Observation, out booking.Outcome) Step {
	op := o.operation()
	switch out.Kind {
	case booking.Confirmed:
		return confirmed(o, op, out.Booking)
	case booking.Rejected:
		return rejected(o, op, out)
	case booking.Pending:
		return o.accepted(op, out.Booking)
	default:
		return o.doubtful(op, out.Failure)
	}
}

func confirmed(o Observation, op flightsv1.OperationStatus, b *booking.Booking) Step {
	switch {
	case op.Kind == flightsv1.OperationCancel && (b == nil || b.Status == booking.StatusCancelled):
		return cancelled(o)
	case op.Kind == flightsv1.OperationCancel:
		return o.doubtful(op, nil)
	case b == nil || b.ID == "" || b.Names.ClientReference != op.ClientReference:
		// An answer about another booking is no answer to this operation.
		return o.doubtful(op, nil)
	case b.Status == booking.StatusPending:
		return o.accepted(op, b)
	case op.Kind == flightsv1.OperationBook:
		return found(o, []booking.Booking{*b})
	case b.Status == booking.StatusConfirmed && b.ID == op.BookingID:
		return record(o, *b, *op.Order)
	default:
		return o.doubtful(op, nil)
	}
}

// passing says whether a refusal is cured by a new quote or by time: the operation is over, but a new one may follow.
func passing(code string) bool {
	return code == "offer_expired" || code == "price_above_ceiling" || code == "booking_pending"
}

func rejected(o Observation, op flightsv1.OperationStatus, out booking.Outcome) Step {
	failure := out.Failure
	if failure == nil {
		failure = &booking.CallError{Class: booking.ClassUnknown, Code: "no_reason", Detail: "the provider gave no reason"}
	}
	switch failure.Class {
	case booking.ClassRefused, booking.ClassConflict, booking.ClassNotFound:
	default: // Credential, Throttled, Unavailable: nothing was decided
		return o.failed(failure, o.open(op))
	}
	certain := o.alone(op) || out.Replayed
	switch {
	case op.Kind == flightsv1.OperationCancel:
		return cancelRejected(o, failure, certain)
	case !certain:
		return o.doubtful(op, failure)
	case passing(failure.Code):
		return notMade(o, failure)
	case op.Kind == flightsv1.OperationChange && failure.HTTPStatus == http.StatusPreconditionFailed:
		// Somebody was faster. The booking is read again, and the change stated for its new version if still needed.
		return notMade(o, failure)
	default:
		return refuse(o, op.Kind, explain(failure))
	}
}

// cancelRejected looks before it believes: a booking that can't be cancelled may be cancelled already.
func cancelRejected(o Observation, failure *booking.CallError, certain bool) Step {
	op, read := o.operation(), o.Heard.Read
	switch {
	case read == nil:
		return Step{Action: ReadBooking, Reference: op.BookingID}
	case o.gone(*read):
		return cancelled(o)
	case read.Err != nil && read.Err.Class != booking.ClassNotFound:
		return o.failed(read.Err, o.open(op))
	case certain && passing(failure.Code):
		return notMade(o, failure)
	case certain && read.Err == nil:
		return refuse(o, op.Kind, explain(failure))
	default:
		return o.doubtful(op, failure)
	}
}

// accepted notes that the provider works on the operation, and which booking it is.
func (o Observation) accepted(op flightsv1.OperationStatus, b *booking.Booking) Step {
	op.Outcome = string(booking.Pending)
	if op.BookingID == "" && b != nil {
		op.BookingID = b.ID
	}
	return o.noted(op)
}

// doubtful notes that no usable answer came.
func (o Observation) doubtful(op flightsv1.OperationStatus, failure *booking.CallError) Step {
	if op.Outcome == "" {
		op.Outcome = string(booking.Unknown)
	}
	step := o.noted(op)
	if failure != nil && failure.RetryAfter > step.After {
		step.After = failure.RetryAfter
	}
	return step
}

// linger leaves the operation open and looks again later.
func (o Observation) linger(op flightsv1.OperationStatus) Step {
	if op.Outcome == "" {
		op.Outcome = string(booking.Unknown)
	}
	return o.noted(op)
}

func (o Observation) noted(op flightsv1.OperationStatus) Step {
	r := o.open(op)
	after, cause := poll(o.Now, op), CauseUnknown
	if due := settlesAt(op, o.Provider, o.Now, o.KnownFor).Sub(o.Now); due > 0 {
		after = min(after, due+firstPause) // the look that can prove absence comes as soon as it can
	}
	if r.mood == stalled {
		after, cause = o.Recheck, CauseHeld
	}
	s := o.prior()
	s.Operation = &op
	step := Step{Action: Wait, After: after, Cause: cause, Status: o.tell(s, r)}
	if o.news(r.reason) {
		step.Event = &Event{Warning: r.reason == flightsv1.ReasonOutcomeUnknown, Reason: r.reason, Message: r.message}
	}
	return step
}

// notMade closes an operation that certainly did not take effect; it may be started anew. Why is the provider's answer,
// nil if none says it.
func notMade(o Observation, why *booking.CallError) Step {
	op := o.operation()
	s := o.prior()
	s.Operation = nil
	message := fmt.Sprintf("the last %s operation certainly had no effect; it is tried anew", verb(op.Kind))
	if why != nil {
		message += ": " + explain(why)
	}
	return Step{
		Action: CloseOperation, After: o.pause(CauseAnew), Cause: CauseAnew, Closed: &Closed{Kind: op.Kind, Result: ResultNotMade},
		Status: o.tell(s, report{state: o.resting(), reason: doingReason(op.Kind), mood: reconciling, message: message}),
	}
}
