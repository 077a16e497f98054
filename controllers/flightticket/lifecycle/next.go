package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// Next decides what is done next. It is total: every observation has a step, and a step that writes nothing, calls
// nobody and asks for nothing is Nothing.
func Next(o Observation) Step {
	t := o.Ticket
	switch {
	case t.Deleting && !t.Finalizer:
		return Step{Action: Nothing, Status: t.Status}
	case !t.Finalizer:
		return Step{Action: AddFinalizer}
	case t.Status.Operation != nil:
		return resolve(o)
	case t.Deleting:
		return leave(o)
	case t.Status.Booking != nil && t.Status.Booking.CancelledAt == nil:
		return keep(o)
	default:
		return acquire(o)
	}
}

// wait ends the pass with a report, for as long as the pace of the cause says.
func (o Observation) wait(c Cause, r report) Step { return o.rest(o.pause(c), c, r) }

// rest is wait for a time of its own.
func (o Observation) rest(after time.Duration, c Cause, r report) Step {
	return Step{Action: Wait, After: after, Cause: c, Status: o.tell(o.prior(), r)}
}

// warn is wait with an event when the ticket's reason is a new one.
func (o Observation) warn(c Cause, r report) Step {
	step := o.wait(c, r)
	if o.news(r.reason) {
		step.Event = &Event{Warning: true, Reason: r.reason, Message: r.message}
	}
	return step
}

// reach returns the step of a ticket that can't speak with its provider now, and false if it can. Pinned is the
// provider and account that an operation or a booking belongs to; nil if there is none yet.
func reach(o Observation, pinned *flightsv1.ProviderIdentity, r report) (Step, bool) {
	p := o.Provider
	r.mood, r.ready = reconciling, false
	switch {
	case !p.Found:
		r.reason, r.message = flightsv1.ReasonProviderNotFound, missing(p)
		return o.warn(CauseCredential, r), true
	case !p.Ready: // no event: the provider says so once, for all its tickets
		r.reason = flightsv1.ReasonProviderNotReady
		r.message = fmt.Sprintf("waits for BookingProvider %s: %s", p.Name, p.Trouble)
		if p.Connecting {
			return o.rest(firstPoll, CauseTurn, r), true // nobody announces the end of that
		}
		return o.wait(CauseCredential, r), true
	case pinned != nil && !p.heldBy(*pinned):
		r.reason, r.message = flightsv1.ReasonAccountChanged, moved(p, *pinned)
		return o.warn(CauseCredential, r), true
	case p.Wait > 0:
		return turn(o, p.Wait, r), true
	default:
		return Step{}, false
	}
}

// turn waits for the limiter or the breaker. It leaves a status alone that speaks of this generation already: a queue
// that moves on would else write to every ticket in it.
func turn(o Observation, after time.Duration, r report) Step {
	if o.Ticket.Status.ObservedGeneration == o.Ticket.Generation {
		return Step{Action: Wait, After: after, Cause: CauseTurn, Status: o.Ticket.Status}
	}
	r.reason = flightsv1.ReasonProviderNotReady
	r.message = fmt.Sprintf("waits for its turn with BookingProvider %s", o.Provider.Name)
	return o.rest(after, CauseTurn, r)
}

// unheard says whether our own limiter or breaker answered instead of the provider.
func unheard(err *booking.CallError) bool {
	switch err.Code {
	case booking.CodeRateLimited, booking.CodeProviderPaused, booking.CodeBreakerOpen:
		return err.Class == booking.ClassUnavailable
	default:
		return false
	}
}

func missing(p Provider) string {
	switch {
	case p.Name == "":
		return "no BookingProvider is the default one: name one in spec.providerRef, or ask an admin to set spec.default " +
			"on one"
	case p.Leaving:
		return fmt.Sprintf("BookingProvider %s is being deleted and takes no new tickets: name another one in "+
			"spec.providerRef", p.Name)
	default:
		return fmt.Sprintf("BookingProvider %s does not exist: create it, or correct spec.providerRef", p.Name)
	}
}

