package story

import (
	"slices"
	"strings"
	"sync"
	"testing"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

func TestEveryWayOfApplyingATicketKeepsItsFinalizerAndRequester(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	manifest := s.TicketManifest("trip")
	s.Says(s.Do(manifest, "apply", "--dry-run=server", "-f", "-"), "trip created (server dry run)")
	if stored := s.Do("", "get", "tickets", "-o", "name"); stored != "" {
		t.Errorf("a dry run stored %s", stored)
	}
	if a := s.Run(manifest, "diff", "-f", "-"); a.Code != 1 || !strings.Contains(a.Out, `+  number: 2`) {
		t.Errorf("the diff of a new ticket ends with code %d: %s%s", a.Code, a.Out, a.Err)
	}
	s.Apply(manifest, "--as=asha", "--as-group=system:masters")
	first := s.Booked("trip", 2)
	for _, c := range []struct {
		what string
		args []string
		want string
	}{
		{"apply again", []string{"apply", "-f", "-"}, "trip unchanged"},
		{"diff", []string{"diff", "-f", "-"}, ""},
		{"server-side apply", []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, "trip serverside-applied"},
		{"server-side apply again", []string{"apply", "--server-side", "-f", "-"}, "trip serverside-applied"},
		{"server-side diff", []string{"diff", "--server-side", "-f", "-"}, ""},
		{"server-side dry run", []string{"apply", "--server-side", "--dry-run=server", "-f", "-"}, "trip serverside-applied (server dry run)"},
		{"replace", []string{"replace", "-f", "-"}, "trip replaced"},
		{"replace in a dry run", []string{"replace", "--dry-run=server", "-f", "-"}, "trip replaced (server dry run)"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := s.In(t)
			if out := s.Do(manifest, c.args...); c.want == "" && out != "" || !strings.Contains(out, c.want) {
				t.Errorf("kubectl printed %s", out)
			}
			now := s.Ticket("trip")
			s.Read(now)
			if !slices.Contains(now.Finalizers, flightsv1.BookingFinalizer) || now.Annotations[flightsv1.RequestedByAnnotation] != "asha" {
				t.Errorf("finalizers %v, annotations %v", now.Finalizers, now.Annotations)
			}
			if now.Generation != first.Generation || now.Status.Booking.ID != first.Status.Booking.ID {
				t.Errorf("generation %d, booking %s", now.Generation, now.Status.Booking.ID)
			}
		})
	}
	if a := s.Run(s.TicketManifest("trip", "number: 3"), "diff", "-f", "-"); a.Code != 1 || !strings.Contains(a.Out, "+  number: 3") {
		t.Errorf("the diff of a change ends with code %d: %s%s", a.Code, a.Out, a.Err)
	}
	s.Do(s.TicketManifest("trip", "number: 3"), "replace", "-f", "-")
	s.Booked("trip", 3)
	if n := s.Simulator.Count(simulator.OpBook); n != 1 {
		t.Errorf("the provider was asked to book %d times, want once", n)
	}
	s.Live(1)
}

func TestOfTwoUsersWhoReplaceTheSameVersionOneIsToldToLookAgain(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.Apply(s.TicketManifest("trip"))
	s.Booked("trip", 2)
	seen := s.Do("", "get", "ticket", "trip", "-o", "yaml")
	s.Do(strings.Replace(seen, "  number: 2\n", "  number: 3\n", 1), "replace", "-f", "-")
	s.Says(s.Refused(strings.Replace(seen, "  number: 2\n", "  number: 4\n", 1), "replace", "-f", "-"),
		"(Conflict)", "the object has been modified")
	s.Booked("trip", 3)
	s.Live(1)
}

func TestUsersWhoRaceEndWithOneBookingOfWhatIsStored(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	created := race(4, func(int) bool { return s.Run(s.TicketManifest("trip"), "create", "-f", "-").Code == 0 })
	if created != 1 {
		t.Errorf("%d of 4 users created the ticket", created)
	}
	seats := []string{`{"spec":{"number":3}}`, `{"spec":{"number":4}}`, `{"spec":{"number":5}}`}
	patched := race(len(seats), func(i int) bool {
		return s.Run("", "patch", "ticket", "trip", "--type=merge", "-p", seats[i]).Code == 0
	})
	if patched != len(seats) {
		t.Errorf("%d of %d patches were taken", patched, len(seats))
	}
	last := s.Ticket("trip")
	s.Read(last)
	s.Booked("trip", last.Spec.Number)
	s.Live(1)
	if got := s.Simulator.LiveBookings()[0].Order.Seats; got != last.Spec.Number {
		t.Errorf("%d seats are booked, want %d", got, last.Spec.Number)
	}
}

// race does something n times at once and counts how often it went well.
func race(n int, do func(i int) bool) int {
	var wait sync.WaitGroup
	well := make([]int, n)
	for i := range n {
		wait.Go(func() {
			if do(i) {
				well[i] = 1
			}
		})
	}
	wait.Wait()
	sum := 0
	for _, w := range well {
		sum += w
	}
	return sum
}
