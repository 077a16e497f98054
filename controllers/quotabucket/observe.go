package quotabucket

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// observe gathers what a round decides by, from the caches: what they lack for now they will show later, and every write
// is under the resourceVersion of a live read.
func (k *Keeper) observe(ctx context.Context) (observation, error) {
	if err := k.census.Look(ctx); err != nil {
		return observation{}, err
	}
	o := observation{now: k.Clock(), life: k.RequestLife, charged: k.census.Places(), ages: k.ages}
	var buckets flightsv1.QuotaBucketList
	if err := k.Client.List(ctx, &buckets); err != nil {
		return observation{}, fmt.Errorf("list quota buckets: %w", err)
	}
	for i := range buckets.Items {
		o.buckets = append(o.buckets, &buckets.Items[i])
	}
	var policies flightsv1.FlightPolicyList
	if err := k.Client.List(ctx, &policies); err != nil {
		return observation{}, fmt.Errorf("list policies: %w", err)
	}
	o.quotas = k.facts(policies.Items, o)
	var err error
	if o.ending, err = ending(ctx, k.Client); err != nil {
		return observation{}, err
	}
	if o.gone, err = k.goneOf(ctx, o); err != nil {
		return observation{}, err
	}
	k.grow(o)
	o.snapshot, o.unchanged = k.snapshot(o), k.unchanged(o)
	return o, nil
}

// facts puts together what the engine counts by and what the policies' objects say, and moves each on its way into force.
func (k *Keeper) facts(policies []flightsv1.FlightPolicy, o observation) map[types.UID]facts {
	objects := make(map[types.UID]*flightsv1.FlightPolicy, len(policies))
	for i := range policies {
		objects[policies[i].UID] = &policies[i]
	}
	all := map[types.UID]facts{}
	for _, q := range k.census.Quotas() {
		p := objects[q.PolicyUID()]
		if p == nil {
			continue // it is gone, or the cache doesn't show it yet
		}
		all[p.UID] = facts{
			name: p.Name, generation: q.PolicyGeneration(), newest: p.Generation, counted: p.Status.CountedGeneration,
			failing: k.census.Problem(p.UID) != nil,
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next := make(map[types.UID]force, len(all))
	for uid, f := range all {
		is := k.forces[uid].advance(f.generation, f.generation == f.newest && served(objects[uid]), o.now)
		next[uid] = is
		if !is.in {
			f.floor = is.floor
		}
		all[uid] = f
	}
	k.forces = next
	return all
}

// ending lists the namespaces that are being deleted.
func ending(ctx context.Context, reader client.Reader) (map[string]bool, error) {
	var namespaces corev1.NamespaceList
	if err := reader.List(ctx, &namespaces); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	all := map[string]bool{}
	for i := range namespaces.Items {
		if !namespaces.Items[i].DeletionTimestamp.IsZero() {
			all[namespaces.Items[i].Name] = true
		}
	}
	return all, nil
}

// goneOf finds the policies of buckets that don't exist any more, or have no quota any more. That is asked live: a cache
// may not show yet a policy whose buckets the webhook writes already.
func (k *Keeper) goneOf(ctx context.Context, o observation) (map[types.UID]bool, error) {
	gone, asked := map[types.UID]bool{}, map[types.UID]bool{}
	for _, b := range o.buckets {
		if _, serves := o.quotas[b.PolicyUID]; serves || asked[b.PolicyUID] {
			continue
		}
		asked[b.PolicyUID] = true
		is, err := k.isGone(ctx, b.Policy, b.PolicyUID)
		if err != nil {
			return nil, err
		}
		gone[b.PolicyUID] = is
	}
	return gone, nil
}

func (k *Keeper) isGone(ctx context.Context, name string, uid types.UID) (bool, error) {
	var p flightsv1.FlightPolicy
	err := k.Live.Get(ctx, client.ObjectKey{Name: name}, &p)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read policy %s: %w", name, err)
	case p.UID != uid:
		return true, nil
	}
	is := k.Policies.Loaded()[name]
	if is.UID != uid || is.Generation != p.Generation || is.Err != nil {
		return false, nil // nobody knows yet whether it has a quota
	}
	for _, q := range k.Policies.Quotas() {
		if q.PolicyUID() == uid {
			return false, nil
		}
	}
	return true, nil
}

// grow notes since when entries are open, and forgets what is known of buckets that are gone.
func (k *Keeper) grow(o observation) {
	there := make(map[place]bool, len(o.buckets))
	for _, b := range o.buckets {
		at := placeOf(b)
		there[at] = true
		if next := k.ages[at].See(b.Entries, o.now); len(next) > 0 {
			k.ages[at] = next
		} else {
			delete(k.ages, at)
		}
	}
	for at := range k.ages {
		if !there[at] {
			delete(k.ages, at)
		}
	}
	for at := range k.seen {
		if !there[at] {
			delete(k.seen, at)
		}
	}
}

// snapshot returns what the census says of buckets, each time anew.
func (k *Keeper) snapshot(o observation) func(*flightsv1.QuotaBucket) quota.Snapshot {
	return func(b *flightsv1.QuotaBucket) quota.Snapshot {
		s := k.census.Snapshot(placeOf(b), b.PolicyUID, b.Entries)
		s.Floor = o.quotas[b.PolicyUID].floor
		return s
	}
}

// basis is all that a count depends on.
type basis struct {
	bucket     string // its resourceVersion
	version    uint64 // of what tickets charge it
	generation int64
	floor      string
	revision   string // of the census, where entries name tickets that charge nothing, or where a later count may be written
}

func (k *Keeper) basis(o observation, b *flightsv1.QuotaBucket) basis {
	f := o.quotas[b.PolicyUID]
	is := basis{bucket: b.ResourceVersion, version: o.charged[placeOf(b)].Version, generation: f.generation, floor: f.floor}
	if len(b.Entries) > 0 || len(b.Departures) > 0 || f.floor != "" {
		is.revision, _ = k.census.Revisions()
	}
	return is
}

func (k *Keeper) unchanged(o observation) func(*flightsv1.QuotaBucket) bool {
	return func(b *flightsv1.QuotaBucket) bool {
		was, known := k.seen[placeOf(b)]
		return known && was == k.basis(o, b)
	}
}
