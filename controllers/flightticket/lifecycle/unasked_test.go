package lifecycle_test

import (
	"testing"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
)

func TestWhatAProviderShowsUnaskedIsNotTaken(t *testing.T) {
	others := booking.Booking{
		ID: "b-9", Status: booking.StatusConfirmed, Names: booking.Names{ClientReference: "prod/uid-9/1", Owner: "prod/team-b/other"},
		Order: flightsv1.Order{Origin: "BOM", Destination: "LON", Seats: 2},
	}
	shown := func(heard lifecycle.Heard) lifecycle.Observation {
		return with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) {
			o.Fresh, o.Heard = false, heard
			o.Ticket.Status.Operation.Outcome = string(booking.Unknown)
		})
	}
	accepted := shown(lifecycle.Heard{Read: &lifecycle.Reading{Booking: others}})
	accepted.Ticket.Status.Operation.BookingID = others.ID
	decide(t, map[string]decision{
		"a list that holds another ticket's booking alone": {
			seen:   shown(lifecycle.Heard{Found: &lifecycle.Listing{Bookings: []booking.Booking{others}}}),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: 2 * time.Second,
		},
		"a booking of the accepted id that another ticket made": {
			seen: accepted, action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: 2 * time.Second,
		},
	})
}
