package stress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/test/stress/history"
)

// sceneLimits are the seats that each scenario's cost centres may have. In the second there are 2 that a repeat under a name
// in use is charged for until the next count, beside the 2 of the ticket that has the name.
func sceneLimits() map[string]int64 { return map[string]int64{"s1-": 3, "s2-": 7, "s3-": 10, "s4-": 5} }

func scenePolicies() []*flightsv1.FlightPolicy {
	return []*flightsv1.FlightPolicy{
		scenePolicy(firstPolicy, sceneLimits()), scenePolicy(secondPolicy, map[string]int64{"s1-": 100}),
	}
}

func scenePolicy(name string, limits map[string]int64) *flightsv1.FlightPolicy {
	text, _ := json.Marshal(map[string]any{"limits": limits}) // of texts and numbers alone
	return &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flightsv1.FlightPolicySpec{
			Rego: sceneRego, Parameters: &apiextensionsv1.JSON{Raw: text}, Match: flightsv1.PolicyMatch{Namespaces: []string{sceneNamespace}},
		},
	}
}

// sceneClaims says what the policies of the scenarios charge, written anew and not asked of the engine.
func sceneClaims(p *flightsv1.FlightPolicy) func(history.Ticket, history.Form) []history.Claim {
	limits := sceneLimits()
	switch p.Name {
	case firstPolicy:
	case secondPolicy:
		limits = map[string]int64{"s1-": 100}
	default:
		return nil
	}
	return func(t history.Ticket, f history.Form) []history.Claim {
		for prefix, limit := range limits {
			if t.Namespace == sceneNamespace && strings.HasPrefix(t.CostCenter, prefix) {
				return []history.Claim{{Place: history.Place{Key: t.CostCenter}, Amount: f.Seats, Limit: limit}}
			}
		}
		return nil
	}
}

// deniedWaiter: two quotas on one ticket, of which one is full. Whoever it refuses stays refused.
func (p *play) deniedWaiter(seed int) error {
	center := fmt.Sprintf("s1-%d", seed)
	for n := range 3 {
		if got, err := p.create(n, fmt.Sprint("in-", n), center, 1); got != admitted {
			return want("a ticket that fits", admitted, got, err)
		}
	}
	return p.together(12, func(n int) error {
		got, err := p.create(n, fmt.Sprint("out-", n), center, 1)
		return want("a ticket beyond the limit", noRoom, got, err)
	})
}

// chargedForNothing: another webhook refuses after ours, or the name is in use. 50 repeats don't exhaust the quota, and what
// others were charged comes back within the bound.
func (p *play) chargedForNothing(seed int) error {
	center := fmt.Sprintf("s2-%d", seed)
	for n := range 50 {
		got, err := p.ask(n, func(ctx context.Context, c client.Client) error {
			t := sceneTicket("trip", center, 2)
			t.Annotations = map[string]string{refusedName: "yes"}
			return c.Create(ctx, t)
		})
		if got != other {
			return want(fmt.Sprintf("repeat %d", n), other, got, err)
		}
	}
	if got, err := p.create(0, "trip", center, 2); got != admitted {
		return want("the same without that refusal", admitted, got, err)
	}
	for n := range 50 {
		if got, err := p.create(n, "trip", center, 2); got != taken {
			return want(fmt.Sprintf("repeat %d of a name in use", n), taken, got, err)
		}
	}
	got, err := p.ask(0, func(ctx context.Context, c client.Client) error { // charged under a name that nobody uses again
		t := sceneTicket("never", center, 3)
		t.Annotations = map[string]string{refusedName: "yes"}
		return c.Create(ctx, t)
	})
	return want("a ticket that is never stored", other, got, err)
}

// comesBack wants the rest of that quota to be there for somebody else within the bound.
func (p *play) comesBack(seed int) error {
	center, began := fmt.Sprintf("s2-%d", seed), time.Now()
	for {
		got, err := p.create(1, "next", center, 3)
		switch {
		case got == admitted:
			return nil
		case got != noRoom && got != again:
			return want("a ticket that waits for what was charged for nothing", noRoom, got, err)
		case time.Since(began) > bound:
			return fmt.Errorf("what was charged for nothing is not back after %s: %w", bound, err)
		}
		pause(p.Context(), 2*time.Second)
	}
}

// everybody: 200 creates at once by 20 users against 10 seats. 10 get in, and 190 are told clearly that there is no room.
func (p *play) everybody(seed int) error {
	const requests, seats = 200, 10
	center := fmt.Sprintf("s3-%d", seed)
	var mu sync.Mutex
	counts := map[answer]int{}
	odd := map[answer]error{}
	_ = p.together(requests, func(n int) error {
		got, err := p.create(n, fmt.Sprint(n), center, 1)
		mu.Lock()
		defer mu.Unlock()
		counts[got]++
		odd[got] = err
		return nil
	})
	if counts[admitted] == seats && counts[noRoom] == requests-seats {
		return nil
	}
	return fmt.Errorf("%d got in and %d were told that there is no room, want %d and %d; all answers: %v, such as %v",
		counts[admitted], counts[noRoom], seats, requests-seats, counts, odd)
}

// reviewedTwice: one change sent five times at once, which the API server reviews again as often as it collides, and dry
// runs. One charge, none for a dry run, and a dry run says what the request would be told.
func (p *play) reviewedTwice(seed int) error {
	center := fmt.Sprintf("s4-%d", seed)
	if got, err := p.create(0, "trip", center, 3); got != admitted {
		return want("a ticket that fits", admitted, got, err)
	}
	err := p.together(5, func(n int) error {
		got, err := p.ask(n, func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, sceneTicket("trip", center, 0), merge(`{"spec":{"number":4}}`))
		})
		if got == overtaken { // the API server has tried often enough
			return nil
		}
		return want("a change that fits", admitted, got, err)
	})
	if err != nil {
		return err
	}
	for n := range 5 {
		if got, err := p.create(n, fmt.Sprint("dry-", n), center, 1, client.DryRunAll); got != admitted {
			return want("a dry run that fits", admitted, got, err)
		}
	}
	dry, said := p.create(1, "another", center, 2, client.DryRunAll)
	got, told := p.create(1, "another", center, 2)
	if err := errors.Join(want("a dry run beyond the limit", noRoom, dry, said), want("a ticket beyond the limit", noRoom, got, told)); err != nil {
		return err
	}
	if sum(said) != sum(told) {
		return fmt.Errorf("a dry run is told %q, the request %q", said.Error(), told.Error())
	}
	if got, err := p.create(1, "last", center, 1); got != admitted {
		return want("the last seat, though dry runs asked for it", admitted, got, err)
	}
	return nil
}

// sum is what a refusal says, however much of it has been counted meanwhile.
func sum(err error) string {
	said := history.Refusals(err.Error(), "", time.Time{}, time.Time{})
	text := ""
	for _, r := range said {
		text += fmt.Sprint(r.Place, r.Requested, r.Limit, r.Used+r.Reserved, r.Retained)
	}
	return text
}

// together does something so many times at once.
func (p *play) together(times int, do func(n int) error) error {
	errs := make([]error, times)
	var doing sync.WaitGroup
	for n := range times {
		doing.Go(func() { errs[n] = do(n) })
	}
	doing.Wait()
	return errors.Join(errs...)
}
