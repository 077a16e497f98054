package quotabucket

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
	"github.com/flight-operator/flight-operator/internal/quota/census"
	"github.com/flight-operator/flight-operator/internal/quota/store"
)

// Keeper keeps all buckets. One round does all of them, since one look at the tickets serves all: what doesn't change
// costs neither an evaluation nor a request.
type Keeper struct {
	Options
	census *census.Census
	editor *store.Editor
	gate   *Gate

	// Of the rounds, which run one after the other.
	last time.Time            // when the last one began
	ages map[place]quota.Ages // since when entries are open
	seen map[place]basis      // what a count that changed nothing was based on

	mu     sync.Mutex
	forces map[types.UID]force
	// uncounted says which tickets policies fail on.
	uncounted map[types.UID]string
	// changes are told when a policy comes into force or a count is done.
	changes chan struct{}
}

// New returns a keeper and the second gate that goes with it. Close the gate when nothing is booked any more.
func New(o Options) (*Keeper, *Gate, error) {
	if o.RequestLife <= 0 {
		return nil, nil, errors.New("make a quota keeper: a request's life is needed")
	}
	k := &Keeper{
		Options: o, census: census.New(o.Tickets, o.Policies.Quotas, o.OperatorNamespace),
		editor: &store.Editor{Reader: o.Live, Writer: o.Client, Deleter: o.Client},
		ages:   map[place]quota.Ages{}, seen: map[place]basis{}, forces: map[types.UID]force{}, changes: make(chan struct{}, 1),
	}
	gate, err := newGate(o, k.census)
	k.gate = gate
	return k, gate, err
}

// Reconcile makes one round, no sooner than pace after the last one.
func (k *Keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if early := pace - k.Clock().Sub(k.last); !k.last.IsZero() && early > 0 {
		return reconcile.Result{RequeueAfter: early}, nil
	}
	if !k.PoliciesLoaded() {
		return reconcile.Result{RequeueAfter: pace}, nil
	}
	k.last = k.Clock()
	o, err := k.observe(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	k.note()
	p := decide(o)
	done, err := k.act(ctx, o, p)
	k.gate.wake(o)
	k.Metrics.observed(o, k.census.Asked())
	if err != nil {
		return reconcile.Result{}, err
	}
	next := p.next
	if done {
		next = pace // to see what became of it
	}
	return reconcile.Result{RequeueAfter: min(next, k.proceed(ctx, o))}, nil
}

// note takes down which tickets policies fail on.
func (k *Keeper) note() {
	now := map[types.UID]string{}
	for _, q := range k.census.Quotas() {
		if err := k.census.Uncounted(q.PolicyUID()); err != nil {
			now[q.PolicyUID()] = err.Error()
		}
	}
	k.mu.Lock()
	changed := !maps.Equal(k.uncounted, now)
	k.uncounted = now
	k.mu.Unlock()
	if changed {
		k.tell()
	}
}

// Uncounted says in words which tickets a policy's quota can't count, since the policy fails on them; empty if there are none.
func (k *Keeper) Uncounted(policy types.UID) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.uncounted[policy]
}

// proceed moves policies on their way into force, and returns when the time alone asks for another look.
func (k *Keeper) proceed(ctx context.Context, o observation) time.Duration {
	k.mu.Lock()
	forces := maps.Clone(k.forces)
	k.mu.Unlock()
	next, floor := idle, ""
	for uid, f := range forces {
		due, wait := f.lacksFloor(o.now, o.life)
		switch {
		case due:
			next = pace
			if floor == "" {
				floor = k.floor(ctx)
			}
			f.floor = floor
		case wait > 0:
			next = min(next, wait)
		case !f.in && f.counted(o, uid):
			f.in = true
			log.FromContext(ctx).Info("a quota is in force", "policy", o.quotas[uid].name, "generation", f.generation)
			k.tell()
		}
		forces[uid] = f
	}
	k.mu.Lock()
	k.forces = forces
	k.mu.Unlock()
	return next
}

// floor asks for the revision that counts have to come up to; empty if it can't be told now.
func (k *Keeper) floor(ctx context.Context) string {
	floor, err := k.newestTicket(ctx)
	if err != nil {
		log.FromContext(ctx).Info("the newest ticket can't be found; tries again", "cause", err.Error())
		return ""
	}
	return floor
}

// tell announces that what Waiting or Uncounted says has changed.
func (k *Keeper) tell() {
	select {
	case k.changes <- struct{}{}:
	default: // it is announced already
	}
}

// Changes gets a value when Waiting or Uncounted says something else of a policy. It has one reader.
func (k *Keeper) Changes() <-chan struct{} { return k.changes }

// Waiting says in words what each policy's quota waits for, until it is in force: from then on no admission raises a bucket
// above its limit. Policies without a quota, and those in force, are left out.
func (k *Keeper) Waiting(policies []flightsv1.FlightPolicy) map[types.UID]string {
	loaded := k.Policies.Loaded()
	quotas := map[types.UID]int64{}
	for _, q := range k.Policies.Quotas() {
		quotas[q.PolicyUID()] = q.PolicyGeneration()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	waiting := map[types.UID]string{}
	for i := range policies {
		p := &policies[i]
		_, counts := quotas[p.UID]
		switch is := loaded[p.Name]; {
		case is.UID != p.UID || is.Generation != p.Generation && is.FailedGeneration != p.Generation:
			waiting[p.UID] = "the controller has not loaded it yet"
		case !counts:
		case k.census.Problem(p.UID) != nil:
			waiting[p.UID] = fmt.Sprintf("its quotas can't be counted: %s", k.census.Problem(p.UID))
		default:
			if f := k.forces[p.UID]; f.generation != p.Generation || !f.in {
				waiting[p.UID] = f.waiting(p.Status.CountedGeneration == p.Generation)
			}
		}
	}
	return waiting
}
