package story

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

func TestScenario15BadCredentialsMakeNothingUndeletable(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.Apply(s.TicketManifest("trip"))
	ticket := s.Booked("trip", 2)
	s.StoreToken(s.Token() + "-wrong")
	s.ProviderIs(flightsv1.ReasonCredentialsRefused)
	s.Apply(s.TicketManifest("never-booked"))
	s.Waiting("never-booked", flightsv1.ReasonProviderNotReady)
	s.Do("", "delete", "ticket", "never-booked", "--timeout=120s") // it has nothing to wait for
	s.Do("", "delete", "ticket", "trip", "--wait=false")
	scene.Await(s, s.Ticket("trip"), "waiting for its provider", func(t *flightsv1.FlightTicket) bool {
		ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
		return !t.DeletionTimestamp.IsZero() && ready != nil && ready.Reason == flightsv1.ReasonProviderNotReady
	})
	s.Says(s.Do("", "get", "ticket", "trip", "-o", "wide"), "Cancelling", "put a valid one there")
	s.Live(1)
	s.StoreToken(s.Token())
	scene.AwaitGone(s, ticket)
	s.Live(0)
}
