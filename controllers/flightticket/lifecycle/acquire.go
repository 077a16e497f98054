package lifecycle

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
)

// acquire leads a ticket without a booking to one: to the one that exists already, to the one that it is to adopt, or to
// its book operation.
func acquire(o Observation) Step {
	if step, held := blocked(o); held && o.Ticket.Adopt == "" {
		return step
	}
	if step, held := reach(o, nil, report{state: o.resting()}); held {
		return step
	}
	if !o.Provider.Lookup {
		return obtain(o, nil)
	}
	owner := o.Heard.Owner
	switch {
	case owner == nil:
		return Step{Action: LookupOwner, Reference: o.Ticket.Names.Owner()}
	case owner.Err != nil:
		return o.failed(owner.Err, o.trouble(owner.Err))
	}
	return obtain(o, owner.Bookings)
}

// obtain judges the bookings under the ticket's name. A live one is never bought again: it is recorded if this incarnation
// of the ticket made it (the status was lost), and left to a person if not.
func obtain(o Observation, found []booking.Booking) Step {
	var others []booking.Booking
	for _, b := range found {
		switch {
		case b.Names.Owner != o.Ticket.Names.Owner() || !live(b):
		case !o.made(b):
			others = append(others, b)
		case b.Status == booking.StatusPending:
			return o.unfinished(fmt.Sprintf("BookingProvider %s has accepted booking %s and not finished", o.Provider.Name, b.ID))
		default:
			return record(o, b, b.Order)
		}
	}
	if o.Ticket.Adopt != "" {
		return adopt(o)
	}
	if len(others) > 0 {
		return o.adoptable(others[0])
	}
	return offer(o, flightsv1.OperationBook)
}

// blocked returns the step of a ticket that must not start an operation for reasons of its own.
func blocked(o Observation) (Step, bool) {
	r := report{state: o.resting()}
	switch {
	case o.Ticket.Wanted == nil:
		r.reason, r.message, r.mood = flightsv1.ReasonPlaceRefused, o.Ticket.Problem, stalled
		step := o.warn(CauseHeld, r)
		step.Action, step.After = Nothing, 0
		return step, true
	case o.refusalStands():
		// The conditions still say why; nothing may be written over them.
		return Step{Action: Nothing, Cause: CauseRefused, Status: o.unchanged()}, true
	case o.Ticket.Suspend:
		r.reason, r.message = flightsv1.ReasonSuspended, "spec.suspend is true: nothing is booked or changed"
		return Step{Action: Nothing, Cause: CauseHeld, Status: o.tell(o.prior(), r)}, true
	case !o.PoliciesLoaded:
		// Before anything is asked: the answers would have to be asked for again.
		r.reason, r.message, r.mood = flightsv1.ReasonPolicyError, "waits until the policies are loaded", reconciling
		return o.rest(firstPoll, CauseTurn, r), true
	default:
		return Step{}, false
	}
}

// unchanged is the status as it is, with a request for a reconcile marked as handled.
func (o Observation) unchanged() flightsv1.FlightTicketStatus {
	s := o.prior()
	if o.Ticket.ReconcileRequestedAt != "" {
		s.LastHandledReconcileAt = o.Ticket.ReconcileRequestedAt
	}
	return *s
}

// made says whether this incarnation of the ticket made a booking.
func (o Observation) made(b booking.Booking) bool {
	_, mine := o.Ticket.Names.Attempt(b.Names.ClientReference)
	return mine && b.Names.Owner == o.Ticket.Names.Owner()
}

func live(b booking.Booking) bool {
	return b.Status == booking.StatusConfirmed || b.Status == booking.StatusPending
}

func label(b booking.Booking) string {
	if b.Reference == "" {
		return b.ID
	}
	return b.Reference + " (" + b.ID + ")"
}

// offer leads from the wanted order to a written operation: quotas, quote, ceiling, policies, operation. Quotas come first,
// so that a ticket which waits for room costs no quotes.
func offer(o Observation, kind flightsv1.OperationKind) Step {
	if step, held := afford(o, kind, CheckQuotas, o.Heard.Quotas); held {
		return step
	}
	r := report{state: o.resting(), mood: reconciling}
	quoted := o.Heard.Offer
	switch {
	case quoted == nil:
		return Step{Action: Quote}
	case quoted.Err != nil && quoted.Err.Class == booking.ClassRefused:
		return refuse(o, kind, explain(quoted.Err))
	case quoted.Err != nil:
		return o.failed(quoted.Err, o.trouble(quoted.Err))
	}
	if reason, why := tooDear(quoted.Offer.Price, o.Ticket.Ceiling); reason != "" {
		r.reason, r.message, r.mood = reason, why, stalled
		return o.warn(CauseHeld, r)
	}
	return gate(o, kind, r)
}

