package story

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// Flux, Argo CD and kubectl's friends judge objects by kstatus.
func TestToolsThatWaitSeeANewTicketInProgressAndABookedOneCurrent(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.Down()
	stands := func(object string, want status.Status) {
		t.Helper()
		parsed := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(object), parsed); err != nil {
			t.Fatal(err)
		}
		result, err := status.Compute(parsed)
		if err != nil {
			t.Fatal(err)
		}
		if result.Status != want {
			t.Errorf("the status is %s (%s), want %s", result.Status, result.Message, want)
		}
	}
	read := func() string { return s.Do("", "get", "ticket", "trip", "-o", "json") }
	stands(s.Do(s.TicketManifest("trip"), "create", "-f", "-", "-o", "json"), status.InProgressStatus)
	s.Waiting("trip", flightsv1.ReasonProviderNotReady)
	stands(read(), status.InProgressStatus)
	s.Up()
	s.Booked("trip", 2)
	stands(read(), status.CurrentStatus)
	s.Inject(simulator.Fault{Operation: simulator.OpChange, Effect: simulator.EffectRefuse, Times: 1})
	stands(s.Do("", "patch", "ticket", "trip", "--type=merge", "-p", `{"spec":{"number":3}}`, "-o", "json"), status.InProgressStatus)
	s.Waiting("trip", flightsv1.ReasonChangeRefused)
	stands(read(), status.FailedStatus)

	stands(s.Do("", "get", "bookingprovider", s.Provider.Name, "-o", "json"), status.CurrentStatus)
}

func TestANamespaceGoesWithItsTicketsAndNothingStaysBooked(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	for _, name := range []string{"one", "two", "three"} {
		s.Apply(s.TicketManifest(name))
	}
	s.Apply(s.TicketManifest("waiting", "suspend: true"))
	for _, name := range []string{"one", "two", "three"} {
		s.Booked(name, 2)
	}
	s.Live(3)
	s.Do("", "delete", "namespace", s.Namespace, "--wait=false")
	for _, name := range []string{"one", "two", "three", "waiting"} {
		scene.AwaitGone(s, s.Ticket(name))
	}
	scene.AwaitGone(s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}})
	s.Live(0)
}

func TestAProviderStaysUntilItsLastTicketIsGone(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.Apply(s.TicketManifest("trip"))
	ticket := s.Booked("trip", 2)
	s.Do("", "delete", "bookingprovider", s.Provider.Name, "--wait=false")
	s.Do("", "delete", "ticket", "trip", "--wait=false")
	scene.AwaitGone(s, ticket)
	scene.AwaitGone(s, s.Provider)
	s.Live(0)
}
