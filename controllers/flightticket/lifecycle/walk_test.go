package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"pgregory.net/rapid"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// TestNothingIsBoughtTwiceLostOrLeftBehind walks at random: the process dies at any point, answers get lost, orders are
// carried out late, reads lag, the cache is stale, the ticket is edited and deleted. At no moment are there two live
// bookings; when the faults stop, the ticket comes to rest with exactly what it asks for.
func TestNothingIsBoughtTwiceLostOrLeftBehind(t *testing.T) {
	rapid.Check(t, walk)
}

func walk(t *rapid.T) {
	w := newWorld(func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) })
	w.api.keys = rapid.Bool().Draw(t, "provider takes keys")
	w.declares = w.api.keys
	w.lookup = rapid.IntRange(0, 3).Draw(t, "provider can be searched") > 0
	w.api.faults, w.crashes = true, true
	w.check = func() { atMostOne(t, w) }
	for range rapid.IntRange(1, 25).Draw(t, "passes with faults") {
		meddle(t, w)
		w.clock = w.clock.Add(w.pass())
		if w.ticket.gone() {
			break
		}
	}
	w.api.faults, w.crashes, w.skew, w.quota = false, false, 0, modelQuota{limit: 100}
	calm(w)
	finished(t, w)
}

// meddle is what users, admins and clocks do meanwhile.
func meddle(t *rapid.T, w *world) {
	switch rapid.IntRange(0, 17).Draw(t, "what happens beside") {
	case 0:
		w.ticket.wanted.Seats = int32(rapid.IntRange(1, 5).Draw(t, "seats"))
		w.ticket.generation++
		w.ticket.version++
	case 1:
		if !w.ticket.deleting {
			w.ticket.deleting = true
			w.ticket.generation++
			w.ticket.version++
		}
	case 2:
		w.ticket.requested += "x"
		w.ticket.version++
	case 3:
		w.declares = w.api.keys && !w.declares
	case 4:
		// The provider became faster or slower; what was sent before keeps its pace.
		w.api.process = time.Duration(rapid.IntRange(0, 300).Draw(t, "seconds of processing")) * time.Second
		w.api.timeout = time.Duration(rapid.IntRange(1, 130).Draw(t, "seconds of a call")) * time.Second
	case 5:
		w.skew = time.Duration(rapid.IntRange(-900, 900).Draw(t, "seconds that the clock is wrong")) * time.Second
	case 6:
		if w.lookup && w.ticket.status.Operation == nil && w.api.quiet() {
			w.note("the status is lost")
			w.ticket.status = flightsv1.FlightTicketStatus{ObservedGeneration: -1}
			w.ticket.version++
		}
	case 7:
		w.quota.others = int32(rapid.IntRange(95, 100).Draw(t, "seats that others have"))
		w.quota.counting = rapid.Bool().Draw(t, "the quota is being counted")
		w.quota.staying = rapid.Bool().Draw(t, "the quota keeps the ticket")
	}
}

func atMostOne(t *rapid.T, w *world) {
	w.api.settle()
	if live := w.api.live(w.names.Owner()); len(live) > 1 {
		t.Fatalf("bought twice: %v\n%s", live, strings.Join(w.log, "\n"))
	}
	if len(w.beyond) > 0 {
		t.Fatalf("%s\n%s", w.beyond[0], strings.Join(w.log, "\n"))
	}
}

// calm runs without faults, with a person who asks again whenever the ticket waits for one.
func calm(w *world) {
	for range 6 {
		w.run(60)
		w.ticket.requested += "again"
		w.ticket.version++
		w.clock = w.clock.Add(time.Minute)
		w.api.settle()
	}
}

func finished(t *rapid.T, w *world) {
	live := w.api.live(w.names.Owner())
	story := strings.Join(w.log, "\n")
	ready := meta.FindStatusCondition(w.ticket.status.Conditions, flightsv1.ConditionReady)
	if !w.lookup && ready != nil && ready.Reason == flightsv1.ReasonOutcomeUnknown {
		// Only a person can find out: the operation must still be remembered.
		if w.ticket.status.Operation == nil || w.ticket.gone() {
			t.Fatalf("an unknown operation was forgotten\n%s", story)
		}
		return
	}
	switch {
	case w.ticket.gone() && len(live) != 0:
		t.Fatalf("the ticket is gone and left %v behind\n%s", live, story)
	case w.ticket.gone():
	case w.ticket.deleting:
		t.Fatalf("the ticket does not go: %+v\n%s", ready, story)
	case ready == nil || ready.Status != "True" || len(live) != 1:
		t.Fatalf("the ticket is not booked: %+v, live %v\n%s", ready, live, story)
	case !equality.Semantic.DeepEqual(live[0].Order, w.ticket.wanted):
		t.Fatalf("booked %+v, wanted %+v\n%s", live[0].Order, w.ticket.wanted, story)
	}
}