func moved(p Provider, pinned flightsv1.ProviderIdentity) string {
	if p.Identity.UID != pinned.UID {
		return fmt.Sprintf("BookingProvider %s was re-created since; what it says about account %s proves nothing: "+
			"cancel the booking there yourself, or restore the provider", p.Name, pinned.Account)
	}
	return fmt.Sprintf("the credential of BookingProvider %s belongs to account %s, but the booking or operation to "+
		"account %s: put back a credential of that account", p.Name, p.Identity.Account, pinned.Account)
}

// failed waits after a call that gave no answer to rest a decision on.
func (o Observation) failed(err *booking.CallError, r report) Step {
	if unheard(err) {
		return turn(o, err.RetryAfter, r)
	}
	cause := causeOf(err)
	return o.rest(max(o.pause(cause), asked(err)), cause, r)
}

// trouble words a failed read for a ticket without an open operation.
func (o Observation) trouble(err *booking.CallError) report {
	return report{
		state: o.resting(), reason: flightsv1.ReasonProviderNotReady, mood: reconciling,
		message: fmt.Sprintf("BookingProvider %s could not be asked: %s", o.Provider.Name, explain(err)), code: err.Code,
	}
}

// unfinished waits for a booking that the provider still works on, though no operation is open. It stalls, and is asked
// about less often, once the provider takes longer than it declares.
func (o Observation) unfinished(message string) Step {
	r := report{state: o.resting(), reason: flightsv1.ReasonOperationPending, mood: reconciling, message: message}
	if !o.overdue() {
		return o.rest(slowestPoll, CauseUnknown, r)
	}
	r.mood = stalled
	r.message += ", and is past its maxProcessing: ask the provider"
	return o.warn(CauseHeld, r)
}

// overdue says whether the ticket has waited for the provider's work for longer than that may take.
func (o Observation) overdue() bool {
	all := o.Ticket.Status.Conditions
	ready := meta.FindStatusCondition(all, flightsv1.ConditionReady)
	if ready == nil || ready.Reason != flightsv1.ReasonOperationPending {
		return false
	}
	since := meta.FindStatusCondition(all, flightsv1.ConditionReconciling)
	return since == nil || o.Now.After(since.LastTransitionTime.Add(o.Provider.MaxProcessing+o.Provider.ReadLag))
}

// explain words a call error without what changes from call to call.
func explain(err *booking.CallError) string {
	if err == nil {
		return "no reason given"
	}
	if err.Detail == "" {
		return err.Code
	}
	return fmt.Sprintf("%s (%s)", err.Detail, err.Code)
}

// same says whether two orders ask for the same journey. Nil and empty lists are the same.
func same(a, b flightsv1.Order) bool { return equality.Semantic.DeepEqual(a, b) }

// bookedAs is how a booking that the provider showed goes into the status. What it leaves out is as it was agreed.
func (o Observation) bookedAs(b booking.Booking, order flightsv1.Order) *flightsv1.BookingStatus {
	now := microless(o.Now)
	s := &flightsv1.BookingStatus{
		ID: b.ID, Reference: b.Reference, ClientReference: b.Names.ClientReference, Version: b.Version,
		Provider: o.Provider.Identity, Order: order, Price: booking.WrittenPrice(b.Price),
		Segments: booking.Written(b.Segments), BookedAt: &now,
	}
	price, segments := o.agreed(b.ID, order)
	if s.Price == nil {
		s.Price = price
	}
	if len(s.Segments) == 0 || len(s.Segments) > booking.MaxSegments {
		s.Segments = segments
	}
	if len(s.Segments) > 0 {
		s.Carrier = s.Segments[0].MarketingCarrier
	}
	if was := o.Ticket.Status.Booking; was != nil && was.ID == b.ID {
		s.BookedAt, s.AdoptedBy = was.BookedAt, was.AdoptedBy
	}
	return s
}

// agreed is what was known before of the price and the flights of a booking that is as an order: by the offer that the open
// operation took, else by what was written down of the booking.
func (o Observation) agreed(id string, order flightsv1.Order) (*flightsv1.Money, []flightsv1.Segment) {
	switch op, was := o.Ticket.Status.Operation, o.Ticket.Status.Booking; {
	case op != nil && op.Order != nil && same(*op.Order, order):
		return op.Price.DeepCopy(), slices.Clone(op.Segments)
	case was != nil && was.ID == id:
		return was.Price.DeepCopy(), slices.Clone(was.Segments)
	default:
		return nil, nil
	}
}
