package flightticket

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

const (
	// firstBackoff and slowestBackoff bound the pauses after an error of the API server.
	firstBackoff   = time.Second
	slowestBackoff = 5 * time.Minute
	// perSecond and burst bound how many retries all tickets together may cause. New events are not bounded by it.
	perSecond = 50
	burst     = 500
)

// SetupWithManager registers the controller. It works on tickets only while this process leads; its caches are warm
// before.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("flightticket").
		For(&flightsv1.FlightTicket{}, builder.WithPredicates(ticketChanged())).
		Watches(&flightsv1.BookingProvider{}, handler.EnqueueRequestsFromMapFunc(r.waitingFor),
			builder.WithPredicates(providerChanged())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.Workers,
			EnableWarmup:            ptr.To(true),
			RateLimiter: workqueue.NewTypedMaxOfRateLimiter(
				workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, slowestBackoff),
				&workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(perSecond, burst)},
			),
		})
	b = b.WatchesRawSource(source.Func(r.followQuotas))
	if r.PolicyChanges != nil {
		b = b.WatchesRawSource(source.Func(r.followPolicies))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("register the ticket controller: %w", err)
	}
	return nil
}

// ticketChanged leaves out updates of the status, which this controller makes itself, and what is other people's: labels,
// their annotations, their finalizers.
func ticketChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld, e.ObjectNew
		return was.GetGeneration() != is.GetGeneration() ||
			was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero() ||
			hasFinalizer(was) != hasFinalizer(is) || annotationsOf(was) != annotationsOf(is)
	}}
}

func hasFinalizer(o client.Object) bool {
	return controllerutil.ContainsFinalizer(o, flightsv1.BookingFinalizer)
}

// providerChanged lets through what may end a ticket's wait: another spec, credential, account or readiness.
func providerChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, okWas := e.ObjectOld.(*flightsv1.BookingProvider)
		is, okIs := e.ObjectNew.(*flightsv1.BookingProvider)
		if !okWas || !okIs {
			return true
		}
		return was.Generation != is.Generation || was.Status.ObservedGeneration != is.Status.ObservedGeneration ||
			was.Status.Account != is.Status.Account ||
			!was.Status.CredentialsRotatedAt.Equal(is.Status.CredentialsRotatedAt) ||
			(broken(was) == nil) != (broken(is) == nil)
	}}
}

// waitingFor lists the tickets that may wait for a provider: those that are not as their spec asks, or are going.
func (r *Reconciler) waitingFor(ctx context.Context, provider client.Object) []reconcile.Request {
	return r.waiting(ctx, func(t *flightsv1.FlightTicket) bool {
		switch {
		case t.Status.Operation != nil:
			return t.Status.Operation.Provider.Name == provider.GetName()
		case t.Status.Booking != nil:
			return t.Status.Booking.Provider.Name == provider.GetName()
		case t.Spec.ProviderRef != nil:
			return t.Spec.ProviderRef.Name == provider.GetName()
		default:
			return true // the provider may just have become the default one, or ceased to be it
		}
	})
}

func (r *Reconciler) waiting(ctx context.Context, concerned func(*flightsv1.FlightTicket) bool) []reconcile.Request {
	var all flightsv1.FlightTicketList
	// Read only: a copy of every ticket would cost more than all else here.
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list the tickets that wait; they are looked at later")
		return nil
	}
	var requests []reconcile.Request
	for i := range all.Items {
		t := &all.Items[i]
		settled := meta.IsStatusConditionTrue(t.Status.Conditions, flightsv1.ConditionReady) &&
			t.Status.ObservedGeneration == t.Generation && t.DeletionTimestamp.IsZero()
		if !settled && concerned(t) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(t)})
		}
	}
	return requests
}

// followPolicies looks again at the tickets that policies refused or could not decide, whenever the policies change.
func (r *Reconciler) followPolicies(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.PolicyChanges:
			}
			r.policies.Add(1)
			for _, request := range r.waiting(ctx, refusedByPolicy) {
				queue.AddAfter(request, 100*time.Millisecond)
			}
		}
	}()
	return nil
}

// refusedByPolicy says whether a ticket waits for what policies say. Limits and keys of quotas are theirs too.
func refusedByPolicy(t *flightsv1.FlightTicket) bool {
	ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
	if ready == nil {
		return true
	}
	switch ready.Reason {
	case flightsv1.ReasonPolicyRefused, flightsv1.ReasonPolicyError,
		flightsv1.ReasonQuotaExceeded, flightsv1.ReasonQuotaCounting, flightsv1.ReasonQuotaError:
		return true
	default:
		return false
	}
}
