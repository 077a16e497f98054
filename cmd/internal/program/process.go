package program

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// shutdownTimeout is how long a manager waits for work in flight: longer than one call to a booking API (130 s at the
// most) would hold up a rollout, so a call that is still open then is left to the next leader, which resolves it.
const shutdownTimeout = 40 * time.Second

// Version describes the build, as in "v0.1.0 (go1.26.8, linux/amd64)". The linker sets the number through the main
// package; without it the version control stamp is used.
func Version(number string) string {
	if number == "" {
		number = "development"
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, s := range info.Settings {
				if s.Key == "vcs.revision" {
					number = s.Value
				}
			}
		}
	}
	return fmt.Sprintf("%s (%s, %s/%s)", number, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Logger returns a logger that writes one JSON object a line, and makes controller-runtime and client-go use it too.
func (o *Options) Logger(w io.Writer) (logr.Logger, error) {
	level, err := zapcore.ParseLevel(o.LogLevel)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("parse --log-level: %w", err)
	}
	encoder := zap.NewProductionEncoderConfig()
	encoder.TimeKey, encoder.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(encoder), zapcore.Lock(zapcore.AddSync(w)), level)
	log := zapr.NewLogger(zap.New(core))
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	return log, nil
}

// RESTConfig loads the kubeconfig, or the pod's ServiceAccount when none is set. KUBECONFIG is not read: a program that
// changes a cluster must be told which. The client doesn't limit itself to the 5 requests a second of client-go's
// default: the API server's priority and fairness is there for that, and knows more.
func (o *Options) RESTConfig() (*rest.Config, error) {
	config, err := o.loadConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

func (o *Options) loadConfig() (*rest.Config, error) {
	if o.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("not in a pod: set --kubeconfig to the cluster's kubeconfig file")
		}
		return config, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("load --kubeconfig: %w", err)
	}
	return config, nil
}

// ManagerOptions returns what both managers share. The caller adds scheme, cache and leader election.
func (o *Options) ManagerOptions(log logr.Logger, certificate *Certificate) ctrl.Options {
	timeout := shutdownTimeout
	return ctrl.Options{
		Logger:                  log,
		HealthProbeBindAddress:  o.HealthProbeBindAddress,
		GracefulShutdownTimeout: &timeout,
		Metrics: metricsserver.Options{
			BindAddress:    o.MetricsBindAddress,
			SecureServing:  true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
			TLSOpts:        []func(*tls.Config){certificate.ServeWith},
		},
	}
}

// AddCertificate makes the manager follow the certificate's files, report its expiry and be unready once it has
// expired.
func AddCertificate(m ctrl.Manager, certificate *Certificate) error {
	if err := m.Add(certificate); err != nil {
		return fmt.Errorf("add certificate to manager: %w", err)
	}
	if err := m.AddReadyzCheck("certificate", certificate.Check); err != nil {
		return fmt.Errorf("add certificate check: %w", err)
	}
	if err := metrics.Registry.Register(certificate.Collector()); err != nil {
		var twice prometheus.AlreadyRegisteredError
		if !errors.As(err, &twice) {
			return fmt.Errorf("register certificate metric: %w", err)
		}
	}
	return nil
}

// Context returns a context that ends with SIGTERM or SIGINT; a second signal ends the process at once. It may be
// called once in a process.
func Context() context.Context { return ctrl.SetupSignalHandler() }
