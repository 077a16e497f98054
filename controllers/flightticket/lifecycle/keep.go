package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
)

// keep makes the booking of a ticket as the spec asks.
func keep(o Observation) Step {
	was := o.Ticket.Status.Booking
	if o.Ticket.Wanted != nil && same(*o.Ticket.Wanted, was.Order) {
		s := o.prior()
		s.Refusal = nil
		return watch(o, Step{Action: Nothing, Status: o.tell(s, asAsked(*was))})
	}
	if step, held := blocked(o); held {
		if step.Action != Nothing || step.Cause == CauseRefused {
			return step // what was refused is told as it is, until a person has changed something
		}
		return watch(o, step)
	}
	if step, held := reach(o, &was.Provider, report{state: o.resting()}); held {
		return step
	}
	read := o.Heard.Read
	switch {
	case read == nil:
		return Step{Action: ReadBooking, Reference: was.ID}
	case read.Err != nil && read.Err.Class == booking.ClassNotFound && !o.absent(*read):
		return o.wait(CauseUnknown, o.trouble(read.Err))
	case read.Err != nil && read.Err.Class != booking.ClassNotFound:
		return o.failed(read.Err, o.trouble(read.Err))
	case o.gone(*read):
		return drifted(o, isCancelled)
	case !o.mine(read.Booking):
		return drifted(o, isAnothers)
	case read.Booking.Status == booking.StatusPending:
		return o.unfinished("the provider has not finished an earlier change of " + describe(*was))
	default:
		// Also if the read shows the wanted order: it may lag behind a change. A change that finds it done does no harm.
		return offer(o, flightsv1.OperationChange)
	}
}

func asAsked(b flightsv1.BookingStatus) report {
	return report{
		state: flightsv1.StateBooked, ready: true, reason: flightsv1.ReasonBooked, message: describe(b),
	}
}

// mine says whether a booking that was read is the one in the status, and carries this ticket's reference or the one that
// it was adopted with. A booking that doesn't is neither changed nor cancelled.
func (o Observation) mine(b booking.Booking) bool {
	was := o.Ticket.Status.Booking
	if was == nil || b.ID != was.ID {
		return false
	}
	_, ours := o.Ticket.Names.Attempt(b.Names.ClientReference)
	return ours || was.AdoptedBy != "" && b.Names.ClientReference == was.ClientReference
}

// absent says whether a read that found nothing proves that the booking is gone: not while the provider's reads may
// still lag behind the booking itself.
func (o Observation) absent(r Reading) bool {
	if r.Err == nil || r.Err.Class != booking.ClassNotFound {
		return false
	}
	was, lag := o.Ticket.Status.Booking, o.Provider.ReadLag
	if was != nil && was.BookedAt != nil && !r.AskedAt.After(was.BookedAt.Add(lag+time.Second)) {
		return false
	}
	return r.KnownFor > lag // the wall clock alone may have been set forward since
}

// record closes the open operation, if there is one, with the booking that exists. Asked is what was asked for; a
// provider that answers with something else is not believed to have done it.
func record(o Observation, b booking.Booking, asked flightsv1.Order) Step {
	s := o.prior()
	differs := deviation(asked, b.Order)
	order := asked
	if differs != "" {
		order = b.Order
	}
	s.Booking, s.Operation, s.Refusal = o.bookedAs(b, order), nil, nil
	attempt, _ := o.Ticket.Names.Attempt(b.Names.ClientReference)
	s.Attempts = max(s.Attempts, attempt)
	step := Step{Action: Record, Event: o.recorded(*s.Booking)}
	kind := flightsv1.OperationBook
	if op := o.Ticket.Status.Operation; op != nil {
		kind = op.Kind
		step.Closed = &Closed{Kind: kind, Result: ResultDone}
	}
	r := o.standing(*s.Booking)
	if differs != "" {
		// Asking again could be answered the same way and cost again: a person decides.
		if !o.Ticket.Deleting {
			s.Refusal = o.basis(flightsv1.OperationChange)
		}
		r = report{state: r.state, reason: flightsv1.ReasonDrifted, mood: stalled, message: fmt.Sprintf(
			"the provider answered the %s operation with %s: %s; ask the provider, change the spec, or set the annotation %s anew "+
				"to have it changed", verb(kind), describe(*s.Booking), differs, flightsv1.ReconcileRequestedAtAnnotation)}
		step.Event = &Event{Warning: true, Reason: r.reason, Message: r.message}
	}
	step.Status = o.tell(s, r)
	return step
}

