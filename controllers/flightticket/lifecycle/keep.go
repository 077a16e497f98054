package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// keep makes the booking of a ticket as the spec asks.
func keep(o Observation) Step {
	was := o.Ticket.Status.Booking
	if o.Ticket.Wanted != nil && same(*o.Ticket.Wanted, was.Order) {
		s := o.prior()
		s.Refusal = nil
		return Step{Action: Nothing, Status: o.tell(s, settled(*was))}
	}
	if step, held := blocked(o); held {
		return step
	}
	if step, held := reach(o, &was.Provider, report{state: o.resting()}); held {
		return step
	}
	read := o.Heard.Read
	switch {
	case read == nil:
		return Step{Action: ReadBooking, Reference: was.ID}
	case read.Err != nil && read.Err.Class == booking.ClassNotFound && !o.absent(*read):
		return o.wait(firstPoll, o.trouble(read.Err))
	case read.Err != nil && read.Err.Class != booking.ClassNotFound:
		return o.failed(read.Err, o.trouble(read.Err))
	case read.Err != nil, read.Booking.Status == booking.StatusCancelled, read.Booking.Status == booking.StatusFailed:
		return drifted(o, "is cancelled at the provider, though not by this ticket: delete the ticket, and apply it "+
			"again if the journey is still wanted")
	case !o.mine(read.Booking):
		return drifted(o, "carries the client reference of another ticket at the provider, so it is not changed: ask the "+
			"provider what happened")
	case read.Booking.Status == booking.StatusPending:
		return o.failed(&booking.CallError{Class: booking.ClassUnavailable}, report{
			state: o.resting(), reason: flightsv1.ReasonOperationPending, mood: reconciling,
			message: "the provider has not finished an earlier change of " + describe(*was),
		})
	default:
		// Also if the read shows the wanted order: it may lag behind a change. A change that finds it done does no harm.
		return offer(o, flightsv1.OperationChange)
	}
}

func settled(b flightsv1.BookingStatus) report {
	return report{
		state: flightsv1.StateBooked, ready: true, reason: flightsv1.ReasonBooked, message: describe(b),
	}
}

func drifted(o Observation, what string) Step {
	return o.warn(o.Recheck, report{
		state: o.resting(), reason: flightsv1.ReasonDrifted, mood: stalled,
		message: describe(*o.Ticket.Status.Booking) + " " + what,
	})
}

// mine says whether a booking that was read is the one in the status and carries this ticket's reference. A booking
// that doesn't is neither changed nor cancelled.
func (o Observation) mine(b booking.Booking) bool {
	_, ours := o.Ticket.Names.Attempt(b.Names.ClientReference)
	return ours && o.Ticket.Status.Booking != nil && b.ID == o.Ticket.Status.Booking.ID
}

// absent says whether a read that found nothing proves that the booking is gone: not while the provider's reads may
// still lag behind the booking itself.
func (o Observation) absent(r Reading) bool {
	if r.Err == nil || r.Err.Class != booking.ClassNotFound {
		return false
	}
	was := o.Ticket.Status.Booking
	return was == nil || was.BookedAt == nil || r.AskedAt.After(was.BookedAt.Add(o.Provider.ReadLag+time.Second))
}

// record closes the open operation, if there is one, with the booking that exists.
func record(o Observation, b booking.Booking, order flightsv1.Order) Step {
	s := o.prior()
	event := &Event{Reason: flightsv1.ReasonBooked}
	kind := flightsv1.OperationBook
	s.Booking, s.Operation, s.Refusal = o.bookedAs(b, order), nil, nil
	event.Message = describe(*s.Booking)
	if o.Ticket.Status.Booking != nil {
		kind, event.Reason, event.Message = flightsv1.OperationChange, ReasonChanged, "changed "+event.Message
	}
	if ref, attempt := b.Names.ClientReference, int64(0); ref != "" {
		attempt, _ = o.Ticket.Names.Attempt(ref)
		s.Attempts = max(s.Attempts, attempt)
	}
	step := Step{Action: Record, Event: event}
	if o.Ticket.Status.Operation != nil {
		step.Closed = &Closed{Kind: kind, Result: ResultDone}
	}
	r := settled(*s.Booking)
	if o.Ticket.Deleting || o.Ticket.Wanted == nil || !same(*o.Ticket.Wanted, order) {
		r = report{
			state: flightsv1.StateBooked, reason: flightsv1.ReasonChanging, mood: reconciling,
			message: "the spec asks for something else than " + describe(*s.Booking),
		}
	}
	if o.Ticket.Deleting {
		r.state, r.reason, r.message = flightsv1.StateCancelling, flightsv1.ReasonCancelling, "the ticket is being deleted"
	}
	step.Status = o.tell(s, r)
	return step
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
	}
	r.message += then
	step := Step{
		Action: CloseOperation, Status: o.tell(s, r),
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
