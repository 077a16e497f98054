package crash

import (
	"io"
	"testing"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

// The controller hears everything five seconds late, and then does not hear either that its status was stored.
func TestCachesThatLagBuyNothingTwice(t *testing.T) {
	t.Parallel()
	s := &sweep{T: t, began: time.Now(), progress: io.Discard}
	var undisturbed []job
	for _, m := range modes() {
		undisturbed = append(undisturbed, job{tale: taleNamed("whole-life"), mode: m, watchDelay: watchDelay})
	}
	s.each(undisturbed, func(r result) (writes []job) {
		if len(r.job.points) > 0 || !r.mode.keys || !r.mode.lookup {
			return nil
		}
		for _, e := range r.done() {
			if e.Name == statusWrite {
				writes = append(writes, r.with(point{name: e.Name, ordinal: e.Ordinal, fate: unanswered}))
			}
		}
		return writes
	})
	s.table()
}

// The controller's watches stand still from the moment in which it asks for an offer. So its cache shows a ticket without
// an operation, while it looks again and again for what became of its call.
func TestACacheThatStandsStillBuysNothingTwice(t *testing.T) {
	t.Parallel()
	for _, m := range modes() {
		if m.blind() {
			continue
		}
		t.Run("in the mode "+m.name, func(t *testing.T) {
			t.Parallel()
			var release func()
			standStill := func(r *run) {
				r.Inject(simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectDropAfter, Times: 1})
				r.script.when("Quote", func() { release = r.cluster.HoldWatches() })
			}
			book := func(r *run) {
				r.create()
				unknown := func(t *flightsv1.FlightTicket) bool { return reasonOf(t) == flightsv1.ReasonOutcomeUnknown }
				if r.until("of unknown outcome", unknown) && r.booked(2) {
					release()
					r.leave()
				}
			}
			j := job{mode: m, tale: tale{
				name: "a-cache-that-stands-still", arrange: standStill, play: book, histories: [][]string{{"Book", "Cancel"}},
			}}
			j.do(t, nil)
		})
	}
}
