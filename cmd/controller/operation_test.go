package main

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

// untilHeld waits until a fault holds a call.
func (p *place) untilHeld(operation simulator.Operation) {
	p.Helper()
	for {
		changed := p.sim.Changed()
		if slices.ContainsFunc(p.sim.Calls(), func(c simulator.Call) bool { return c.Held && c.Operation == operation }) {
			return
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
			p.Fatalf("no %s call was held: %+v", operation, p.sim.Calls())
		}
	}
}

// hold lets the next call of an operation wait before its commit until the returned function is called.
func (p *place) hold(operation simulator.Operation) (release func()) {
	p.Helper()
	gate := make(chan struct{})
	p.inject(simulator.Fault{Operation: operation, Effect: simulator.EffectDelayBefore, Times: 1, Release: gate})
	return func() { close(gate) }
}

func TestAnOperationIsWrittenDownBeforeItIsSent(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	release := p.hold(simulator.OpBook)
	ticket := p.apply(nil)
	p.untilHeld(simulator.OpBook)
	if err := admin.Get(p.ctx, client.ObjectKeyFromObject(ticket), ticket); err != nil {
		t.Fatal(err)
	}
	op := ticket.Status.Operation
	if op == nil || op.Kind != flightsv1.OperationBook || op.Order == nil || op.ClientReference == "" || ticket.Status.Booking != nil {
		t.Errorf("an order is under way, and the status holds %+v", ticket.Status)
	}
	release()
	p.untilBooked(2)
	p.live(1)
}

func TestAnEditThatOvertakesAQuoteIsWhatIsBooked(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	release := p.hold(simulator.OpQuote)
	ticket := p.apply(nil)
	p.untilHeld(simulator.OpQuote)
	p.patch(ticket, `{"spec":{"number":3}}`)
	release()
	p.untilBooked(3)
	if history := p.sim.Ledger()[0].History; len(history) != 1 || history[0].Booking.Order.Seats != 3 {
		t.Errorf("the ledger holds %+v, want one booking of 3 seats that was never another", history)
	}
	p.live(1)
}

// The first operation is refused while the status speaks of a second one: what another process wrote after a pause of
// this one.
func TestAnAnswerClosesNoOtherOperation(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	release := p.hold(simulator.OpBook)
	p.inject(simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectRefuse, Times: 1})
	ticket := p.apply(nil)
	p.untilHeld(simulator.OpBook)
	p.replaceOperation(ticket)
	release()
	seen := p.until("told what becomes of its operation", func(t *flightsv1.FlightTicket) bool {
		return t.Status.Operation == nil || t.Status.Operation.Outcome != ""
	})
	if op := seen.Status.Operation; op == nil || op.ID != "of-another-process" {
		t.Errorf("the answer to one operation closed another one: %s", describe(seen))
	}
	p.live(0)
}

// replaceOperation writes another operation in the place of the open one, as another controller would.
func (p *place) replaceOperation(ticket *flightsv1.FlightTicket) {
	p.Helper()
	config, err := plane.ServiceAccountConfig(p.ctx, systemNamespace, "flight-controller")
	if err != nil {
		p.Fatal(err)
	}
	controller, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	if err != nil {
		p.Fatal(err)
	}
	if err := controller.Get(p.ctx, client.ObjectKeyFromObject(ticket), ticket); err != nil {
		p.Fatal(err)
	}
	op, now := ticket.Status.Operation, time.Now().UTC().Truncate(time.Microsecond)
	op.ID, op.Attempt, op.ClientReference = "of-another-process", 10, op.ClientReference+"0"
	op.StartedAt, op.SendBy = metav1.NewMicroTime(now), metav1.NewMicroTime(now.Add(time.Minute))
	if err := controller.Status().Update(p.ctx, ticket); err != nil {
		p.Fatal(err)
	}
}
