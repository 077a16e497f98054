package flightticket

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
)

// journal logs what the status that was just stored says of an operation: that it is written down, what came of
// sending it, that it is closed. The context's logger names the ticket. Only ids are logged: an order holds travellers,
// and a provider's sentences may repeat them; the condition and the event hold the reason.
func (p *pass) journal(ctx context.Context, was flightsv1.FlightTicketStatus, step lifecycle.Step) {
	entry := log.FromContext(ctx).WithValues("uid", p.ticket.UID)
	before, now := was.Operation, step.Status.Operation
	switch {
	case now != nil && (before == nil || before.ID != now.ID):
		entry.Info("operation written down", identify(*now)...)
	case now != nil && before.Outcome != now.Outcome:
		entry.Info("operation stays open", append(identify(*now), "outcome", now.Outcome)...)
	case now == nil && before != nil:
		closed := *before
		if closed.BookingID == "" && step.Status.Booking != nil {
			closed.BookingID = step.Status.Booking.ID // a book operation learns its booking only now
		}
		entry.Info("operation closed", append(identify(closed), "result", result(step))...)
	case was.Booking == nil && step.Action == lifecycle.Record:
		b := step.Status.Booking
		entry.Info("booking recorded without an operation", "booking", b.ID, "provider", b.Provider.Name, "adopted", b.AdoptedBy != "")
	case now == nil && step.Action == lifecycle.CloseOperation && step.Status.Refusal != nil:
		entry.Info("refused before an operation was written down", "kind", step.Status.Refusal.Kind)
	}
}

func result(step lifecycle.Step) string {
	if step.Closed == nil {
		return ""
	}
	return step.Closed.Result
}

// identify names an operation in the log.
func identify(op flightsv1.OperationStatus) []any {
	return []any{
		"kind", op.Kind, "operation", op.ID, "attempt", op.Attempt, "booking", op.BookingID, "provider", op.Provider.Name,
	}
}
