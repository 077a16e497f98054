package soak

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

func TestWaitingTicketsDrainAtTheProvidersRate(t *testing.T) {
	s := scene.WithBooking(t, stage, simulator.Settings{RateLimit: float64(chosen.rate), RateBurst: 2 * chosen.rate},
		func(p *flightsv1.BookingProvider) {
			p.Spec.RateLimit = flightsv1.RateLimit{RequestsPerMinute: int32(60 * chosen.rate), Burst: 5} //nolint:gosec // small
		})
	s.ProviderIs(flightsv1.ReasonProviderReady)
	s.StoreToken("")
	s.ProviderIs(flightsv1.ReasonSecretKeyNotFound)
	f := s.Follow()
	var creating sync.WaitGroup
	for worker := range 8 {
		creating.Go(func() {
			for i := worker; i < chosen.waiting; i += 8 {
				ticket := s.Ticket(name(i))
				ticket.Spec = flightsv1.FlightTicketSpec{
					From: "Mumbai", To: "London", Number: 2, ProviderRef: &flightsv1.ProviderReference{Name: s.Provider.Name},
				}
				if err := s.Client.Create(s.Context, ticket); err != nil {
					s.Error(err)
				}
			}
		})
	}
	creating.Wait()
	f.Each(s, chosen.waiting, "waiting for their provider", func(t *flightsv1.FlightTicket) bool {
		ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
		return ready != nil && ready.Reason == flightsv1.ReasonProviderNotReady
	})
	fmt.Fprintf(os.Stderr, "%d tickets wait; now the provider takes %d calls a second, which at 3 calls a ticket is %.0f s of work\n",
		chosen.waiting, chosen.rate, float64(chosen.waiting*3)/float64(chosen.rate))

	from := s.Simulator.Count("")
	s.StoreToken(s.Token())
	telling, told := context.WithCancel(s.Context)
	var teller sync.WaitGroup
	teller.Go(func() { tellDrain(telling, s) })
	f.Each(s, chosen.waiting, "booked", func(t *flightsv1.FlightTicket) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, flightsv1.ConditionReady)
	})
	told()
	teller.Wait()
	s.Live(chosen.waiting)
	judgeDrain(s, s.Simulator.Calls()[from:])
}

func tellDrain(ctx context.Context, s *scene.Scene) {
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fmt.Fprintf(os.Stderr, "%d of %d tickets are booked\n", len(s.Simulator.LiveBookings()), chosen.waiting)
		case <-ctx.Done():
			return
		}
	}
}

// judgeDrain compares the calls with the provider's rate. A short form is over before a rate can be told: there the calls
// are counted alone.
func judgeDrain(s *scene.Scene, calls []simulator.Call) {
	s.Helper()
	// What a ticket costs that is booked at the first attempt.
	steps := []simulator.Operation{simulator.OpFind, simulator.OpQuote, simulator.OpBook}
	kinds := map[simulator.Operation]int{}
	refused := 0
	var first, last time.Time
	for _, call := range calls {
		kinds[call.Operation]++
		if call.Status >= 300 {
			refused++
		}
		if !slices.Contains(steps, call.Operation) {
			continue // a look at the provider, or at what is booked already
		}
		if first.IsZero() {
			first = call.At
		}
		last = call.At
	}
	work := 0
	for _, step := range steps {
		work += kinds[step]
	}
	took := last.Sub(first).Seconds()
	rate := float64(work) / took
	fmt.Fprintf(os.Stderr, "%d tickets drained in %.1f s: %.1f tickets and %.2f calls a second, of %d allowed (%.1f %%); %v, %d refused\n",
		chosen.waiting, took, float64(chosen.waiting)/took, rate, chosen.rate, 100*rate/float64(chosen.rate), kinds, refused)
	if work != len(steps)*chosen.waiting || refused > 0 {
		s.Errorf("%d calls for %d tickets, %d of them refused: want %d each", work, chosen.waiting, refused, len(steps))
	}
	if chosen.waiting >= 1000 && (rate < 0.9*float64(chosen.rate) || rate > 1.1*float64(chosen.rate)) {
		s.Errorf("the tickets drained at %.2f calls a second, want %d within a tenth", rate, chosen.rate)
	}
}
