package crash

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// SIGTERM comes while a call hangs.
func TestScenario12StoppedInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, settings := range ways() {
		t.Run("the outcome is stored before the end, "+name, func(t *testing.T) {
			s := newStory(t, settings)
			s.start()
			s.hold(simulator.EffectDelayAfter, simulator.OpBook)
			s.Apply(s.TicketManifest("trip"))
			s.held(simulator.OpBook)
			ended := s.stop() // returns once the controller has said that it stops
			s.settle()        // now the answer comes
			if err := <-ended; err != nil {
				t.Fatalf("the controller did not end cleanly: %v", err)
			}
			ticket := s.Ticket("trip")
			s.Read(ticket)
			if ticket.Status.Booking == nil || ticket.Status.Operation != nil {
				t.Errorf("the outcome was not stored before the end: %+v", ticket.Status)
			}
			s.start()
			s.Booked("trip", 2)
			s.bookedOnce(settings)
		})
		t.Run("an outcome that does not come is left to the next controller, "+name, func(t *testing.T) {
			s := newStory(t, settings)
			s.start()
			s.hold(simulator.EffectDelayAfter, simulator.OpBook) // longer than the call may take
			s.Apply(s.TicketManifest("trip"))
			s.held(simulator.OpBook)
			if err := <-s.stop(); err != nil {
				t.Fatalf("the controller did not end cleanly: %v", err)
			}
			ticket := s.Ticket("trip")
			s.Read(ticket)
			if op := ticket.Status.Operation; op == nil || op.Outcome != "Unknown" {
				t.Errorf("the operation is not left open as unknown: %+v", ticket.Status)
			}
			s.settle()
			s.start()
			s.Booked("trip", 2)
			s.bookedOnce(settings)
		})
	}
}

// The provider commits, gives no answer, and shows the booking only 20 s later. Nobody says that it failed, and nothing is
// bought twice.
func TestScenario13TheTimeOutThatHadSucceeded(t *testing.T) {
	t.Parallel()
	for name, settings := range ways() {
		settings.ReadLag = metav1.Duration{Duration: 20 * time.Second}
		for fault, effect := range map[string]simulator.Effect{
			"the connection breaks": simulator.EffectDropAfter, "the answer stalls": simulator.EffectDelayAfter,
		} {
			t.Run(name+", "+fault, func(t *testing.T) {
				s := newStory(t, settings)
				s.start()
				if effect == simulator.EffectDelayAfter {
					s.hold(effect, simulator.OpBook)
				} else {
					s.spoil(effect, simulator.OpBook)
				}
				s.Apply(s.TicketManifest("trip"))
				s.unknown("trip")
				s.settle()
				scene.Await(s.Scene, s.Ticket("trip"), "booked without ever having failed", func(ft *flightsv1.FlightTicket) bool {
					if meta.IsStatusConditionTrue(ft.Status.Conditions, flightsv1.ConditionStalled) {
						t.Errorf("the ticket is said to be stalled: %+v", ft.Status.Conditions)
					}
					return meta.IsStatusConditionTrue(ft.Status.Conditions, flightsv1.ConditionReady)
				})
				s.bookedOnce(settings)
			})
		}
	}
}
