package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/internal/program"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/policy/loader"
	"github.com/flight-operator/flight-operator/internal/quota/store"
	"github.com/flight-operator/flight-operator/internal/replica"
	"github.com/flight-operator/flight-operator/webhooks"
)

// run serves reviews until the context ends, and for the drain afterwards.
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
	counters, err := webhooks.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	ledger, err := store.New(store.Options{
		Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(), OperatorNamespace: o.Namespace, Metrics: counters,
	})
	if err != nil {
		return err
	}
	if err := addParts(ctx, mgr, o, parts{counters, ledger}); err != nil {
		return err
	}
	defer log.Info("stopped")
	defer ledger.Close() // once the manager has let the last review end
	managed, stop := drained(ctx, o.drain, clock.RealClock{})
	defer stop()
	if err := mgr.Start(managed); err != nil {
		return fmt.Errorf("run the webhook: %w", err)
	}
	return nil
}

// parts are what the reviews need and the program closes or shows itself.
type parts struct {
	counters *webhooks.Metrics
	ledger   *store.Store
}

// addParts puts together what the program is made of: an engine, who feeds it, who tells of it, who asks it.
func addParts(ctx context.Context, mgr ctrl.Manager, o options, with parts) error {
	engine := policy.NewEngine(policy.RuleQuota)
	policies := loader.New(mgr.GetClient(), engine)
	if err := policies.SetupWithManager(mgr); err != nil {
		return err
	}
	reports := replica.NewPublisher(replica.PublisherOptions{
		Client: mgr.GetClient(), Namespace: o.Namespace, Replica: o.replica, PodUID: o.podUID,
		Report:   func() replica.Report { return reportOf(engine.Loaded()) },
		Synced:   policies.Synced,
		CaughtUp: func(ctx context.Context) error { return policies.CaughtUp(ctx, mgr.GetAPIReader()) },
		Clock:    clock.RealClock{},
		Changes:  policies.Changes(),
	})
	if err := mgr.Add(reports); err != nil {
		return fmt.Errorf("add the publisher of this replica's report: %w", err)
	}
	err := serveReviews(mgr, webhooks.Options{
		Policies: engine, Validate: engine.Validate, Superseded: policies.Superseded, Quotas: with.ledger, Metrics: with.counters,
		Synced: func() bool { return policies.Synced() && reports.Serving() },
	})
	if err != nil {
		return err
	}
	return addProbes(ctx, mgr, policies, reports)
}

func newManager(o options, log logr.Logger, certificate *program.Certificate) (ctrl.Manager, error) {
	config, err := o.RESTConfig()
	if err != nil {
		return nil, err
	}
	host, port, err := o.listen()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), flightsv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	options := o.ManagerOptions(log, certificate)
	options.Scheme = scheme
	options.Cache = cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	// Names of controllers keep metrics apart, and this manager has one. A process may run more than one of it in tests.
	options.Controller.SkipNameValidation = ptr.To(true)
	// The Lease of this replica is read live: a cache would need to list and watch Leases.
	options.Client = client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&coordinationv1.Lease{}}}}
	options.WebhookServer = webhook.NewServer(webhook.Options{
		Host: host, Port: port, TLSOpts: []func(*tls.Config){certificate.ServeWith},
	})
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	return mgr, nil
}

// serveReviews completes the options of the webhooks and registers them. The caches that they read are begun here, so that
// the manager fills them before the process is ready and not during the first review.
func serveReviews(mgr ctrl.Manager, o webhooks.Options) error {
	for _, kind := range webhooks.CachedKinds() {
		if _, err := mgr.GetCache().GetInformer(context.Background(), kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("cache %T: %w", kind, err)
		}
	}
	users, err := newRights(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	o.Rights, o.Cached, o.Live = users, mgr.GetClient(), mgr.GetAPIReader()
	o.Clock, o.Log = clock.RealClock{}, mgr.GetLogger()
	webhooks.Register(mgr.GetWebhookServer(), o)
	return nil
}

// addProbes makes the process ready once it decides on all policies, is known to do so, and listens; and unready as
// soon as it is asked to stop.
func addProbes(ctx context.Context, mgr ctrl.Manager, policies *loader.Loader, reports *replica.Publisher) error {
	stopping := func(*http.Request) error {
		if ctx.Err() != nil {
			return errors.New("stopping")
		}
		return nil
	}
	return errors.Join(
		mgr.AddHealthzCheck("process", healthz.Ping),
		mgr.AddReadyzCheck("stopping", stopping),
		mgr.AddReadyzCheck("policies", policies.ReadyCheck),
		mgr.AddReadyzCheck("report", reports.ReadyCheck),
		mgr.AddReadyzCheck("server", mgr.GetWebhookServer().StartedChecker()),
	)
}

// drained returns a context that ends a while after ctx: the API server is told by and by that this process is going,
// and sends reviews until it knows. Failing closed, each of them would refuse somebody's ticket.
func drained(ctx context.Context, drain time.Duration, timers clock.WithDelayedExecution) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { timers.AfterFunc(drain, cancel) })
	return later, func() { stop(); cancel() }
}

// reportOf turns what the engine holds into the report of this replica.
func reportOf(loaded map[string]policy.Loaded) replica.Report {
	report := make(replica.Report, len(loaded))
	for _, l := range loaded {
		p := replica.Policy{Generation: l.Generation, Digest: l.Digest, FailedGeneration: l.FailedGeneration}
		if l.Err != nil {
			p.Error = l.Err.Error()
		}
		report[replica.KeyOf(l.UID)] = p
	}
	return report
}
