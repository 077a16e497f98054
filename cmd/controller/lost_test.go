package main

import (
	"testing"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

// loseStatus empties a ticket's status, as a backup that was taken before its booking does.
func (p *place) loseStatus() {
	p.Helper()
	out, err := plane.Kubectl(p.ctx, "patch", "ticket", "my-flight-ticket", "-n", p.namespace, "--subresource=status",
		"--type=json", `-p=[{"op":"replace","path":"/status","value":{"observedGeneration":-1}}]`,
		"--as=system:serviceaccount:flight-operator-system:flight-controller", "--as-group=system:masters")
	if err != nil {
		p.Fatalf("%v: %s", err, out)
	}
}

func TestATicketWhoseStatusWasLostLeavesNothingBehind(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	ticket := p.apply(nil)
	p.untilBooked(2)
	p.loseStatus()
	p.live(1)
	p.remove(ticket)
	p.untilGone()
	p.live(0)
}

func TestATicketWhoseStatusWasLostIsNotBoughtAgain(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	ticket := p.apply(nil)
	booked := p.untilBooked(2)
	p.loseStatus()
	p.patch(ticket, `{"metadata":{"annotations":{"flights.com/reconcile-requested-at":"now"}}}`)
	found := p.untilBooked(2)
	if found.Status.Booking.ID != booked.Status.Booking.ID || p.sim.Totals().Made != 1 {
		t.Errorf("booked %s, then %s", booked.Status.Booking.ID, found.Status.Booking.ID)
	}
}

func TestATicketThatWasNeverBookedGoesThoughItsProviderIsOutOfOrder(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	p.untilProvider(flightsv1.ReasonProviderReady)
	p.storeToken("a token with spaces")
	p.untilProvider(flightsv1.ReasonSecretInvalid)
	ticket := p.apply(nil)
	p.untilReason(flightsv1.ReasonProviderNotReady)
	p.remove(ticket)
	p.untilGone()
	p.live(0)
}
