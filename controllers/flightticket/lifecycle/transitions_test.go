package lifecycle_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
)

// areListed compares transitions that were seen with the list: a way that nobody listed is a surprise, and one that nobody
// goes is a fairy tale.
func areListed(t *testing.T, seen map[lifecycle.Transition]bool) {
	t.Helper()
	listed := lifecycle.Transitions()
	for _, way := range listed {
		if !seen[way] {
			t.Errorf("listed, but not seen: {%q, %q, %q}", way.From, way.To, way.On)
		}
		delete(seen, way)
	}
	for _, way := range slices.SortedFunc(maps.Keys(seen), compareWays) {
		t.Errorf("seen, but not listed: {%q, %q, %q}", way.From, way.To, way.On)
	}
}

func compareWays(a, b lifecycle.Transition) int {
	return strings.Compare(string(a.From)+"|"+string(a.To)+"|"+a.On, string(b.From)+"|"+string(b.To)+"|"+b.On)
}

// wayOf is the transition that a step makes; false if neither state nor reason changes.
func wayOf(from, to flightsv1.FlightTicketStatus, step lifecycle.Step) (lifecycle.Transition, bool) {
	if step.Action == lifecycle.RemoveFinalizer {
		return lifecycle.Transition{From: from.State, To: lifecycle.StateGone, On: whyGone(from)}, true
	}
	way := lifecycle.Transition{From: from.State, To: to.State, On: readyReason(to)}
	return way, from.State != to.State || readyReason(from) != way.On
}

func whyGone(s flightsv1.FlightTicketStatus) string {
	switch {
	case s.Booking == nil:
		return flightsv1.ReasonNotBooked
	case s.Booking.CancelledAt == nil:
		return flightsv1.ReasonRetained
	default:
		return flightsv1.ReasonCancelled
	}
}

func readyReason(s flightsv1.FlightTicketStatus) string {
	if ready := meta.FindStatusCondition(s.Conditions, flightsv1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

func readyMessage(s flightsv1.FlightTicketStatus) string {
	if ready := meta.FindStatusCondition(s.Conditions, flightsv1.ConditionReady); ready != nil {
		return ready.Message
	}
	return ""
}
