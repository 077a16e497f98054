// Package loader feeds a policy engine from the FlightPolicies in the cluster, in every process that decides: each
// replica of the webhook, and the controller, leader or not.
//
// It knows a Kubernetes client and the order of events. It knows no Rego: what a policy means is the engine's.
package loader

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
)

// workers is how many policies are compiled at once. More than one, so that a policy that is slow to compile doesn't
// hold up the others; few, because compiling competes with serving for processors.
const workers = 2

// Engine is what the loader feeds. *policy.Engine is one.
type Engine interface {
	// Set compiles a policy and puts it in force. A *policy.CompileError means that the policy is held as broken.
	Set(ctx context.Context, p *flightsv1.FlightPolicy) error
	// Delete takes a policy out of force.
	Delete(name string)
}

// revision identifies the text of a policy: a re-created policy starts again at generation 1 under another UID.
type revision struct {
	uid        types.UID
	generation int64
}

// Loader keeps an engine equal to the FlightPolicies in a cache. It is a reconciler and runs without leader election.
type Loader struct {
	reader client.Reader
	engine Engine

	mu      sync.Mutex
	set     map[string]revision // what the engine holds
	started bool                // the first list was taken
	pending map[string]struct{} // names of the first list that the engine has not seen yet
	watch   []chan struct{}     // subscribers to changes
	changed chan struct{}       // closed at the next change
}

// New returns a loader that reads policies from reader, which should be a manager's cache, and feeds engine.
func New(reader client.Reader, engine Engine) *Loader {
	return &Loader{reader: reader, engine: engine, set: map[string]revision{}, pending: map[string]struct{}{}, changed: make(chan struct{})}
}

// SetupWithManager registers the loader with a manager whose cache may list and watch flightpolicies. The loader then
// starts with the manager's caches and does not wait for an election.
func (l *Loader) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("policy-loader").
		For(&flightsv1.FlightPolicy{}).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			NeedLeaderElection:      ptr.To(false),
		}).
		Complete(l)
	if err != nil {
		return fmt.Errorf("register the policy loader: %w", err)
	}
	if err := mgr.Add(firstList{l}); err != nil {
		return fmt.Errorf("register the first list of policies: %w", err)
	}
	return nil
}

// Synced says whether every policy that existed at the start is in the engine, in force or held as broken. Once true
// it stays true. A process that decides before that would let tickets past policies that it has not read.
func (l *Loader) Synced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started && len(l.pending) == 0
}

// ReadyCheck is Synced as a readiness check for healthz.
func (l *Loader) ReadyCheck(*http.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.started:
		return errors.New("the policies have not been listed yet")
	case len(l.pending) > 0:
		return fmt.Errorf("%d policies are not compiled yet", len(l.pending))
	}
	return nil
}

// CaughtUp asks live, which must be no cache, for all policies, and fails while the engine lacks one as it stands there.
func (l *Loader) CaughtUp(ctx context.Context, live client.Reader) error {
	stored := metav1.PartialObjectMetadataList{}
	stored.SetGroupVersionKind(flightsv1.GroupVersion.WithKind("FlightPolicyList"))
	if err := live.List(ctx, &stored); err != nil {
		return fmt.Errorf("list the policies as they stand: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	lacking := 0
	for i := range stored.Items {
		p := &stored.Items[i]
		if has := l.set[p.Name]; has.uid != p.UID || has.generation < p.Generation {
			lacking++
		}
	}
	if lacking > 0 {
		return fmt.Errorf("%d policies are not loaded as they stand", lacking)
	}
	return nil
}

// Changes returns a channel that gets a value after the engine's contents changed, and once when the loader is synced.
// Values are merged: a slow reader gets one for many changes. Call it before the manager starts.
func (l *Loader) Changes() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan struct{}, 1)
	l.watch = append(l.watch, c)
	return c
}

// Superseded returns once the engine no longer has a revision of a policy as the newest: it has another one, or the
// policy is gone. The error is that the context ended before.
func (l *Loader) Superseded(ctx context.Context, name string, uid types.UID, generation int64) error {
	for {
		l.mu.Lock()
		newest, changed := l.set[name], l.changed
		l.mu.Unlock()
		if newest != (revision{uid: uid, generation: generation}) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for a newer policy %s: %w", name, ctx.Err())
		}
	}
}

// Reconcile brings the engine up to date with one policy.
func (l *Loader) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var p flightsv1.FlightPolicy
	err := l.reader.Get(ctx, req.NamespacedName, &p)
	if apierrors.IsNotFound(err) {
		l.remove(ctx, req.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read policy %s: %w", req.Name, err)
	}
	return reconcile.Result{}, l.load(ctx, &p)
}

// load compiles a policy unless the engine holds that very revision. A policy that does not compile is loaded all the
// same: the engine holds it as broken and refuses what it matches, and trying again would not mend it.
func (l *Loader) load(ctx context.Context, p *flightsv1.FlightPolicy) error {
	rev := revision{uid: p.UID, generation: p.Generation}
	if l.holds(p.Name, rev) {
		l.done(p.Name)
		return nil
	}
	err := l.engine.Set(ctx, p)
	var broken *policy.CompileError
	switch {
	case errors.As(err, &broken):
		log.FromContext(ctx).Info("policy does not compile", "policy", p.Name, "generation", p.Generation, "problems", len(broken.Problems))
	case err != nil:
		return fmt.Errorf("load policy %s: %w", p.Name, err)
	default:
		log.FromContext(ctx).Info("policy loaded", "policy", p.Name, "generation", p.Generation)
	}
	l.mu.Lock()
	l.set[p.Name] = rev
	l.mu.Unlock()
	l.done(p.Name)
	l.notify()
	return nil
}

func (l *Loader) remove(ctx context.Context, name string) {
	l.engine.Delete(name)
	l.mu.Lock()
	delete(l.set, name)
	l.mu.Unlock()
	l.done(name)
	l.notify()
	log.FromContext(ctx).Info("policy removed", "policy", name)
}

func (l *Loader) holds(name string, rev revision) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.set[name] == rev
}

// done strikes a policy off the first list.
func (l *Loader) done(name string) {
	l.mu.Lock()
	_, waited := l.pending[name]
	delete(l.pending, name)
	last := waited && len(l.pending) == 0
	l.mu.Unlock()
	if last {
		l.notify()
	}
}

func (l *Loader) notify() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	for _, c := range l.watch {
		select {
		case c <- struct{}{}:
		default: // a value is waiting already
		}
	}
}

// begin takes the first list: the policies that must be in the engine before the loader is synced. It holds the lock
// from the read of the cache on: a policy whose removal is handled in between would otherwise be waited for forever.
func (l *Loader) begin(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list flightsv1.FlightPolicyList
	if err := l.reader.List(ctx, &list); err != nil {
		return fmt.Errorf("list the policies at the start: %w", err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if _, seen := l.set[p.Name]; !seen {
			l.pending[p.Name] = struct{}{}
		}
	}
	l.started = true
	return nil
}

// firstList is the runnable that lists the policies once, after the caches are filled.
type firstList struct{ loader *Loader }

var (
	_ manager.Runnable               = firstList{}
	_ manager.LeaderElectionRunnable = firstList{}
)

// Start lists the policies and returns.
func (f firstList) Start(ctx context.Context) error {
	if err := f.loader.begin(ctx); err != nil {
		return err
	}
	f.loader.notify()
	return nil
}

// NeedLeaderElection is false: every replica decides.
func (firstList) NeedLeaderElection() bool { return false }
