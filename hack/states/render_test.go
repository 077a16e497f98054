package main

import (
	"strings"
	"testing"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
)

func TestEachStateAndReasonHasAMeaning(t *testing.T) {
	m, err := readMeanings("../../api/v1")
	if err != nil {
		t.Fatal(err)
	}
	page, err := render(lifecycle.Transitions(), m)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[*] --> Booking: Booking\n", "| Stalled | nothing more happens", "| Drifted | the booking was changed"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestAStateOrReasonWithoutAMeaningIsNotPublished(t *testing.T) {
	for name, way := range map[string]lifecycle.Transition{
		"state":  {To: "Lost", On: flightsv1.ReasonBooked},
		"reason": {To: flightsv1.StateBooked, On: "Because"},
	} {
		m := meanings{states: map[string]string{"Booked": "it is"}, reasons: map[string]string{flightsv1.ReasonBooked: "it is"}}
		if _, err := render([]lifecycle.Transition{way}, m); err == nil {
			t.Errorf("a %s without a meaning is published", name)
		}
	}
}
