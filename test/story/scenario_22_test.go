package story

import (
	"testing"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// Same name, new UID, no status: what a restore from a backup, or a manifest that is applied again, brings.
func TestScenario22TheRecreatedTicket(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.Apply(s.TicketManifest("trip", "deletionPolicy: Retain"))
	lost := s.Booked("trip", 2)
	s.Do("", "delete", "ticket", "trip", "--timeout=120s")
	s.Live(1)

	s.Apply(s.TicketManifest("trip"))
	why := []string{lost.Status.Booking.Reference, "it is not bought again"}
	s.Says(s.Waiting("trip", flightsv1.ReasonAdoptionRequired), why...)
	s.Told(s.Namespace, "FlightTicket", "trip", flightsv1.ReasonAdoptionRequired, why...)
	s.Do("", "annotate", "ticket", "trip", "flights.com/reconcile-requested-at=now")
	s.Apply(s.TicketManifest("trip", "number: 3")) // nor for another spec
	s.Waiting("trip", flightsv1.ReasonAdoptionRequired)
	if books := s.Simulator.Count(simulator.OpBook); books != 1 {
		t.Errorf("the provider was asked to book %d times, want once", books)
	}
	s.Live(1)
	s.Do("", "delete", "ticket", "trip", "--timeout=120s")
	s.Live(1) // it is not this ticket's to cancel
}
