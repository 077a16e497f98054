package story

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

const (
	crowd = 50
	// workers is how many tickets the controller works on at once, and so how many calls are under way when the first
	// bad answer comes.
	workers = 4
	// looks is what the provider's own controller may ask beside the tickets while it finds out what is wrong.
	looks = 5
)

// A provider that refuses, throttles and turns away: what fifty tickets may cost it.
func TestScenario14BurningTheProvidersQuota(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.ProviderIs(flightsv1.ReasonProviderReady)
	f := s.Follow()

	// 422, with another trace id each time: one attempt a ticket, and none more for what others write on it.
	s.Inject(simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectEcho})
	from := s.Simulator.Count("")
	for i := range crowd {
		createTrip(s, fmt.Sprintf("trip-%d", i))
	}
	f.Each(s, crowd, "refused", notReady(flightsv1.ReasonBookingRefused))
	editOthers(s, f)
	budget(s, "422", from, http.StatusUnprocessableEntity, crowd)
	for _, operation := range []simulator.Operation{simulator.OpFind, simulator.OpQuote, simulator.OpBook} {
		if n := s.Simulator.Count(operation); n != crowd {
			t.Errorf("%d %s calls for %d tickets that are refused", n, operation, crowd)
		}
	}
	if said := f.Reworded(); len(said) > 0 {
		t.Errorf("a status was written that says nothing new: %s", said)
	}

	// 429: every call of the credential pauses as the answer asks, so that a round costs what was under way.
	s.Simulator.ClearFaults()
	s.Inject(simulator.Fault{Effect: simulator.EffectThrottle, RetryAfter: "2"})
	from = s.Simulator.Count("")
	everybody(s, func(string) string {
		return `{"metadata":{"annotations":{"flights.com/reconcile-requested-at":"once"}}}`
	})
	rounds := 1 + int(awaitSecondRound(s, from)/(2*time.Second))
	budget(s, "429", from, http.StatusTooManyRequests, (workers+1)*rounds)
	s.Simulator.ClearFaults()
	f.Each(s, crowd, "booked", bookedWith(2))

	// 401: a ticket learns of it from its own call or from the provider, and none asks twice.
	from = s.Simulator.Count("")
	s.Simulator.RevokeToken(s.Token())
	everybody(s, func(string) string { return `{"spec":{"number":3}}` })
	f.Each(s, crowd, "waiting for the credential", notReady(flightsv1.ReasonProviderNotReady))
	s.ProviderIs(flightsv1.ReasonCredentialsRefused)
	editOthers(s, f)
	budget(s, "401", from, http.StatusUnauthorized, crowd+looks)
	s.Simulator.AddToken(s.Token()+"-new", scene.Account)
	s.StoreToken(s.Token() + "-new")
	f.Each(s, crowd, "changed", bookedWith(3))

	s.Live(crowd)
	f.CatchUp(s)
	writes, transitions := f.Counts()
	t.Logf("%d tickets: %d status writes, %d of them transitions", crowd, writes, transitions)
	if reworded := writes - transitions; reworded > crowd { // a ticket's own words for a bad credential, then the provider's
		t.Errorf("%d status writes say nothing new, of %d: %s", reworded, writes, f.Reworded())
	}
}

// createTrip creates the ticket of the README under another name, without the price of a kubectl.
func createTrip(s *scene.Scene, name string) {
	s.Helper()
	ticket := s.Ticket(name)
	ticket.Spec = flightsv1.FlightTicketSpec{
		From: "Mumbai", To: "London", Number: 2, ProviderRef: &flightsv1.ProviderReference{Name: s.Provider.Name},
	}
	if err := s.Client.Create(s.Context, ticket); err != nil {
		s.Fatal(err)
	}
}

// everybody merges a change into each ticket of the scene.
func everybody(s *scene.Scene, change func(name string) string) {
	s.Helper()
	list := &flightsv1.FlightTicketList{}
	if err := s.Client.List(s.Context, list, client.InNamespace(s.Namespace)); err != nil {
		s.Fatal(err)
	}
	for i := range list.Items {
		s.Patch(&list.Items[i], change(list.Items[i].Name))
	}
}

// editOthers has somebody annotate every ticket, and returns once the controller has looked at them: nothing may be
// asked and nothing written for it.
func editOthers(s *scene.Scene, f *scene.Follower) {
	s.Helper()
	f.CatchUp(s)
	calls := s.Simulator.Count("")
	writes, _ := f.Counts()
	everybody(s, func(string) string {
		return `{"metadata":{"annotations":{"note":"window seat ` + time.Now().String() + `"}}}`
	})
	behind := scene.New(s.T, house.stage) // its ticket is worked on when those before it were
	behind.Apply(behind.TicketManifest("behind"))
	behind.Booked("behind", 2)
	behind.Do("", "delete", "ticket", "behind", "--timeout=120s")
	f.CatchUp(s)
	more := slices.DeleteFunc(s.Simulator.Calls()[calls:], func(c simulator.Call) bool {
		return c.Operation == simulator.OpAccount // the provider's own look, which nobody's edit of a ticket brings about
	})
	if len(more) > 0 {
		s.Errorf("somebody else's edits cost %d calls: %+v", len(more), more)
	}
	if now, _ := f.Counts(); now != writes {
		s.Errorf("somebody else's edits cost %d writes of a status: %s", now-writes, f.Reworded())
	}
}

// budget fails if more calls than allowed were answered with a status since a call.
func budget(s *scene.Scene, class string, from, status, allowed int) {
	s.Helper()
	n := 0
	for _, call := range s.Simulator.Calls()[from:] {
		if call.Status == status {
			n++
		}
	}
	s.Logf("%d tickets, %s: %d calls, the budget is %d", crowd, class, n, allowed)
	if n > allowed || n == 0 {
		s.Errorf("%d calls were answered with %s, the budget is %d", n, class, allowed)
	}
}

// awaitSecondRound waits until calls are tried again after the pause of the first 429, and returns what time has gone by
// since that.
func awaitSecondRound(s *scene.Scene, from int) (since time.Duration) {
	s.Helper()
	s.AwaitCalls("tried again", func(calls []simulator.Call) bool {
		var first time.Time
		for _, call := range calls[from:] {
			if call.Status != http.StatusTooManyRequests {
				continue
			}
			if first.IsZero() {
				first = call.At
			}
			since = time.Since(first)
			if call.At.Sub(first) >= 2*time.Second {
				return true
			}
		}
		return false
	})
	return since
}

func notReady(reason string) func(*flightsv1.FlightTicket) bool {
	return func(t *flightsv1.FlightTicket) bool {
		ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
		return ready != nil && ready.Reason == reason && ready.ObservedGeneration == t.Generation
	}
}

func bookedWith(seats int32) func(*flightsv1.FlightTicket) bool {
	return func(t *flightsv1.FlightTicket) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, flightsv1.ConditionReady) &&
			t.Status.ObservedGeneration == t.Generation && t.Status.Booking != nil && t.Status.Booking.Order.Seats == seats
	}
}