func gate(o Observation, kind flightsv1.OperationKind, r report) Step {
	reasons := strings.Join(o.Heard.Verdict.Messages, "; ")
	switch o.Heard.Verdict.Kind {
	case VerdictAllowed:
		return start(o, kind)
	case VerdictRefused:
		r.reason, r.message, r.mood = flightsv1.ReasonPolicyRefused, reasons, stalled
		return o.warn(CauseHeld, r)
	case VerdictError:
		r.reason, r.message = flightsv1.ReasonPolicyError, reasons
		return o.warn(CauseAnew, r)
	default:
		ask := flightsv1.OperationCreate
		if kind == flightsv1.OperationChange {
			ask = flightsv1.OperationUpdate
		}
		return Step{Action: Gate, Operation: ask}
	}
}

// tooDear says why an offer is above a ceiling, or can't be compared with it; empty if it is at most the ceiling.
func tooDear(price, ceiling money.Amount) (reason, message string) {
	switch {
	case ceiling == (money.Amount{}):
		return "", ""
	case price.Currency != ceiling.Currency:
		return flightsv1.ReasonCurrencyMismatch, fmt.Sprintf("the offer is in %s but spec.maxPrice is in %s: state maxPrice in %s",
			price.Currency, ceiling.Currency, price.Currency)
	case price.Minor > ceiling.Minor:
		return flightsv1.ReasonPriceExceeded, fmt.Sprintf(
			"the cheapest offer costs %s, spec.maxPrice is %s: raise maxPrice, or wait for a cheaper offer", price, ceiling)
	default:
		return "", ""
	}
}

// start asks for room with the provider and then in the quotas, and writes an operation down. From here on its outcome must
// be found out, whatever happens to this process. A cancellation needs no room in quotas: it makes some.
func start(o Observation, kind flightsv1.OperationKind) Step {
	switch room := o.Heard.Room; {
	case room == nil:
		return Step{Action: Admit}
	case room.Err != nil:
		return o.failed(room.Err, o.trouble(room.Err))
	}
	if kind != flightsv1.OperationCancel {
		if step, held := afford(o, kind, HoldQuotas, o.Heard.Hold); held {
			return step
		}
	}
	return writeDown(o, kind)
}

// writeDown writes an operation down.
func writeDown(o Observation, kind flightsv1.OperationKind) Step {
	s := o.prior()
	s.Refusal = nil
	op := &flightsv1.OperationStatus{
		ID: o.NewID, Kind: kind, Generation: o.Ticket.Generation, Provider: o.Provider.Identity,
		Owner: o.Ticket.Names.Owner(), StartedAt: metav1.NewMicroTime(o.Now.UTC().Truncate(1000)),
		SendBy: metav1.NewMicroTime(sendBy(o.Now, o.Provider).UTC().Truncate(1000)), Keyed: o.Provider.takesKeys(),
	}
	op.SettlesAt = settling(*op, o.Provider)
	s.Operation = op
	r := report{mood: reconciling}
	switch kind {
	case flightsv1.OperationBook:
		s.Attempts = o.lastAttempt() + 1
		op.Attempt, op.ClientReference = s.Attempts, o.Ticket.Names.ClientReference(s.Attempts)
		r.state, r.reason = flightsv1.StateBooking, flightsv1.ReasonBooking
		r.message = "books with " + o.Provider.Name
	case flightsv1.OperationChange:
		o.about(op)
		r.state, r.reason = flightsv1.StateChanging, flightsv1.ReasonChanging
		r.message = "changes booking " + op.BookingID + " with " + o.Provider.Name
	case flightsv1.OperationCancel:
		o.about(op)
		r.state, r.reason = flightsv1.StateCancelling, flightsv1.ReasonCancelling
		r.message = "cancels booking " + op.BookingID + " with " + o.Provider.Name
	}
	if kind != flightsv1.OperationCancel {
		op.Order = o.Ticket.Wanted.DeepCopy()
		taken := o.Heard.Offer.Offer
		op.OfferID, op.Price, op.Segments = taken.ID, booking.WrittenPrice(taken.Price), booking.Written(taken.Segments)
	}
	return Step{Action: StartOperation, Status: o.tell(s, r)}
}

// about points an operation at the booking just read.
func (o Observation) about(op *flightsv1.OperationStatus) {
	b := o.Heard.Read.Booking
	op.Attempt, _ = o.Ticket.Names.Attempt(b.Names.ClientReference)
	op.ClientReference, op.BookingID, op.BookingVersion = b.Names.ClientReference, b.ID, b.Version
}

// lastAttempt is the highest attempt that the status or the provider knows. The provider may know more than a status
// that was restored from a backup, and a reference that is used twice would let an old booking pass for a new one.
func (o Observation) lastAttempt() int64 {
	last := o.Ticket.Status.Attempts
	if o.Heard.Owner == nil {
		return last
	}
	for _, b := range o.Heard.Owner.Bookings {
		if attempt, mine := o.Ticket.Names.Attempt(b.Names.ClientReference); mine && attempt > last {
			last = attempt
		}
	}
	return last
}
