package flightticket

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
)

func TestTheLogTellsWhatBecomesOfAnOperationAndNamesNoTraveller(t *testing.T) {
	open := func(outcome string) flightsv1.FlightTicketStatus {
		return flightsv1.FlightTicketStatus{Operation: &flightsv1.OperationStatus{
			ID: "op-1", Kind: flightsv1.OperationBook, Attempt: 3, Outcome: outcome,
			Provider: flightsv1.ProviderIdentity{Name: "example", Account: "canary"},
			Order:    &flightsv1.Order{Origin: "canary", Passengers: []flightsv1.Passenger{{GivenName: "canary"}}},
		}}
	}
	none := flightsv1.FlightTicketStatus{}
	booked := flightsv1.FlightTicketStatus{Booking: &flightsv1.BookingStatus{ID: "b-7", Reference: "canary"}}
	refused := flightsv1.FlightTicketStatus{Refusal: &flightsv1.RefusalStatus{Kind: flightsv1.OperationChange}}
	done := &lifecycle.Closed{Kind: flightsv1.OperationBook, Result: lifecycle.ResultDone}
	names := []string{`"kind"="Book"`, `"operation"="op-1"`, `"attempt"=3`, `"provider"="example"`, `"uid"="uid-1"`}
	cases := map[string]struct {
		was  flightsv1.FlightTicketStatus
		step lifecycle.Step
		want []string // empty: nothing is logged
	}{
		"an operation is written down": {was: none, step: lifecycle.Step{Action: lifecycle.StartOperation, Status: open("")},
			want: append([]string{"operation written down"}, names...)},
		"its outcome is unknown": {was: open(""), step: lifecycle.Step{Action: lifecycle.Wait, Status: open("Unknown")},
			want: append([]string{"operation stays open", `"outcome"="Unknown"`}, names...)},
		"it is as unknown as before": {was: open("Unknown"), step: lifecycle.Step{Action: lifecycle.Wait, Status: open("Unknown")}},
		"it is done": {was: open(""), step: lifecycle.Step{Action: lifecycle.Record, Status: booked, Closed: done},
			want: append([]string{"operation closed", `"result"="done"`, `"booking"="b-7"`}, names...)},
		"a quote is refused": {was: none, step: lifecycle.Step{Action: lifecycle.CloseOperation, Status: refused},
			want: []string{"refused before an operation", `"kind"="Change"`}},
		"a ticket without operation waits": {was: none, step: lifecycle.Step{Action: lifecycle.Wait, Status: booked}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var lines []string
			logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
			p := &pass{ticket: &flightsv1.FlightTicket{}}
			p.ticket.UID = "uid-1"
			p.journal(log.IntoContext(t.Context(), logger), c.was, c.step)
			if len(lines) != min(len(c.want), 1) {
				t.Fatalf("logged %q", lines)
			}
			text := strings.Join(lines, "")
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in %s", want, text)
				}
			}
			if strings.Contains(text, "canary") {
				t.Errorf("logged what nobody else may read: %s", text)
			}
		})
	}
}
