package story

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// A booking is gone when a read at its own account shows it so, whatever the cancellation was answered with.
func TestScenario17CancelAnsweredWith404Or409(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]simulator.Fault{
		"404 for a booking that stands": {Status: 404, Code: "booking_not_found"},
		"409 for a booking that stands": {Status: 409, Code: "not_cancellable"},
	} {
		t.Run(name+" leaves the finalizer on", func(t *testing.T) {
			t.Parallel()
			s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
			s.Apply(s.TicketManifest("trip"))
			ticket := s.Booked("trip", 2)
			answer.Operation, answer.Effect, answer.Times = simulator.OpCancel, simulator.EffectRefuse, 1
			s.Inject(answer)
			leavesButWaits(s, flightsv1.ReasonCancellationRefused)
			s.Told(s.Namespace, "FlightTicket", "trip", flightsv1.ReasonCancellationRefused, answer.Code)
			s.Do("", "annotate", "ticket", "trip", "flights.com/reconcile-requested-at=now")
			scene.AwaitGone(s, ticket)
			s.Live(0)
		})
	}
	for name, answer := range map[string]simulator.Fault{
		"404 for a booking that is cancelled": {Status: 404, Code: "booking_not_found"},
		"409 for a booking that is cancelled": {Status: 409, Code: "booking_cancelled"},
	} {
		t.Run(name+" lets the ticket go", func(t *testing.T) {
			t.Parallel()
			s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
			s.Apply(s.TicketManifest("trip"))
			ticket := s.Booked("trip", 2)
			gate := make(chan struct{})
			s.Inject(simulator.Fault{Operation: simulator.OpCancel, Effect: simulator.EffectDelayBefore, Times: 1, Release: gate})
			answer.Operation, answer.Effect, answer.Times = simulator.OpCancel, simulator.EffectRefuse, 1
			s.Inject(answer)
			s.Do("", "delete", "ticket", "trip", "--wait=false")
			s.AwaitCalls("held", func(calls []simulator.Call) bool { return calls[len(calls)-1].Held })
			if err := s.Simulator.CancelOutside(ticket.Status.Booking.ID); err != nil {
				t.Fatal(err)
			}
			close(gate)
			scene.AwaitGone(s, ticket)
			s.Live(0)
		})
	}
	t.Run("404 with the token of another account leaves the finalizer on", func(t *testing.T) {
		t.Parallel()
		s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
		s.Apply(s.TicketManifest("trip"))
		ticket := s.Booked("trip", 2)
		s.Simulator.AddToken(s.Token()+"-other", "acct-8")
		s.StoreToken(s.Token() + "-other")
		scene.Await(s, s.Provider, "of another account", func(p *flightsv1.BookingProvider) bool { return p.Status.Account == "acct-8" })
		leavesButWaits(s, flightsv1.ReasonAccountChanged)
		s.StoreToken(s.Token())
		scene.AwaitGone(s, ticket)
		s.Live(0)
	})
}

// leavesButWaits deletes the ticket and waits until it says why it stays. Its booking does, too.
func leavesButWaits(s *scene.Scene, reason string) {
	s.Helper()
	s.Do("", "delete", "ticket", "trip", "--wait=false")
	scene.Await(s, s.Ticket("trip"), reason, func(t *flightsv1.FlightTicket) bool {
		ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
		return !t.DeletionTimestamp.IsZero() && ready != nil && ready.Reason == reason
	})
	s.Live(1)
}
