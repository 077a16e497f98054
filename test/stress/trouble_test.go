package stress

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// trouble is what goes wrong, and what an admin does, during the race.
type trouble struct {
	town *town
	dice *rand.Rand // of the killer alone

	processes sync.Mutex // held by whoever kills one and starts it again

	mu      sync.Mutex
	killed  int         // webhooks
	revived []time.Time // when a controller ran again that had been killed
	changed []string
}

// run kills processes and changes policies until the context ends, and leaves everything running.
func (t *trouble) run(ctx context.Context, span time.Duration) error {
	var working sync.WaitGroup
	var killing, changing error
	working.Go(func() { killing = t.kill(ctx) })
	working.Go(func() { changing = t.change(ctx, span) })
	working.Wait()
	return errors.Join(killing, changing)
}

// kill ends a webhook every few seconds, with SIGKILL.
func (t *trouble) kill(ctx context.Context) error {
	for {
		pause(ctx, 2*time.Second+time.Duration(t.dice.Int64N(int64(4*time.Second))))
		if ctx.Err() != nil {
			return nil
		}
		victim := t.town.webhooks[t.dice.IntN(len(t.town.webhooks))]
		t.town.balancer.out(victim.Address)
		if err := t.revive(ctx, victim); err != nil {
			return err
		}
		t.town.balancer.in(victim.Address)
		t.mu.Lock()
		t.killed++
		t.mu.Unlock()
	}
}

// mortal is a process that can be killed and started again.
type mortal interface {
	Kill() error
	Start(ctx context.Context) error
}

// revive kills a process and starts it again, also when the race is over meanwhile.
func (t *trouble) revive(ctx context.Context, m mortal) error {
	t.processes.Lock()
	defer t.processes.Unlock()
	if err := errors.Join(m.Kill(), m.Start(context.WithoutCancel(ctx))); err != nil {
		return fmt.Errorf("kill a process and start it again: %w", err)
	}
	return nil
}

// killController does what revive does, and notes when: entries age by the clock of one controller.
func (t *trouble) killController(ctx context.Context) error {
	if err := t.revive(ctx, t.town.controller); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revived = append(t.revived, time.Now())
	return nil
}

// step is what is done when so much of the race is over.
type step struct {
	at   float64
	what string
	do   func(context.Context) error
}

// steps are few in a short race. A generation is counted no earlier than the longest request ends, by the clock of one
// controller, and until then nobody is let into its buckets.
func (t *trouble) steps(span time.Duration) []step {
	admin := t.town.house.Client
	limit := func(l limits) func(context.Context) error {
		return func(ctx context.Context) error { return setLimits(ctx, admin, seatsPolicy, l) }
	}
	const death = "kill the controller"
	if span < 5*time.Minute {
		return []step{
			{0.3, death, t.killController},
			{0.7, "lower limits", limit(limits{Book: "a", Hot: 120, Cold: 50})},
		}
	}
	return []step{
		{0.12, "lower limits", limit(limits{Book: "a", Hot: 120, Cold: 50})},
		{0.2, death, t.killController},
		{0.42, "raise limits", limit(limits{Book: "a", Hot: 250, Cold: 90})},
		{0.6, death, t.killController},
		{0.62, "change keys", limit(limits{Book: "b", Hot: 220, Cold: 80})},
		{0.7, "delete a policy and make it anew", func(ctx context.Context) error { return recreateKept(ctx, admin) }},
		{0.85, death, t.killController},
		{0.95, "lower limits again", limit(limits{Book: "b", Hot: 150, Cold: 60})},
	}
}

// change does the steps in time.
func (t *trouble) change(ctx context.Context, span time.Duration) error {
	began := time.Now()
	for _, s := range t.steps(span) {
		pause(ctx, time.Until(began.Add(time.Duration(s.at*float64(span)))))
		if ctx.Err() != nil {
			return nil
		}
		// What has begun is done, also when the race is over meanwhile.
		if err := s.do(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		t.mu.Lock()
		t.changed = append(t.changed, s.what)
		t.mu.Unlock()
	}
	return nil
}

// setLimits gives a policy its next generation.
func setLimits(ctx context.Context, c client.Client, name string, l limits) error {
	return insist(ctx, func() error {
		p := &flightsv1.FlightPolicy{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, p); err != nil {
			return err
		}
		p.Spec.Parameters = l.raw()
		return c.Update(ctx, p)
	})
}

// recreateKept makes the policy of retained seats anew: what the old one retained goes with it.
func recreateKept(ctx context.Context, c client.Client) error {
	for _, p := range racePolicies() {
		if p.Name != keptPolicy {
			continue
		}
		if err := insist(ctx, func() error { return client.IgnoreNotFound(c.Delete(ctx, p)) }); err != nil {
			return err
		}
		p.ResourceVersion, p.UID = "", ""
		return insist(ctx, func() error { return c.Create(ctx, p) })
	}
	return nil
}

// insist tries until it succeeds, for as long as anything may take: webhooks are being killed.
func insist(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for {
		if last = do(); last == nil || ctx.Err() != nil {
			return last
		}
		pause(ctx, 200*time.Millisecond)
	}
}
