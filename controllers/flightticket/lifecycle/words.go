package lifecycle

import (
	"fmt"
	"strings"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// open words an operation that stays open.
func (o Observation) open(op flightsv1.OperationStatus) report {
	r := report{state: doing(op.Kind), mood: reconciling}
	over := settled(op, o.Provider, o.Now, o.KnownFor)
	what := fmt.Sprintf("the %s operation sent to BookingProvider %s", verb(op.Kind), op.Provider.Name)
	switch {
	case op.Outcome == string(booking.Pending):
		r.reason = flightsv1.ReasonOperationPending
		r.message = "the provider has accepted and not finished " + what
		if over {
			r.mood = stalled
			r.message += ", and is past its maxProcessing: " + o.askPerson(op)
		}
	case o.alone(op):
		r.reason, r.message = doingReason(op.Kind), what+" was not accepted yet; it is sent again"
	default:
		r.reason = flightsv1.ReasonOutcomeUnknown
		r.message = "no usable answer came to " + what + "; it is not repeated blindly but looked up"
		if !o.resolvable(op) {
			r.mood = stalled
			r.message = "no usable answer came to " + what + ", which offers no way to look it up: " + o.askPerson(op)
		}
	}
	return r
}

// askPerson words what a person is to find out about an operation, and how to say it.
func (o Observation) askPerson(op flightsv1.OperationStatus) string {
	n, done := o.Ticket.Names, "--done"
	if op.Kind == flightsv1.OperationBook {
		done = "--done --booking ID"
	}
	return fmt.Sprintf("ask the provider about %s, and say what became of it with %q or %q", op.ClientReference,
		n.command("resolve", "--not-done"), n.command("resolve", done))
}

// resolvable says whether anything but a person can still find out about an unknown operation.
func (o Observation) resolvable(op flightsv1.OperationStatus) bool {
	switch op.Kind {
	case flightsv1.OperationBook:
		return o.Provider.Lookup || op.BookingID != "" || o.mayReplay(op)
	case flightsv1.OperationChange:
		return op.BookingVersion != "" || !settled(op, o.Provider, o.Now, o.KnownFor)
	default:
		return true
	}
}

func doing(kind flightsv1.OperationKind) flightsv1.TicketState {
	switch kind {
	case flightsv1.OperationBook:
		return flightsv1.StateBooking
	case flightsv1.OperationChange:
		return flightsv1.StateChanging
	default:
		return flightsv1.StateCancelling
	}
}

func doingReason(kind flightsv1.OperationKind) string {
	switch kind {
	case flightsv1.OperationBook:
		return flightsv1.ReasonBooking
	case flightsv1.OperationChange:
		return flightsv1.ReasonChanging
	default:
		return flightsv1.ReasonCancelling
	}
}

func verb(kind flightsv1.OperationKind) string {
	switch kind {
	case flightsv1.OperationBook:
		return "book"
	case flightsv1.OperationChange:
		return "change"
	default:
		return "cancel"
	}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// deviation says in what a provider's booking is not what was asked for; empty if it is. What was left to the provider
// is no deviation, and the spelling of passengers is the airline's.
func deviation(asked, got flightsv1.Order) string {
	var parts []string
	differ := func(what string, want, have any) {
		if want != have {
			parts = append(parts, fmt.Sprintf("%s %v instead of %v", what, have, want))
		}
	}
	differ("origin", asked.Origin, got.Origin)
	differ("destination", asked.Destination, got.Destination)
	differ("seats", asked.Seats, got.Seats)
	if asked.DepartureDate != "" {
		differ("departureDate", asked.DepartureDate, got.DepartureDate)
	}
	if asked.ReturnDate != "" {
		differ("returnDate", asked.ReturnDate, got.ReturnDate)
	}
	if asked.Cabin != "" {
		differ("cabin", asked.Cabin, got.Cabin)
	}
	return strings.Join(parts, ", ")
}
