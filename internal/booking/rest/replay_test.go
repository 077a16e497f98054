package rest

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// breaksReused is a server that answers the first request of a connection and offers to keep it, and reads the second
// one, as a server does that commits, and then closes without an answer.
func breaksReused(t *testing.T) (server *httptest.Server, arrived *atomic.Int32) {
	t.Helper()
	arrived = new(atomic.Int32)
	server = httptest.NewUnstartedServer(nil)
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, served{}, new(atomic.Int32))
	}
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		onThisConnection, _ := r.Context().Value(served{}).(*atomic.Int32)
		if onThisConnection.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"title":"T","status":422,"code":"sold_out"}`))
	})
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, arrived
}

// served is the context key of how many requests a connection brought.
type served struct{}

func TestScenario21TheTransportThatRepeatsByItself(t *testing.T) {
	writes := map[string]func(*Provider) booking.Outcome{
		"book": func(p *Provider) booking.Outcome {
			return p.Book(t.Context(), booking.BookRequest{
				Order: flightsv1.Order{Origin: "BOM", Destination: "LON", Seats: 1}, IdempotencyKey: "key-1",
			})
		},
		"change": func(p *Provider) booking.Outcome {
			return p.Change(t.Context(), booking.ChangeRequest{BookingID: "bk-1", IfVersion: `"1"`, IdempotencyKey: "key-1"})
		},
		"cancel": func(p *Provider) booking.Outcome {
			return p.Cancel(t.Context(), booking.CancelRequest{BookingID: "bk-1", IdempotencyKey: "key-1"})
		},
	}
	for name, write := range writes {
		t.Run(name+" as it is made", func(t *testing.T) {
			server, arrived := breaksReused(t)
			p := providerFor(t, server)
			for n := int32(1); n <= 3; n++ {
				write(p)
				if got := arrived.Load(); got != n {
					t.Fatalf("requests that arrived = %d after %d calls", got, n)
				}
			}
		})
		t.Run(name+" even on a reused connection", func(t *testing.T) {
			server, arrived := breaksReused(t)
			p := providerFor(t, server)
			reuse(t, p)
			write(p)
			outcome := write(p)
			if got := arrived.Load(); got != 2 {
				t.Errorf("requests that arrived = %d after 2 calls", got)
			}
			if outcome.Kind != booking.Unknown {
				t.Errorf("outcome = %+v, want Unknown: it may have been done", outcome)
			}
		})
		t.Run(name+" would arrive twice if requests could be replayed", func(t *testing.T) {
			server, arrived := breaksReused(t)
			p := providerFor(t, server)
			reuse(t, p)
			p.api.RequestEditors = p.api.RequestEditors[:1]
			write(p)
			write(p)
			if got := arrived.Load(); got != 3 {
				t.Errorf("requests that arrived = %d after 2 calls: the danger that neverReplay guards against is gone or the test is blind", got)
			}
		})
	}
}

func providerFor(t *testing.T, server *httptest.Server) *Provider {
	t.Helper()
	p, err := New(Options{
		Endpoint: server.URL, Token: "token", AllowPrivate: true, SendKeys: true,
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	})
	if err != nil {
		t.Fatalf("make provider: %v", err)
	}
	return p
}

// reuse makes a provider keep its connections, which it doesn't by itself.
func reuse(t *testing.T, p *Provider) {
	t.Helper()
	client, ok := p.api.Client.(*http.Client)
	if !ok {
		t.Fatal("the client is not an http.Client")
	}
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		t.Fatal("the transport is not an http.Transport")
	}
	transport.DisableKeepAlives = false
	t.Cleanup(transport.CloseIdleConnections)
}

func TestNoProxyFromTheEnvironmentIsUsedAndTLSIsRecent(t *testing.T) {
	transport := newTransport(nil, false)
	if transport.Proxy != nil || transport.TLSClientConfig.MinVersion < tls.VersionTLS12 || transport.TLSClientConfig.InsecureSkipVerify {
		t.Errorf("transport = proxy set: %v, TLS from %x, verification off: %v",
			transport.Proxy != nil, transport.TLSClientConfig.MinVersion, transport.TLSClientConfig.InsecureSkipVerify)
	}
}

func TestARequestHasTheHeadersOfTheContract(t *testing.T) {
	var seen []*http.Request
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Clone(context.Background()))
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	p := providerFor(t, server)
	change := booking.ChangeRequest{BookingID: "bk-1", IfVersion: `"7"`, IdempotencyKey: "key, with = signs"}
	p.Change(t.Context(), change)
	p.sendKeys = false
	p.Change(t.Context(), change)
	if len(seen) != 2 {
		t.Fatalf("requests = %d, want 2", len(seen))
	}
	h := seen[0].Header
	if h.Get("If-Match") != `"7"` || h.Get("Idempotency-Key") != "key, with = signs" || h.Get("Authorization") != "Bearer token" {
		t.Errorf("headers = %v", h)
	}
	if _, sent := seen[1].Header["Idempotency-Key"]; sent {
		t.Error("a key was sent to a provider that doesn't declare to take keys")
	}
	if seen[0].ContentLength <= 0 {
		t.Errorf("content length = %s: a body without a length is chunked, which some servers refuse", strconv.FormatInt(seen[0].ContentLength, 10))
	}
}