// recorded is the event of a booking that is written down: a warning if it costs more than was agreed.
func (o Observation) recorded(b flightsv1.BookingStatus) *Event {
	was, op := o.Ticket.Status.Booking, o.Ticket.Status.Operation
	event := &Event{Reason: flightsv1.ReasonBooked, Message: describe(b)}
	if was != nil && was.ID == b.ID {
		event.Reason, event.Message = ReasonChanged, "changed "+event.Message
	}
	if op == nil || op.Price == nil || b.Price == nil {
		return event
	}
	agreed, errAgreed := money.Parse(op.Price.Amount, op.Price.Currency)
	charged, errCharged := money.Parse(b.Price.Amount, b.Price.Currency)
	if errAgreed == nil && errCharged == nil && (charged.Currency != agreed.Currency || charged.Minor > agreed.Minor) {
		event.Warning, event.Reason = true, flightsv1.ReasonPriceExceeded
		event.Message += fmt.Sprintf(" costs %s, though %s was agreed: ask the provider", charged, agreed)
	}
	return event
}

// standing words a booking that was just written down, by what the ticket asks for now.
func (o Observation) standing(b flightsv1.BookingStatus) report {
	switch {
	case o.Ticket.Deleting:
		return report{
			state: flightsv1.StateCancelling, reason: flightsv1.ReasonCancelling, mood: reconciling,
			message: "the ticket is being deleted",
		}
	case o.Ticket.Wanted == nil || !same(*o.Ticket.Wanted, b.Order):
		return report{
			state: flightsv1.StateBooked, reason: flightsv1.ReasonChanging, mood: reconciling,
			message: "the spec asks for something else than " + describe(b),
		}
	default:
		return asAsked(b)
	}
}

// ReasonChanged is the reason of the event that tells of a changed booking.
const ReasonChanged = "Changed"

// refuse closes the open operation, if there is one, with a refusal, and remembers what the refusal rests on.
func refuse(o Observation, kind flightsv1.OperationKind, why string) Step {
	s := o.prior()
	s.Operation = nil
	s.Refusal = o.basis(kind)
	r := report{state: o.resting(), mood: stalled}
	then := "; it is tried again once the spec, the provider or its credential changes, or when the annotation " +
		flightsv1.ReconcileRequestedAtAnnotation + " is set anew"
	switch kind {
	case flightsv1.OperationBook:
		r.reason, r.message = flightsv1.ReasonBookingRefused, fmt.Sprintf("%s refused to book: %s", o.Provider.Name, why)
	case flightsv1.OperationChange:
		r.reason = flightsv1.ReasonChangeRefused
		r.message = fmt.Sprintf("%s refused the change, the old booking stands: %s", o.Provider.Name, why)
	case flightsv1.OperationCancel:
		r.reason = flightsv1.ReasonCancellationRefused
		r.message = fmt.Sprintf("%s refused to cancel: %s", o.Provider.Name, why)
		then += "; or let the ticket go without its booking: " + o.Ticket.Names.command("retain", "")
	}
	r.message += then
	step := Step{
		Action: CloseOperation, Status: o.tell(s, r), After: firstPause, Cause: CauseRefused,
		Event: &Event{Warning: true, Reason: r.reason, Message: r.message},
	}
	if o.Ticket.Status.Operation != nil {
		step.Closed = &Closed{Kind: kind, Result: ResultRefused}
	}
	return step
}

// basis is the state of the world that a refusal rests on. An open operation serves the spec that it was written for,
// which may have been edited since: the edit is not refused.
func (o Observation) basis(kind flightsv1.OperationKind) *flightsv1.RefusalStatus {
	generation := o.Ticket.Generation
	if op := o.Ticket.Status.Operation; op != nil {
		generation = op.Generation
	}
	return &flightsv1.RefusalStatus{
		Kind: kind, Generation: generation, ProviderUID: o.Provider.Identity.UID,
		ProviderGeneration: o.Provider.Generation, CredentialsRotatedAt: o.Provider.CredentialsRotatedAt.DeepCopy(),
		ReconcileRequestedAt: o.Ticket.ReconcileRequestedAt,
	}
}

// refusalStands says whether the provider refused the same thing in the same state of the world. It stands too while
// the provider can't be seen: nothing can be tried then anyway.
func (o Observation) refusalStands() bool {
	r := o.Ticket.Status.Refusal
	if r == nil {
		return false
	}
	now := o.basis(r.Kind)
	if !o.Provider.Found {
		return r.Generation == now.Generation
	}
	return r.Generation == now.Generation && r.ProviderUID == now.ProviderUID &&
		r.ProviderGeneration == now.ProviderGeneration && r.ReconcileRequestedAt == now.ReconcileRequestedAt &&
		r.CredentialsRotatedAt.Equal(now.CredentialsRotatedAt)
}

// microless cuts a time to the second, as metav1.Time keeps it: what is written must equal what is read back.
func microless(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }
