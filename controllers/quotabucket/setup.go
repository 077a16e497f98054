package quotabucket

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota/census"
)

// +kubebuilder:rbac:groups=flights.com,resources=quotabuckets,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=flights.com,resources=flighttickets,verbs=get;list;watch
// +kubebuilder:rbac:groups=flights.com,resources=flighttickets/status,verbs=update
// +kubebuilder:rbac:groups=flights.com,resources=flightpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=flights.com,resources=flightpolicies/status,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// TicketsOf returns the store of a cache's informer of tickets, whose revision is that of what is in the store. The
// revision that the informer itself tells is that of what its watch has received: its tickets may be behind it.
func TicketsOf(ctx context.Context, c cache.Cache) (census.Tickets, error) {
	informer, err := c.GetInformer(ctx, &flightsv1.FlightTicket{})
	if err != nil {
		return nil, fmt.Errorf("watch tickets: %w", err)
	}
	shared, is := informer.(toolscache.SharedIndexInformer)
	if !is {
		return nil, fmt.Errorf("watch tickets: the informer is a %T and has no store that tells its revision", informer)
	}
	return shared.GetStore(), nil
}

// SetupWithManager registers the keeper. It counts on the leader alone.
func (k *Keeper) SetupWithManager(mgr ctrl.Manager) error {
	once := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{round()}
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("quotabucket").
		Watches(&flightsv1.FlightTicket{}, once).
		Watches(&flightsv1.QuotaBucket{}, once).
		Watches(&flightsv1.FlightPolicy{}, once).
		Watches(&corev1.Namespace{}, once, builder.WithPredicates(endingChanged())).
		WatchesRawSource(source.Func(k.followPolicies)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](pace, idle),
		}).
		Complete(k)
	if err != nil {
		return fmt.Errorf("register the quota controller: %w", err)
	}
	return nil
}

// round is the one request of this controller.
func round() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: "all-buckets"}}
}

// endingChanged lets through that a namespace is being deleted.
func endingChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.Object.GetDeletionTimestamp().IsZero() },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// followPolicies makes a round when the engine's contents have changed.
func (k *Keeper) followPolicies(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-k.PolicyChanges:
				queue.Add(round())
			}
		}
	}()
	return nil
}
