package program

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// The names that a Secret of type kubernetes.io/tls gives its files.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
)

// Certificate is the serving certificate of a process. It follows the files on disk without a restart. Add it to the
// manager as a Runnable.
type Certificate struct {
	*certwatcher.CertWatcher
	notAfter atomic.Int64
}

// OpenCertificate reads the certificate in a folder and fails when there is none.
func OpenCertificate(dir string) (*Certificate, error) {
	watcher, err := certwatcher.New(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("read serving certificate: %w", err)
	}
	c := &Certificate{CertWatcher: watcher}
	watcher.RegisterCallback(func(loaded tls.Certificate) { c.notAfter.Store(expiry(loaded).Unix()) })
	return c, nil
}

// NeedLeaderElection is false: every replica serves.
func (c *Certificate) NeedLeaderElection() bool { return false }

// NotAfter is when the certificate that is served now expires.
func (c *Certificate) NotAfter() time.Time { return time.Unix(c.notAfter.Load(), 0) }

// ServeWith makes a TLS configuration present this certificate, with TLS 1.3 as the only version: the callers are the
// API server and a metrics scraper, both of which speak it.
func (c *Certificate) ServeWith(config *tls.Config) {
	config.MinVersion = tls.VersionTLS13
	config.GetCertificate = c.GetCertificate
}

// Check is a readiness check that fails once the served certificate has expired.
func (c *Certificate) Check(*http.Request) error {
	if time.Now().After(c.NotAfter()) {
		return errors.New("the serving certificate has expired; look at the Certificate of cert-manager")
	}
	return nil
}

var _ healthz.Checker = (*Certificate)(nil).Check

// Collector reports the expiry as flight_operator_certificate_expiry_timestamp_seconds (Unix time).
func (c *Certificate) Collector() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "flight_operator_certificate_expiry_timestamp_seconds",
		Help: "Unix time at which the serving certificate expires.",
	}, func() float64 { return float64(c.notAfter.Load()) })
}

func expiry(loaded tls.Certificate) time.Time {
	leaf := loaded.Leaf
	if leaf == nil && len(loaded.Certificate) > 0 {
		parsed, err := x509.ParseCertificate(loaded.Certificate[0])
		if err != nil {
			return time.Time{}
		}
		leaf = parsed
	}
	if leaf == nil {
		return time.Time{}
	}
	return leaf.NotAfter
}
