package stress

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/test/stress/history"
)

// watcher writes the history: every version of every ticket, bucket and policy. It is no informer, which would skip
// versions: a watch that breaks is taken up where it ended, and one that can't be is an error of the test.
type watcher struct {
	client client.WithWatch
	claims func(*flightsv1.FlightPolicy) func(history.Ticket, history.Form) []history.Claim

	mu      sync.Mutex
	history history.History
	rules   map[string]*history.Rule // by UID; the generation that is in force
	faults  []error
}

// watchAll watches until the test ends. claims says what a policy charges.
func watchAll(t *testing.T, c client.WithWatch, claims func(*flightsv1.FlightPolicy) func(history.Ticket, history.Form) []history.Claim) *watcher {
	t.Helper()
	w := &watcher{client: c, claims: claims, rules: map[string]*history.Rule{}}
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	t.Cleanup(func() { cancel(); watching.Wait() })
	for _, list := range []client.ObjectList{&flightsv1.FlightTicketList{}, &flightsv1.QuotaBucketList{}, &flightsv1.FlightPolicyList{}} {
		version, err := w.list(ctx, list)
		if err != nil {
			t.Fatal(err)
		}
		watching.Go(func() {
			if err := w.follow(ctx, list, version); err != nil && ctx.Err() == nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.faults = append(w.faults, err)
			}
		})
	}
	return w
}

// list takes in what is there.
func (w *watcher) list(ctx context.Context, list client.ObjectList) (version string, err error) {
	if err := w.client.List(ctx, list); err != nil {
		return "", err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return "", err
	}
	for _, item := range items {
		w.see(item.(client.Object), false)
	}
	return list.GetResourceVersion(), nil
}

func (w *watcher) follow(ctx context.Context, list client.ObjectList, version string) error {
	for ctx.Err() == nil {
		events, err := w.client.Watch(ctx, list, &client.ListOptions{
			Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true},
		})
		if err != nil {
			return fmt.Errorf("watch %T from revision %s: %w", list, version, err)
		}
		for event := range events.ResultChan() {
			object, ok := event.Object.(client.Object)
			if !ok {
				events.Stop()
				return fmt.Errorf("the watch of %T ended after revision %s: %v", list, version, event.Object)
			}
			version = object.GetResourceVersion()
			if event.Type != watch.Bookmark {
				w.see(object, event.Type == watch.Deleted)
			}
		}
		events.Stop()
	}
	return nil
}

func (w *watcher) see(object client.Object, gone bool) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch o := object.(type) {
	case *flightsv1.FlightTicket:
		w.history.Tickets = append(w.history.Tickets, versionOf(o, gone, now))
	case *flightsv1.QuotaBucket:
		w.history.Buckets = append(w.history.Buckets, bucketOf(o, gone, now))
	case *flightsv1.FlightPolicy:
		w.seePolicy(o, gone)
	}
}

// seePolicy notes generations, when they were stored and from when on they promise something.
func (w *watcher) seePolicy(p *flightsv1.FlightPolicy, gone bool) {
	at, known := revision(p.ResourceVersion), w.rules[string(p.UID)]
	if known != nil && (gone || p.Generation > known.Generation) {
		known.Ended, known.Deleted = at, gone
		w.history.Rules = append(w.history.Rules, *known)
		delete(w.rules, string(p.UID))
		known = nil
	}
	if gone {
		return
	}
	if known == nil {
		claims := w.claims(p)
		if claims == nil {
			return
		}
		known = &history.Rule{Policy: p.Name, UID: p.UID, Generation: p.Generation, Applied: at, Claims: claims}
		w.rules[string(p.UID)] = known
	}
	if known.Ready == 0 && inForce(p) {
		known.Ready = at
	}
}

// inForce says whether a policy promises to hold: every replica serves it, and it is counted.
func inForce(p *flightsv1.FlightPolicy) bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, flightsv1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == p.Generation &&
		p.Status.CountedGeneration == p.Generation
}

// soFar is the history up to now.
func (w *watcher) soFar() (history.History, []error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := history.History{Tickets: clone(w.history.Tickets), Buckets: clone(w.history.Buckets), Rules: clone(w.history.Rules)}
	for _, r := range w.rules {
		h.Rules = append(h.Rules, *r)
	}
	h.Sort()
	return h, clone(w.faults)
}

func clone[T any](list []T) []T { return append([]T(nil), list...) }

// versionOf is a ticket in the words of the judge: it holds for what its spec asks, for what is booked, and for what is
// being booked.
func versionOf(t *flightsv1.FlightTicket, gone bool, now time.Time) history.Ticket {
	v := history.Ticket{
		Revision: revision(t.ResourceVersion), Seen: now, UID: t.UID, Namespace: t.Namespace, Name: t.Name, Generation: t.Generation,
		CostCenter: t.Spec.CostCenter, Gone: gone,
		Forms: []history.Form{{Seats: int64(t.Spec.Number), Month: month(t.Spec.DepartureDate)}},
	}
	if b := t.Status.Booking; b != nil {
		v.Booked = true
		v.Forms = append(v.Forms, history.Form{Seats: int64(b.Order.Seats), Month: month(b.Order.DepartureDate)})
	}
	if op := t.Status.Operation; op != nil && op.Order != nil {
		v.Forms = append(v.Forms, history.Form{Seats: int64(op.Order.Seats), Month: month(op.Order.DepartureDate)})
	}
	return v
}

func month(d flightsv1.Date) string { return string(d[:min(len(d), len("2027-03"))]) }

func bucketOf(b *flightsv1.QuotaBucket, gone bool, now time.Time) history.Bucket {
	v := history.Bucket{
		Revision: revision(b.ResourceVersion), Seen: now, Place: history.Place{Policy: b.Policy, UID: b.PolicyUID, Key: b.Key},
		Used: b.Used, Reserved: b.Reserved, Retained: b.Retained, Counted: revision(b.CountedRevision), Gone: gone,
	}
	if b.Scope == flightsv1.QuotaScopeNamespace {
		v.Place.Namespace = b.Namespace
	}
	for _, e := range b.Entries {
		v.Entries = append(v.Entries, history.Entry{Nonce: e.Nonce, Ticket: e.UID, Generation: e.Generation, Amount: e.Amount})
	}
	return v
}

// revision reads a resourceVersion; none is 0. The API server of these tests writes etcd's revisions.
func revision(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
