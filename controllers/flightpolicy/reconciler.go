// Package flightpolicy tells in a FlightPolicy's status whether every live replica of the webhook serves it, and its
// quotas are counted.
//
// It knows the replicas' reports, what the quotas wait for, and the status. It compiles nothing: what doesn't compile is told by the replicas.
package flightpolicy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/replica"
)

// +kubebuilder:rbac:groups=flights.com,resources=flightpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=flights.com,resources=flightpolicies/status,verbs=update
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch,namespace=flight-operator-system

// afterConflict is the pause after somebody else wrote a policy: time for the cache to see it.
const afterConflict = 500 * time.Millisecond

// Quotas tells whether quotas are in force.
type Quotas interface {
	// Waiting says in words what each policy's quota waits for; policies without a quota, and those whose quota is in
	// force, are left out.
	Waiting(policies []flightsv1.FlightPolicy) map[types.UID]string
	// Uncounted says in words which tickets a policy's quota can't count; empty if there are none.
	Uncounted(policy types.UID) string
	// Changes gets a value when Waiting or Uncounted says something else.
	Changes() <-chan struct{}
}

// Reconciler keeps the status of all FlightPolicies. One pass does all of them, because a replica's report tells of
// all: a thousand policies cost one read of the reports and no write while nothing changes.
type Reconciler struct {
	client    client.Client
	live      client.Reader
	namespace string
	clock     clock.PassiveClock
	observer  *replica.Observer
	quotas    Quotas
}

// New returns a reconciler. The client's cache must be restricted by CacheByObject; live reads Leases from the API server
// before a policy is called served; namespace is the operator's own; quotas says which quotas aren't in force.
func New(c client.Client, live client.Reader, namespace string, now clock.PassiveClock, quotas Quotas) *Reconciler {
	return &Reconciler{client: c, live: live, namespace: namespace, clock: now, observer: replica.NewObserver(), quotas: quotas}
}

// SetupWithManager registers the reconciler; it runs on the leader alone.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	once := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{everything()}
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("flightpolicy").
		Watches(&flightsv1.FlightPolicy{}, once, builder.WithPredicates(specChanged())).
		Watches(&coordinationv1.Lease{}, once, builder.WithPredicates(r.reportChanged())).
		WatchesRawSource(source.Func(r.followQuotas)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the flightpolicy controller: %w", err)
	}
	return nil
}

// followQuotas looks again when a quota has come into force.
func (r *Reconciler) followQuotas(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	changes := r.quotas.Changes()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changes:
				queue.Add(everything())
			}
		}
	}()
	return nil
}

// CacheByObject is what the manager's cache must be told: of all Leases in the cluster the replicas' own concern the
// reconciler, and the controller may read no others.
func CacheByObject(namespace string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&coordinationv1.Lease{}: {
			Namespaces: map[string]cache.Config{namespace: {}},
			Label:      labels.SelectorFromSet(labels.Set{replica.Label: replica.LabelValue}),
		},
	}
}

// everything is the one request of this reconciler.
func everything() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: "all-policies"}}
}

// specChanged drops the events of our own status writes. A policy created again within one event has another UID and
// perhaps the same generation.
func specChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	}}
}

// reportChanged drops the renewals of a Lease, which come every few seconds, and all Leases that are no replica's.
func (r *Reconciler) reportChanged() predicate.Predicate {
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == r.namespace && o.GetLabels()[replica.Label] == replica.LabelValue
	})
	changed := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		then, isLease := e.ObjectOld.(*coordinationv1.Lease)
		now, isLeaseToo := e.ObjectNew.(*coordinationv1.Lease)
		if !isLease || !isLeaseToo {
			return true
		}
		return !r.observer.See(now, r.clock.Now()) || then.Annotations[replica.PoliciesAnnotation] != now.Annotations[replica.PoliciesAnnotation]
	}}
	return predicate.And(ours, changed)
}

// Reconcile assesses every policy and writes the statuses that change. It looks again when the next Lease would
// expire.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var policies flightsv1.FlightPolicyList
	if err := r.client.List(ctx, &policies); err != nil {
		return reconcile.Result{}, fmt.Errorf("list policies: %w", err)
	}
	live, err := r.replicas(ctx, r.client)
	if err != nil {
		return reconcile.Result{}, err
	}
	// From Ready on every replica that decides has the policy. A cache may not have heard of one that has just begun.
	if slices.ContainsFunc(policies.Items, func(p flightsv1.FlightPolicy) bool { return becomesReady(&p, live) }) {
		if live, err = r.replicas(ctx, r.live); err != nil {
			return reconcile.Result{}, err
		}
	}
	waiting := r.quotas.Waiting(policies.Items)
	var failures []error
	overtaken := false
	for i := range policies.Items {
		switch err := r.tell(ctx, &policies.Items[i], live, waiting[policies.Items[i].UID]); {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			log.FromContext(ctx).V(1).Info("somebody else wrote or deleted meanwhile; looks again", "cause", err.Error())
			overtaken = true
		case err != nil:
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 {
		return reconcile.Result{}, errors.Join(failures...)
	}
	if overtaken {
		return reconcile.Result{RequeueAfter: afterConflict}, nil
	}
	return reconcile.Result{RequeueAfter: nextExpiry(live, r.clock.Now())}, nil
}

// replicas lists the live replicas of the webhook.
func (r *Reconciler) replicas(ctx context.Context, from client.Reader) ([]replica.Replica, error) {
	var leases coordinationv1.LeaseList
	if err := from.List(ctx, &leases, client.InNamespace(r.namespace), client.MatchingLabels{replica.Label: replica.LabelValue}); err != nil {
		return nil, fmt.Errorf("list the replicas' leases: %w", err)
	}
	return r.observer.Live(leases.Items, r.clock.Now()), nil
}

// becomesReady says whether the replicas serve a generation of a policy that isn't called ready yet.
func becomesReady(p *flightsv1.FlightPolicy, live []replica.Replica) bool {
	return !isReady(p) && assess(p, live).reason == flightsv1.ReasonServing
}

// tell writes the status of one policy if it changes. That the policy was changed or is gone meanwhile is an error that
// apierrors.IsConflict or IsNotFound knows.
func (r *Reconciler) tell(ctx context.Context, p *flightsv1.FlightPolicy, live []replica.Replica, waiting string) error {
	v := assess(p, live).until(p, waiting).without(r.quotas.Uncounted(p.UID))
	status := statusOf(p, v, r.clock.Now())
	if equality.Semantic.DeepEqual(p.Status, status) {
		return nil
	}
	changed := p.DeepCopy()
	changed.Status = status
	if err := r.client.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("write the status of policy %s: %w", p.Name, err)
	}
	log.FromContext(ctx).Info("policy status changed", "policy", p.Name, "generation", p.Generation, "reason", v.reason,
		"replicas", v.replicas, "serving", v.serving)
	return nil
}

// nextExpiry is how long until the first of the live replicas would count as gone; zero when there is none.
func nextExpiry(live []replica.Replica, now time.Time) time.Duration {
	var next time.Duration
	for _, one := range live {
		if left := max(one.Expires.Sub(now), time.Millisecond); next == 0 || left < next {
			next = left
		}
	}
	return next
}
