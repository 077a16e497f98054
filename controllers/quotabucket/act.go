package quotabucket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// act carries out a plan and says whether anything was done. What fails is tried again in the next round.
func (k *Keeper) act(ctx context.Context, o observation, p plan) (done bool, err error) {
	for _, b := range p.unchanged {
		k.seen[placeOf(b)] = k.basis(o, b)
	}
	var failures []error
	failures = append(failures, each(p.remove, func(r removal) error { return k.remove(ctx, o, r) })...)
	failures = append(failures, each(p.age, func(a aged) error { return k.release(ctx, a) })...)
	failures = append(failures, each(p.count, func(c counting) error { return k.count(ctx, o, c) })...)
	failures = append(failures, k.transitions(ctx, o, p)...)
	return len(p.remove)+len(p.age)+len(p.count)+len(p.open)+len(p.finish) > 0, errors.Join(failures...)
}

// each does something with all of a list, a few at a time, and returns what went wrong.
func each[T any](list []T, do func(T) error) []error {
	var working sync.WaitGroup
	errs, slots := make([]error, len(list)), make(chan struct{}, writers)
	for i, one := range list {
		slots <- struct{}{}
		working.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(one)
		})
	}
	working.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// remove removes a bucket that is over, as it is stored at that moment.
func (k *Keeper) remove(ctx context.Context, o observation, r removal) error {
	gone, err := k.editor.Remove(ctx, r.place, func(p *quota.Page) bool {
		return r.withoutRegard || p.Removable(o.now)
	})
	if err == nil && gone {
		log.FromContext(ctx).V(1).Info("quota bucket removed", "namespace", r.place.Namespace, "bucket", r.place.Name)
	}
	return err
}

// count counts a bucket, on a snapshot taken anew for each try. That another controller's count stands, or that the
// policy has changed, is no failure: the next round sees it.
func (k *Keeper) count(ctx context.Context, o observation, c counting) error {
	_, err := k.editor.Edit(ctx, c.place, c.opening, func(p *quota.Page) error {
		b := p.Bucket()
		if c.opening == nil && b.PolicyUID != c.policy {
			return nil // somebody else's, and not what was observed
		}
		if c.opening != nil {
			if err := p.Belongs(*c.opening); err != nil {
				return err
			}
		}
		return p.Count(o.snapshot(b))
	})
	var void *quota.VoidError
	var stale *quota.StaleError
	switch {
	case errors.As(err, &void), errors.As(err, &stale):
		log.FromContext(ctx).V(1).Info("a count is void", "namespace", c.place.Namespace, "bucket", c.place.Name, "cause", err.Error())
		return nil
	case err != nil:
		return fmt.Errorf("count: %w", err)
	}
	k.Metrics.counted()
	return nil
}

// transitions opens the new buckets of policies whose old ones are counted and drained, and says of those that lack none
// that they are counted. That is asked live: a review of an earlier generation may have made a bucket that the cache doesn't
// show yet. What the list lacks was made after it, and its review has asked for the policy since, and was refused.
func (k *Keeper) transitions(ctx context.Context, o observation, p plan) []error {
	if len(p.open)+len(p.finish) == 0 {
		return nil
	}
	var live flightsv1.QuotaBucketList
	if err := k.Live.List(ctx, &live); err != nil {
		return []error{fmt.Errorf("list quota buckets: %w", err)}
	}
	there, held := map[place]bool{}, map[types.UID]bool{}
	for i := range live.Items {
		b := &live.Items[i]
		there[placeOf(b)] = true
		if !o.absent(placeOf(b)) && !closed(b, o.quotas[b.PolicyUID].generation) {
			held[b.PolicyUID] = true
		}
	}
	var opening []counting
	for at, charged := range o.charged {
		if uid := charged.Sample.PolicyUID; !there[at] && !held[uid] && slices.Contains(p.open, uid) && !o.absent(at) {
			opening = append(opening, counting{at, uid, &charged.Sample})
		}
	}
	failures := each(opening, func(c counting) error { return k.count(ctx, o, c) })
	counted := slices.DeleteFunc(slices.Clone(p.finish), func(uid types.UID) bool { return held[uid] })
	return append(failures, each(counted, func(uid types.UID) error { return k.finish(ctx, o.quotas[uid]) })...)
}

// finish says in a policy's status that the generation is counted, if it is the newest still.
func (k *Keeper) finish(ctx context.Context, f facts) error {
	var p flightsv1.FlightPolicy
	if err := k.Live.Get(ctx, client.ObjectKey{Name: f.name}, &p); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("read policy %s: %w", f.name, err))
	}
	if p.Generation != f.generation || p.Status.CountedGeneration == f.generation {
		return nil
	}
	p.Status.CountedGeneration = f.generation
	switch err := k.Client.Status().Update(ctx, &p); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // the next round looks again
	case err != nil:
		return fmt.Errorf("write that policy %s is counted: %w", f.name, err)
	}
	log.FromContext(ctx).Info("the quotas of a policy are counted", "policy", f.name, "generation", f.generation)
	k.tell()
	return nil
}

// newestTicket is a revision by which everything was stored that is stored now: the newest of all tickets, read live.
// Deletions are no matter; what they leave out would only be counted for longer.
func (k *Keeper) newestTicket(ctx context.Context) (string, error) {
	newest, page := "1", ""
	for {
		list := metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(flightsv1.GroupVersion.WithKind("FlightTicketList"))
		if err := k.Live.List(ctx, &list, client.Limit(listed), client.Continue(page)); err != nil {
			return "", fmt.Errorf("list tickets: %w", err)
		}
		for i := range list.Items {
			if order, err := resourceversion.CompareResourceVersion(list.Items[i].ResourceVersion, newest); err != nil {
				return "", fmt.Errorf("compare the revisions of tickets: %w", err)
			} else if order > 0 {
				newest = list.Items[i].ResourceVersion
			}
		}
		if page = list.Continue; page == "" {
			return newest, nil
		}
	}
}

// listed is how many tickets are listed at once.
const listed = 1000
