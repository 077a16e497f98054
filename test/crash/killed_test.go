package crash

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// ways are the two kinds of provider that an outcome is found out from: one that remembers idempotency keys, so that the
// same call can be sent again, and one that can only be looked into.
func ways() map[string]simulator.Settings {
	return map[string]simulator.Settings{
		"by a provider that remembers keys": {IdempotencyKeyTTL: metav1.Duration{Duration: time.Hour}},
		"by a provider that only looks up":  {},
	}
}

// moment is a point in the life of a booking at which the controller is killed.
type moment struct {
	name string
	// arrange is done while no controller runs.
	arrange func(*story)
	// reached waits, with the controller running, until it is there.
	reached func(*story)
	// after is done when it is dead; may be nil.
	after func(*story)
}

// One ticket, and ten deaths between its apply and its booking.
func TestKillTenTimes(t *testing.T) {
	t.Parallel()
	for name, settings := range ways() {
		t.Run("one live booking "+name, func(t *testing.T) {
			s := newStory(t, settings)
			s.Apply(s.TicketManifest("trip"))
			moments := tenMoments()
			if len(moments) != 10 {
				t.Fatalf("there are %d moments", len(moments))
			}
			for number, m := range moments {
				m.arrange(s)
				s.start()
				m.reached(s)
				s.kill()
				s.settle()
				if m.after != nil {
					m.after(s)
				}
				s.neverTwo()
				t.Logf("death %d, %s: %d calls to book so far", number+1, m.name, s.Simulator.Count(simulator.OpBook))
			}
			s.start()
			s.Booked("trip", 2)
			s.bookedOnce(settings)
			s.Do("", "delete", "ticket", "trip", "--timeout=120s")
			s.Live(0)
			if totals := s.Simulator.Totals(); totals.Made != 1 || totals.Cancelled != 1 {
				t.Errorf("in the end the ledger holds %+v", totals)
			}
		})
	}
}

func tenMoments() []moment {
	var commit func() // lets the first booking call go on
	look := []simulator.Operation{simulator.OpBook, simulator.OpFind}
	return []moment{
		{"while it asks whether the owner has a booking", func(s *story) { s.hold(simulator.EffectDelayBefore, simulator.OpFind) },
			func(s *story) { s.held(simulator.OpFind) }, nil},
		{"while it asks for an offer", func(s *story) { s.hold(simulator.EffectDelayBefore, simulator.OpQuote) },
			func(s *story) { s.held(simulator.OpQuote) }, (*story).nothingWritten},
		{"when the operation could not be written down", func(s *story) { s.refuseStatus("operation") },
			func(s *story) { s.answered(2, simulator.OpQuote) }, (*story).nothingWritten},
		{"while the booking call hangs", func(s *story) { s.allowStatus(); commit = s.keep(simulator.EffectDelayBefore, simulator.OpBook) },
			func(s *story) { s.held(simulator.OpBook) }, (*story).written},
		{"while it finds out what became of the call", func(s *story) { s.hold(simulator.EffectDelayAfter, look...) },
			func(s *story) { s.held(look...) }, nil},
		{"when it has found nothing yet", func(*story) {},
			func(s *story) { s.unknown("trip") }, func(s *story) { s.Live(0) }},
		{"while it is told that the booking exists", func(s *story) { commit(); s.seats(2); s.hold(simulator.EffectDelayAfter, look...) },
			func(s *story) { s.held(look...) }, nil},
		{"when the outcome could not be stored", func(s *story) { s.refuseStatus("booking") },
			func(s *story) { s.answered(1, look...) }, (*story).written},
		{"when the answer broke off", func(s *story) { s.allowStatus(); s.spoil(simulator.EffectTruncate, look...) },
			func(s *story) { s.struck(simulator.EffectTruncate) }, nil},
		{"when the connection broke", func(s *story) { s.spoil(simulator.EffectDropAfter, look...) },
			func(s *story) { s.struck(simulator.EffectDropAfter) }, nil},
	}
}

// The booking API books, and the process dies before it reads the answer. Twenty times, twenty tickets. With keys the short
// form is content with fewer: each waits there until the call may be repeated.
func TestScenario11KilledAfterTheSale(t *testing.T) {
	t.Parallel()
	for _, m := range modes() {
		if !m.lookup { // keys alone are in the sweep; with neither, a person has to say what became of the sale
			continue
		}
		t.Run("one live booking for each ticket, in the mode "+m.name, func(t *testing.T) {
			t.Parallel()
			sales := 20
			if m.keys && os.Getenv(sweepVariable) == "" {
				sales = 5
			}
			sell := func(r *run) {
				for number := range sales {
					name := fmt.Sprintf("trip-%d", number)
					r.script.arm(point{name: "Book", fate: committed})
					r.createNamed(name)
					r.Booked(name, 2)
					r.Live(number + 1)
				}
			}
			v := job{mode: m, tale: tale{
				name: "twenty-sales", play: sell, histories: [][]string{slices.Repeat([]string{"Book"}, sales)},
			}}.do(t, nil)
			if v.kills != sales {
				t.Errorf("the controller was killed %d times, want %d", v.kills, sales)
			}
		})
	}
}

// The end of a booking whose object is gone from the cluster, by a restore or by force, is for a person to decide.
func TestATicketThatIsCreatedAgainBuysNothingAndSaysWhatToDo(t *testing.T) {
	s := newStory(t, simulator.Settings{})
	s.start()
	s.Apply(s.TicketManifest("trip"))
	lost := s.Booked("trip", 2)
	s.kill()
	s.Do("", "delete", "ticket", "trip", "--wait=false")
	s.Do("", "patch", "ticket", "trip", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	scene.AwaitGone(s.Scene, s.Ticket("trip"))
	s.start()
	s.Apply(s.TicketManifest("trip"))
	s.Says(s.Waiting("trip", flightsv1.ReasonAdoptionRequired), lost.Status.Booking.Reference, "it is not bought again",
		"cancel it with the provider, or use another name for this ticket")
	s.Told(s.Namespace, "FlightTicket", "trip", flightsv1.ReasonAdoptionRequired, lost.Status.Booking.Reference)
	if books := s.Simulator.Count(simulator.OpBook); books != 1 {
		t.Errorf("the provider was asked to book %d times, want once", books)
	}
	s.Live(1)
	s.Do("", "delete", "ticket", "trip", "--timeout=120s")
	s.Live(1) // it is not this ticket's to cancel
}
