package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/internal/program"
	"github.com/flight-operator/flight-operator/controllers/bookingprovider"
	"github.com/flight-operator/flight-operator/controllers/flightpolicy"
	"github.com/flight-operator/flight-operator/controllers/flightticket"
	"github.com/flight-operator/flight-operator/controllers/quotabucket"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/policy/loader"
	"github.com/flight-operator/flight-operator/internal/replica"
)

// leaseName is the Lease that the processes elect a leader with.
const leaseName = "flight-controller"

// run works on tickets until the context ends, and then until the calls in flight are answered and stored.
func run(ctx context.Context, o options, log logr.Logger) error {
	certificate, err := program.OpenCertificate(o.TLSDir)
	if err != nil {
		return err
	}
	mgr, err := newManager(o, log, certificate)
	if err != nil {
		return err
	}
	if err := program.AddCertificate(mgr, certificate); err != nil {
		return err
	}
	gate, err := addControllers(ctx, mgr, o, log)
	if err != nil {
		return err
	}
	defer gate.Close()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the controllers: %w", err)
	}
	return nil
}

func newManager(o options, log logr.Logger, certificate *program.Certificate) (ctrl.Manager, error) {
	config, err := o.RESTConfig()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), flightsv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	options := o.ManagerOptions(log, certificate)
	options.Scheme = scheme
	options.Cache = cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			// The reports of the webhook's replicas, and no other Lease.
			&coordinationv1.Lease{}: {
				Namespaces: map[string]cache.Config{o.Namespace: {}},
				Label:      labels.SelectorFromSet(labels.Set{replica.Label: replica.LabelValue}),
			},
		},
	}
	// A Secret that is read by mistake is read live and refused by RBAC; it must never start a watch on all of them.
	options.Client = client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
	// Names of controllers keep metrics apart, and this manager has one of each. Tests run several managers.
	options.Controller.SkipNameValidation = ptr.To(true)
	if err := elect(&options, o, config); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	return mgr, nil
}

// elect sets up the election. The lock tells no events, so that no right on the old events API is needed.
func elect(options *ctrl.Options, o options, config *rest.Config) error {
	options.LeaderElection = o.leaderElect
	if !o.leaderElect {
		return nil
	}
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of leases: %w", err)
	}
	identity := o.identity + "_" + rand.Text()
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, o.Namespace, leaseName, nil, leases,
		resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return fmt.Errorf("make the lock of the election: %w", err)
	}
	options.LeaderElectionResourceLockInterface = lock
	// The lease is given back once everything has stopped: the next leader need not wait for it to run out.
	options.LeaderElectionReleaseOnCancel = true
	return nil
}

// addControllers registers all controllers. The gate is to be closed once the manager has stopped.
func addControllers(ctx context.Context, mgr ctrl.Manager, o options, log logr.Logger) (*quotabucket.Gate, error) {
	// The rules that the webhook acts on too: a policy that only one of the two can read would be in force by halves.
	engine := policy.NewEngine(policy.RuleQuota)
	policies := loader.New(mgr.GetClient(), engine)
	if err := policies.SetupWithManager(mgr); err != nil {
		return nil, err
	}
	// Policies are told of a ticket's namespace. A standby that fills this cache at the first question is not warm.
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.Namespace{}); err != nil {
		return nil, fmt.Errorf("watch namespaces: %w", err)
	}
	keeper, gate, err := addQuotas(ctx, mgr, o, engine, policies)
	if err != nil {
		return nil, err
	}
	registry, err := addProviders(ctx, mgr, o)
	if err != nil {
		return nil, err
	}
	if err := addTickets(ctx, mgr, o, log, registry, engine, policies, gate); err != nil {
		return nil, err
	}
	if err := flightpolicy.New(mgr.GetClient(), mgr.GetAPIReader(), o.Namespace, clock.RealClock{}, keeper).SetupWithManager(mgr); err != nil {
		return nil, err
	}
	return gate, errors.Join(
		mgr.AddHealthzCheck("process", healthz.Ping),
		mgr.AddReadyzCheck("policies", policies.ReadyCheck), // they are listed once the caches are filled
	)
}

// addQuotas registers the controller that counts. Its gate works on tickets' behalf in this process too.
func addQuotas(ctx context.Context, mgr ctrl.Manager, o options, engine *policy.Engine, policies *loader.Loader) (*quotabucket.Keeper, *quotabucket.Gate, error) {
	tickets, err := quotabucket.TicketsOf(ctx, mgr.GetCache())
	if err != nil {
		return nil, nil, err
	}
	counters, err := quotabucket.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, nil, err
	}
	keeper, gate, err := quotabucket.New(quotabucket.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Tickets: tickets,
		Policies: engine, PoliciesLoaded: policies.Synced, PolicyChanges: policies.Changes(),
		OperatorNamespace: o.Namespace, RequestLife: o.requestLife, Clock: time.Now, Metrics: counters,
	})
	if err != nil {
		return nil, nil, err
	}
	return keeper, gate, keeper.SetupWithManager(mgr)
}

func addProviders(ctx context.Context, mgr ctrl.Manager, o options) (*bookingprovider.Registry, error) {
	counters, err := bookingprovider.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	registry := bookingprovider.NewRegistry()
	providers := bookingprovider.New(bookingprovider.Options{
		Client: mgr.GetClient(), Events: mgr.GetEventRecorder("flight-controller"), Registry: registry,
		Secrets:   bookingprovider.NewSecrets(mgr.GetConfig(), mgr.GetAPIReader(), o.Namespace, o.credentialsSecret),
		Namespace: o.Namespace, Poll: o.poll, UserAgent: "flight-operator/" + orDevelopment(version), Clock: time.Now,
		Metrics: counters,
	})
	return registry, providers.SetupWithManager(ctx, mgr)
}

func addTickets(
	ctx context.Context, mgr ctrl.Manager, o options, log logr.Logger,
	registry *bookingprovider.Registry, engine *policy.Engine, policies *loader.Loader, gate *quotabucket.Gate,
) error {
	installation, err := installationOf(ctx, mgr, o)
	if err != nil {
		return err
	}
	log.Info("bookings carry the name of this installation", "installation", installation)
	counters, err := flightticket.NewMetrics(metrics.Registry, mgr.GetClient())
	if err != nil {
		return err
	}
	tickets, err := flightticket.New(flightticket.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("flight-controller"),
		Providers: registry, Policies: engine, PoliciesLoaded: policies.Synced, PolicyChanges: policies.Changes(),
		Installation: installation, Recheck: o.poll, Workers: o.workers, Clock: time.Now, NewID: rand.Text,
		Metrics: counters, Quotas: gate,
	})
	if err != nil {
		return err
	}
	return tickets.SetupWithManager(mgr)
}

// installationOf returns the name of this installation: what the admin set, else the UID of the namespace kube-system,
// which is as old as the cluster.
func installationOf(ctx context.Context, mgr ctrl.Manager, o options) (string, error) {
	if o.installation != "" {
		return o.installation, nil
	}
	var namespace corev1.Namespace
	if err := mgr.GetAPIReader().Get(ctx, client.ObjectKey{Name: "kube-system"}, &namespace); err != nil {
		return "", fmt.Errorf("read namespace kube-system, whose UID names this installation (or set --installation): %w", err)
	}
	return string(namespace.UID), nil
}

func orDevelopment(number string) string {
	if number == "" {
		return "development"
	}
	return number
}
