package lifecycle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// adoptable leaves a live booking under the ticket's name, which another incarnation of the ticket made, to a person.
func (o Observation) adoptable(b booking.Booking) Step {
	n := o.Ticket.Names
	return o.warn(CauseHeld, report{
		state: o.resting(), reason: flightsv1.ReasonAdoptionRequired, mood: stalled,
		message: fmt.Sprintf("BookingProvider %s has booking %s for %s/%s already, which another FlightTicket of this "+
			"name made; it is not bought again: take it over with %q, cancel it with the provider, or use another name for "+
			"this ticket", o.Provider.Name, label(b), n.Namespace, n.Name, n.command("adopt", "--booking "+b.ID)),
	})
}

// adopt has a ticket without a booking take over the one that a person named. Nothing is bought meanwhile.
func adopt(o Observation) Step {
	id, read := o.Ticket.Adopt, o.Heard.Read
	switch {
	case read == nil:
		return Step{Action: ReadBooking, Reference: id}
	case read.Err != nil && causeOf(read.Err) == CauseRefused:
		return o.unadoptable(fmt.Sprintf("BookingProvider %s shows no booking %.100q in account %s: %s",
			o.Provider.Name, id, o.Provider.Identity.Account, explain(read.Err)))
	case read.Err != nil:
		return o.failed(read.Err, o.trouble(read.Err))
	}
	b := read.Booking
	if why := o.unfit(b); why != "" {
		return o.unadoptable(why)
	}
	switch holder := o.Heard.Holder; {
	case holder == nil:
		return Step{Action: CheckHolders, Reference: id}
	case holder.Ticket != "":
		return o.unadoptable(fmt.Sprintf("FlightTicket %s holds booking %s, or made it: delete that ticket with "+
			"deletionPolicy Retain first", holder.Ticket, label(b)))
	default:
		return adopted(o, b)
	}
}

// unfit says why a booking can't be taken over by this ticket, whoever holds it; empty: it can.
func (o Observation) unfit(b booking.Booking) string {
	_, neighbour := o.Ticket.Names.Neighbour(b.Names.Owner)
	switch {
	case b.ID != o.Ticket.Adopt:
		return fmt.Sprintf("BookingProvider %s answered with booking %.100q instead of %.100q", o.Provider.Name, b.ID, o.Ticket.Adopt)
	case b.Status != booking.StatusConfirmed:
		return fmt.Sprintf("booking %s is %s at BookingProvider %s, and only one that is Confirmed can be taken over",
			label(b), b.Status, o.Provider.Name)
	case !neighbour:
		return fmt.Sprintf("booking %s was not made for a FlightTicket of this installation and of namespace %s",
			label(b), o.Ticket.Names.Namespace)
	default:
		return ""
	}
}

// unadoptable tells why the booking that a person named is not taken over: anew for each booking that is named.
func (o Observation) unadoptable(why string) Step {
	step := o.wait(CauseHeld, report{
		state: o.resting(), reason: flightsv1.ReasonAdoptionRefused, mood: stalled,
		message: why + "; nothing is booked meanwhile: name another booking, or remove the annotation " +
			flightsv1.AdoptBookingAnnotation,
	})
	was := meta.FindStatusCondition(o.Ticket.Status.Conditions, flightsv1.ConditionReady)
	if now := meta.FindStatusCondition(step.Status.Conditions, flightsv1.ConditionReady); was == nil || was.Message != now.Message {
		step.Event = &Event{Warning: true, Reason: now.Reason, Message: now.Message}
	}
	return step
}

// adopted records a booking that the ticket took over. Where it is not as the spec asks, it is changed afterwards, through
// the second gate as always.
func adopted(o Observation, b booking.Booking) Step {
	s := o.prior()
	s.Booking, s.Refusal = o.bookedAs(b, b.Order), nil
	s.Booking.AdoptedBy = orElse(o.Ticket.DecidedBy, unnamed)
	attempt, _ := o.Ticket.Names.Attempt(b.Names.ClientReference)
	s.Attempts = max(s.Attempts, attempt)
	return Step{
		Action: Record, Status: o.tell(s, o.standing(*s.Booking)),
		Event: &Event{
			Reason:  flightsv1.ReasonAdopted,
			Message: fmt.Sprintf("%s was taken over on the word of %s", describe(*s.Booking), s.Booking.AdoptedBy),
		},
	}
}

// unnamed stands for a person whose name no webhook wrote down.
const unnamed = "somebody unknown"

// Holds says whether a ticket of the namespace holds a booking of a provider, will come to hold it once its open operation
// is resolved, or made it. The names are those of that ticket.
func Holds(s flightsv1.FlightTicketStatus, n Names, provider flightsv1.ProviderIdentity, b booking.Booking) bool {
	if held := s.Booking; held != nil && held.ID == b.ID && held.Provider.UID == provider.UID {
		return true
	}
	if op := s.Operation; op != nil && op.Provider.UID == provider.UID &&
		(op.BookingID == b.ID || op.ClientReference != "" && op.ClientReference == b.Names.ClientReference) {
		return true
	}
	_, made := n.Attempt(b.Names.ClientReference)
	return made
}
