package bookingprovider

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// usesIndex finds the tickets whose booking or open operation is with a provider.
const usesIndex = "usesProvider"

// workers is how many providers are looked at once: one that doesn't answer must not hold up the others.
const workers = 4

// SetupWithManager registers the controller, its index and the watch of the Secrets. It works while this process leads.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &flightsv1.FlightTicket{}, usesIndex, usedProviders)
	if err != nil {
		return fmt.Errorf("index tickets by provider: %w", err)
	}
	if err := mgr.Add(r.Secrets); err != nil {
		return fmt.Errorf("add the watch of Secrets: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("bookingprovider").
		For(&flightsv1.BookingProvider{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(source.Func(r.follow)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			EnableWarmup:            ptr.To(true),
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				firstRetry, slowestRetry),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("register the provider controller: %w", err)
	}
	return nil
}

func usedProviders(o client.Object) []string {
	t, ok := o.(*flightsv1.FlightTicket)
	if !ok {
		return nil
	}
	var names []string
	if t.Status.Booking != nil {
		names = append(names, t.Status.Booking.Provider.Name)
	}
	if t.Status.Operation != nil {
		names = append(names, t.Status.Operation.Provider.Name)
	}
	return names
}

// follow looks at providers again when one is doubted or the Secret that it names has changed.
func (r *Reconciler) follow(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	add := func(name string) {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case name := <-r.Registry.doubts:
				add(name)
			case secret := <-r.Secrets.changes:
				r.namedBy(ctx, secret, add)
			}
		}
	}()
	return nil
}

func (r *Reconciler) namedBy(ctx context.Context, secret string, add func(string)) {
	var all flightsv1.BookingProviderList
	if err := r.Client.List(ctx, &all); err != nil {
		log.FromContext(ctx).Error(err, "list the providers of a changed Secret; they are looked at later")
		return
	}
	for _, name := range r.concerned(ctx, secret, all.Items) {
		add(name)
	}
}

// concerned names the providers that a changed Secret may concern. Many share one Secret: a provider that has answered to
// the token which its key still holds is not called again for somebody else's key.
func (r *Reconciler) concerned(ctx context.Context, name string, all []flightsv1.BookingProvider) []string {
	secret, err := r.Secrets.read(ctx, name)
	var names []string
	for i := range all {
		ref := all[i].Spec.CredentialsSecretRef
		if ref.Name != name {
			continue
		}
		// What is wrong with a Secret that can't be read is told where the provider is looked at.
		if err != nil || !r.Registry.answeredTo(all[i].Name, strings.TrimSpace(string(secret.Data[ref.Key]))) {
			names = append(names, all[i].Name)
		}
	}
	return names
}

// Metrics tell how long calls wait for the limiter.
type Metrics struct{ waits prometheus.Histogram }

// NewMetrics registers the metrics of providers.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{waits: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "flight_operator_limiter_wait_seconds",
		Help:    "How long calls to booking APIs were told to wait by limiter, breaker or a pause.",
		Buckets: []float64{0.01, 0.1, 1, 5, 15, 60, 300},
	})}
	if err := registry.Register(m.waits); err != nil {
		return nil, fmt.Errorf("register provider metrics: %w", err)
	}
	return m, nil
}

func (m *Metrics) waited(d time.Duration) { m.waits.Observe(d.Seconds()) }
