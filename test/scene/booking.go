package scene

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

// WithBooking returns a scene with a booking API, whose provider declares what the settings say. Edit may change the
// provider before it is created.
func WithBooking(t *testing.T, stage Stage, settings simulator.Settings, edit func(*flightsv1.BookingProvider)) *Scene {
	t.Helper()
	s := New(t, stage)
	s.Simulator = simulator.New(simulator.Options{Settings: settings, Tokens: map[string]string{s.Token(): Account}})
	s.server = &server{handler: s.Simulator.Handler()}
	if err := s.server.listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Simulator.Close()
		s.server.close()
	})
	t.Cleanup(s.leave) // the booking API is still there: what is booked is cancelled
	s.StoreToken(s.Token())
	s.Provider = &flightsv1.BookingProvider{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace},
		Spec: flightsv1.BookingProviderSpec{
			Endpoint: "https://" + s.server.address, AllowPrivate: true, CABundle: pemOf(s.server.http.Certificate()),
			CredentialsSecretRef: flightsv1.SecretKeyReference{Name: SecretName, Key: s.Namespace},
			Timeout:              metav1.Duration{Duration: 5 * time.Second},
			RateLimit:            flightsv1.RateLimit{RequestsPerMinute: 60000, Burst: 1000},
			Capabilities: flightsv1.Capabilities{
				IdempotencyKeyTTL: settings.IdempotencyKeyTTL,
				ReadLag:           metav1.Duration{Duration: settings.ReadLag.Duration + time.Millisecond},
				MaxProcessing:     metav1.Duration{Duration: settings.Processing.Duration + time.Second},
			},
		},
	}
	if edit != nil {
		edit(s.Provider)
	}
	if err := s.Client.Create(s.Context, s.Provider); err != nil {
		t.Fatal(err)
	}
	return s
}

// leave takes the scene's tickets, provider and key away. Faults are off and the token is good, so that a test that
// failed in the middle leaves nothing in somebody's installation either.
func (s *Scene) leave() {
	ctx, cancel := s.after()
	defer cancel()
	s.Simulator.ClearFaults()
	s.Simulator.AddToken(s.Token(), Account)
	tickets := &flightsv1.FlightTicket{}
	if err := s.Client.DeleteAllOf(ctx, tickets, client.InNamespace(s.Namespace)); err != nil {
		s.Errorf("clean up: %v", err)
	}
	if !s.Failed() { // a failed test may have left the controller dead
		s.awaitNone(ctx)
	}
	s.remove(s.Provider)
	s.storeToken(ctx, "")
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// Token is the credential that the booking API accepts from the start.
func (s *Scene) Token() string { return Canary + "-" + s.Namespace }

// StoreToken puts a token under the scene's key of the Secret; an empty one takes the key away.
func (s *Scene) StoreToken(token string) {
	s.Helper()
	s.storeToken(s.Context, token)
}

// Inject switches a fault of the booking API on.
func (s *Scene) Inject(f simulator.Fault) {
	s.Helper()
	if err := s.Simulator.Inject(f); err != nil {
		s.Fatal(err)
	}
}

// AwaitCalls waits until something holds of the calls that the booking API has got, or of its ledger.
func (s *Scene) AwaitCalls(what string, holds func([]simulator.Call) bool) {
	s.Helper()
	for {
		changed := s.Simulator.Changed()
		calls := s.Simulator.Calls()
		if holds(calls) {
			return
		}
		select {
		case <-changed:
		case <-s.Context.Done():
			s.Fatalf("the booking API saw no call that is %s: %+v", what, calls)
		}
	}
}

// Live fails unless exactly so many bookings are live now, and there never were two for one owner.
func (s *Scene) Live(want int) {
	s.Helper()
	if live := s.Simulator.LiveBookings(); len(live) != want {
		s.Errorf("%d bookings are live, want %d: %+v", len(live), want, live)
	}
	if broken := s.Simulator.Violations(); len(broken) > 0 {
		s.Errorf("the ledger was violated: %+v", broken)
	}
}

// Down stops the booking API as a crash would: connections break and no new one is accepted. What it has booked stays.
func (s *Scene) Down() { s.server.close() }

// Up starts it again at the same address.
func (s *Scene) Up() {
	s.Helper()
	if err := s.server.listen(s.server.address); err != nil {
		s.Fatal(err)
	}
}

// server is the network side of a booking API, which can be stopped and started.
type server struct {
	handler http.Handler
	address string
	http    *httptest.Server
}

func (s *server) listen(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for the booking API: %w", err)
	}
	s.address = listener.Addr().String()
	s.http = &httptest.Server{Listener: listener, Config: &http.Server{Handler: s.handler, ErrorLog: log.New(io.Discard, "", 0)}}
	s.http.StartTLS()
	return nil
}

func (s *server) close() {
	if s.http == nil {
		return
	}
	s.http.CloseClientConnections()
	s.http.Close()
	s.http = nil
}

// storeToken merges one key into the Secret, or takes it out. Other scenes have theirs in the same Secret.
func (s *Scene) storeToken(ctx context.Context, token string) {
	s.Helper()
	value := `"` + base64.StdEncoding.EncodeToString([]byte(token)) + `"`
	if token == "" {
		value = "null"
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: SecretName}}
	patch := fmt.Sprintf(`{"data":{%q:%s}}`, s.Namespace, value)
	if err := s.Client.Patch(ctx, secret, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		s.Errorf("store the token: %v", err)
	}
}
