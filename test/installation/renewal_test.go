package installation_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/test/installation"
)

// A renewed certificate reaches the webhook while it serves: nobody restarts it, and nobody's ticket is refused.
func TestARenewedCertificateIsServedWithoutARestart(t *testing.T) {
	log.SetLogger(logr.Discard()) // else controller-runtime prints a stack about it
	before := goleak.IgnoreCurrent()
	i, err := installation.Start(t.Context(), installation.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Stop(); err != nil {
			t.Error(err)
		}
		if err := goleak.Find(append(idleConnections(), before)...); err != nil {
			t.Errorf("the installation leaves something behind: %v", err)
		}
	})
	renew(t, i)
}

func renew(t *testing.T, i *installation.Installation) {
	t.Helper()
	before := servedSerial(t, i)
	admissions := keepAdmitting(t, i)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: installation.Namespace, Name: "flight-webhook-tls"}}
	if err := i.Client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	err := i.WaitFor(t.Context(), "another certificate to be served", func(context.Context) (bool, error) {
		return servedSerial(t, i) != before, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tried, err := admissions()
	if err != nil {
		t.Errorf("a ticket was refused during the renewal: %v", err)
	}
	if tried == 0 {
		t.Error("no ticket was tried during the renewal")
	}
}

// idleConnections are those that HTTP clients keep for later.
func idleConnections() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("net/http/internal/http2.(*clientConnReadLoop).run"),
	}
}

// keepAdmitting tries tickets without storing them until the returned function is called, which tries one more and says
// how many were tried and what was refused.
func keepAdmitting(t *testing.T, i *installation.Installation) (stop func() (int, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var errs []error
	tried := 0
	try := func() {
		ticket := &flightsv1.FlightTicket{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "during-renewal-"},
			Spec:       flightsv1.FlightTicketSpec{From: "Mumbai", To: "London", Number: 1},
		}
		tried++
		if err := i.Client.Create(t.Context(), ticket, client.DryRunAll); err != nil {
			errs = append(errs, err)
		}
	}
	wait.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				try()
			}
		}
	})
	return func() (int, error) {
		cancel()
		wait.Wait()
		try()
		return tried, errors.Join(errs...)
	}
}

// servedSerial connects to the webhook as the API server does and returns the serial number of its certificate.
func servedSerial(t *testing.T, i *installation.Installation) string {
	t.Helper()
	var authority corev1.Secret
	if err := i.Client.Get(t.Context(), client.ObjectKey{Namespace: installation.Namespace, Name: "flight-operator-ca"}, &authority); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority.Data["tls.crt"]) {
		t.Fatal("the authority is no PEM")
	}
	connection, err := tls.Dial("tcp", i.Webhook.Address, &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0].SerialNumber.String()
}
