package stress

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

const (
	clients = 200 // who race
	people  = 20  // whose names they use
	slots   = 5   // tickets that a client may have
	shared  = 40  // names that all clients share
	// requestTime bounds one request, as kubectl does not and a person would.
	requestTime = 30 * time.Second

	racePrefix = "stress-race-"
	raceLabel  = "stress-race"
)

// action is what a client does.
type action string

const (
	creates    action = "create"
	duplicates action = "create of a name in use"
	changes    action = "change of seats"
	renames    action = "change of cost centre"
	moves      action = "change of date"
	deletes    action = "delete"
	tries      action = "dry run"
)

// odds are how often a client does something, out of 100.
func odds() []struct {
	action
	share int
} {
	return []struct {
		action
		share int
	}{{creates, 38}, {duplicates, 4}, {changes, 20}, {renames, 7}, {moves, 5}, {deletes, 18}, {tries, 8}}
}

// racer is one client. It belongs to one goroutine.
type racer struct {
	number int
	client client.Client
	dice   *rand.Rand
	diary  *diary
	year   int
	pause  time.Duration // how long it rests at the most between two requests
}

// race lets all clients work until the context ends.
func race(ctx context.Context, c *town, p plan, d *diary) error {
	var persons []client.Client
	for n := range people {
		person, err := c.person(fmt.Sprintf("traveller-%d", n))
		if err != nil {
			return err
		}
		persons = append(persons, person)
	}
	var racing sync.WaitGroup
	for n := range clients {
		r := &racer{
			number: n, client: persons[n%people], diary: d, year: time.Now().Year() + 1,
			dice: rand.New(rand.NewPCG(p.seed, uint64(1000+n))), pause: p.pause, //nolint:gosec // repeatable
		}
		racing.Go(func() { r.run(ctx) })
	}
	racing.Wait()
	return nil
}

func (r *racer) run(ctx context.Context) {
	for ctx.Err() == nil {
		what := r.choose()
		// A request that has begun is answered, also when the race is over: what it did is part of the history.
		one, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		asked := time.Now()
		namespace, err := r.do(one, what)
		r.diary.note(what, namespace, asked, err)
		cancel()
		pause(ctx, time.Duration(r.dice.Int64N(int64(r.pause))))
	}
}

// pause lets a client rest, so that all of them together don't only measure how fast the machine is.
func pause(ctx context.Context, span time.Duration) {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (r *racer) choose() action {
	n := r.dice.IntN(100)
	for _, o := range odds() {
		if n -= o.share; n < 0 {
			return o.action
		}
	}
	return creates
}

// do sends one request and returns the namespace that it was about.
func (r *racer) do(ctx context.Context, what action) (namespace string, err error) {
	t := r.ticket()
	switch what {
	case creates, duplicates:
		if what == duplicates || r.dice.IntN(5) == 0 {
			t.Name = fmt.Sprintf("shared-%d", r.dice.IntN(shared))
		}
		return t.Namespace, r.client.Create(ctx, t)
	case tries:
		if r.dice.IntN(2) == 0 {
			return t.Namespace, r.client.Create(ctx, t, client.DryRunAll)
		}
		return t.Namespace, r.client.Patch(ctx, t, merge(`{"spec":{"number":%d}}`, t.Spec.Number), client.DryRunAll)
	case changes:
		return t.Namespace, r.client.Patch(ctx, t, merge(`{"spec":{"number":%d}}`, t.Spec.Number))
	case renames:
		return t.Namespace, r.client.Patch(ctx, t, merge(`{"spec":{"costCenter":%q}}`, t.Spec.CostCenter))
	case moves:
		return t.Namespace, r.client.Patch(ctx, t, merge(`{"spec":{"departureDate":%q}}`, t.Spec.DepartureDate))
	case deletes:
		return t.Namespace, r.client.Delete(ctx, t)
	}
	return "", fmt.Errorf("nobody knows how to %s", what)
}

func merge(format string, values ...any) client.Patch {
	return client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, format, values...))
}

// ticket draws a ticket of this client. One in ten is booked.
func (r *racer) ticket() *flightsv1.FlightTicket {
	slot := r.dice.IntN(slots)
	return &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("%s%d", racePrefix, (r.number+slot)%raceNamespaces), Name: fmt.Sprintf("client-%d-%d", r.number, slot),
			Labels: map[string]string{raceLabel: "yes"},
		},
		Spec: flightsv1.FlightTicketSpec{
			From: "Mumbai", To: "London", Number: int32(1 + r.dice.IntN(5)), CostCenter: r.costCenter(), //nolint:gosec // up to 5
			DepartureDate: flightsv1.Date(fmt.Sprintf("%d-%02d-14", r.year, 1+r.dice.IntN(raceMonths))), Suspend: r.dice.IntN(10) > 0,
		},
	}
}

// costCenter draws a hot one more often than not.
func (r *racer) costCenter() string {
	switch n := r.dice.IntN(20); {
	case n < 12:
		return fmt.Sprintf("%s%d", hotPrefix, r.dice.IntN(hotKeys))
	case n < 19:
		return fmt.Sprintf("%s%d", coldPrefix, r.dice.IntN(coldKeys))
	default:
		return fmt.Sprintf("%s%d", keptPrefix, r.dice.IntN(keptKeys))
	}
}
