package soak

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// soak is one run: the people who write tickets, and what goes wrong with their provider.
type soak struct {
	*scene.Scene
	follower *scene.Follower
	// people draws what is done with tickets, trouble what goes wrong. Each has one user.
	people, trouble *rand.Rand
	counts          counts
	broken          trouble
	began           time.Time
}

func TestTicketsComeOutRightWhateverGoesWrong(t *testing.T) {
	t.Logf("SOAK_SEED=%d, %d tickets, %s", chosen.seed, chosen.tickets, chosen.duration)
	s := &soak{
		Scene: scene.WithBooking(t, stage, settings(), nil), began: time.Now(),
		people: rand.New(rand.NewPCG(chosen.seed, 1)), trouble: rand.New(rand.NewPCG(chosen.seed, 2)), //nolint:gosec // repeatable
	}
	s.ProviderIs(flightsv1.ReasonProviderReady)
	s.follower = s.Follow()
	token := s.MetricsReader()
	metrics := s.NewScraper("flight-controller", "https://"+house.Controller.MetricsAddress+"/metrics")
	for i := range chosen.tickets {
		s.create(i)
	}
	s.rest("in the beginning")
	start := load{metrics.Value(token, "go_goroutines"), metrics.Value(token, "process_resident_memory_bytes")}

	end := time.Now().Add(chosen.duration)
	var working sync.WaitGroup
	working.Go(func() { s.write(end) })
	working.Go(func() { s.breakThings(end) })
	working.Go(func() { s.progress(end) })
	working.Wait()
	s.mend()
	s.rest("in the end")

	s.follower.CatchUp(s.Scene)
	s.judgeLedger()
	s.judgeCalls()
	s.judgeWrites()
	s.judgeLoad(start, load{metrics.Value(token, "go_goroutines"), metrics.Value(token, "process_resident_memory_bytes")})
}

// settings are a provider's with everything that helps: keys that live for so short a time that an operation is
// settled soon, and look-ups that lag.
func settings() simulator.Settings {
	return simulator.Settings{
		IdempotencyKeyTTL: metav1.Duration{Duration: 20 * time.Second}, ReadLag: metav1.Duration{Duration: 300 * time.Millisecond},
	}
}

// progress tells now and then how far the run is.
func (s *soak) progress(end time.Time) {
	ticker := time.NewTicker(max(chosen.duration/20, 5*time.Second))
	defer ticker.Stop()
	for time.Now().Before(end) {
		select {
		case <-ticker.C:
		case <-time.After(time.Until(end)):
		case <-s.Context.Done():
			return
		}
		writes, _ := s.follower.Counts()
		totals := s.Simulator.Totals()
		s.say("%3.0f s: %d calls, %d status writes, %d bookings made, %d live, %d violations", time.Since(s.began).Seconds(),
			s.Simulator.Count(""), writes, totals.Made, totals.Live, len(s.Simulator.Violations()))
	}
}

// rest waits until every ticket is at rest. A person asks each one that isn't again from time to time, as a refusal wants
// to be asked anew; one that doesn't come to rest even so is stuck.
func (s *soak) rest(when string) {
	s.Helper()
	began := time.Now()
	everybody := func(*flightsv1.FlightTicket) bool { return false }
	s.askAgain(s.follower.Unlike(s.Context, 0, everybody))
	for {
		restless := s.follower.Unlike(s.Context, 15*time.Second, resting)
		if len(restless) == 0 {
			s.say("all tickets are at rest %s, after %.0f s", when, time.Since(began).Seconds())
			return
		}
		if time.Since(began) > 6*time.Minute {
			s.Fatalf("%d tickets are stuck %s, one of them is\n%s", len(restless), when, scene.Describe(restless[0]))
		}
		s.say("%d tickets are not at rest yet: %s", len(restless), reasons(restless))
		s.askAgain(restless)
	}
}

// reasons counts why tickets are not ready.
func reasons(tickets []*flightsv1.FlightTicket) map[string]int {
	count := map[string]int{}
	for _, t := range tickets {
		if ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady); ready != nil {
			count[ready.Reason]++
		}
	}
	return count
}

// resting says whether nothing is left to do for a ticket until somebody does something.
func resting(t *flightsv1.FlightTicket) bool {
	ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != t.Generation || t.Status.Operation != nil || !t.DeletionTimestamp.IsZero() {
		return false
	}
	return ready.Status == metav1.ConditionTrue || ready.Reason == flightsv1.ReasonSuspended || ready.Reason == flightsv1.ReasonDrifted
}
