package cluster

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// showOperation tells about the open operation of a ticket, and what to ask the provider. It names no passenger.
func showOperation(w io.Writer, ticket *flightsv1.FlightTicket, now time.Time) error {
	op := ticket.Status.Operation
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range operationRows(ticket) {
		if row[1] != "" {
			fmt.Fprintf(table, "%s:\t%s\n", row[0], row[1])
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	text := "Ask " + op.Provider.Name + " " + question(op) + "\n"
	if ends := end(op); now.Before(ends) {
		text += fmt.Sprintf("It may still take effect by itself until %s: decide nothing before.\n", ends.UTC().Format(time.RFC3339))
	}
	_, err := io.WriteString(w, text)
	return err
}

func operationRows(ticket *flightsv1.FlightTicket) [][2]string {
	op := ticket.Status.Operation
	outcome := op.Outcome
	if outcome == "" {
		outcome = "none yet"
	}
	return [][2]string{
		{"Ticket", ticket.Namespace + "/" + ticket.Name},
		{"Operation", fmt.Sprintf("%s (%s)", op.ID, op.Kind)},
		{"Outcome", outcome},
		{"Started", op.StartedAt.UTC().Format(time.RFC3339)},
		{"Provider", fmt.Sprintf("%s, account %s", op.Provider.Name, op.Provider.Account)},
		{"Booking", op.BookingID},
		{"Client reference", op.ClientReference},
		{"Owner", op.Owner},
		{"Order", orderText(op.Order)},
	}
}

// question is what only the provider can answer.
func question(op *flightsv1.OperationStatus) string {
	switch op.Kind {
	case flightsv1.OperationBook:
		text := "whether a booking with that client reference exists, or will."
		if op.ClientReference == "" {
			text = "whether a booking of that owner exists, or will."
		}
		return text + " If so: --done --booking ID. If never: --not-done."
	case flightsv1.OperationChange:
		return "whether booking " + op.BookingID + " is as the order says. If so: --done. If never: --not-done."
	case flightsv1.OperationCancel:
		return "whether booking " + op.BookingID + " is cancelled. If so: --done. If never: --not-done."
	default:
		return "what became of it. If it is done: --done. If never: --not-done."
	}
}

// end is when the operation can no longer take effect by itself.
func end(op *flightsv1.OperationStatus) time.Time {
	if op.SettlesAt != nil {
		return op.SettlesAt.Time
	}
	return op.SendBy.Time
}

func orderText(order *flightsv1.Order) string {
	if order == nil {
		return ""
	}
	parts := []string{fmt.Sprintf("%s to %s, seats: %d", order.Origin, order.Destination, order.Seats)}
	for _, more := range [][2]string{
		{"departure", string(order.DepartureDate)}, {"return", string(order.ReturnDate)}, {"cabin", string(order.Cabin)},
	} {
		if more[1] != "" {
			parts = append(parts, more[0]+": "+more[1])
		}
	}
	return strings.Join(parts, ", ")
}
