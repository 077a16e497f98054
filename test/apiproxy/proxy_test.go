package apiproxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/flight-operator/flight-operator/test/apiproxy"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// server is what stands behind the proxy of a test.
type server struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newServer(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.seen = append(s.seen, r.Method+" "+r.URL.RequestURI()+" "+string(body))
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) arrived() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func done(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") }

// newProxy starts a proxy that numbers everything that isn't a GET, and a client of it.
func newProxy(t *testing.T, s *server, edit func(*apiproxy.Options)) (*apiproxy.Proxy, *http.Client) {
	t.Helper()
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := apiproxy.Options{Server: target, Transport: &http.Transport{}, Name: func(r *http.Request) string {
		if r.Method == http.MethodGet {
			return ""
		}
		return r.Method
	}}
	if edit != nil {
		edit(&o)
	}
	p := apiproxy.Start(o)
	t.Cleanup(p.Close)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(p.Authority()) {
		t.Fatal("the proxy's authority holds no certificate")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(client.CloseIdleConnections)
	return p, client
}

// send makes one request, and returns what came of it.
func send(t *testing.T, c *http.Client, method, address, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return "cut"
	}
	answer, err := c.Do(r)
	if err != nil {
		return "cut"
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "cut"
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, text)
}

func TestARequestMeetsItsVerdictInEachPhase(t *testing.T) {
	for name, c := range map[string]struct {
		phase   apiproxy.Phase
		verdict apiproxy.Verdict
		heard   string
		arrives bool
	}{
		"one that passes is carried out and answered":          {apiproxy.Before, apiproxy.Pass, "200 done", true},
		"one that is cut before doesn't arrive":                {apiproxy.Before, apiproxy.Cut, "cut", false},
		"one that is refused hears of a conflict":              {apiproxy.Before, apiproxy.Refuse, `409 {"kind":"Status"`, false},
		"one that is cut after the commit was carried out":     {apiproxy.Committed, apiproxy.Cut, "cut", true},
		"nothing can be cut any more once it was answered":     {apiproxy.Answered, apiproxy.Cut, "200 done", true},
		"what is held before goes on when the test lets it go": {apiproxy.Before, apiproxy.Pass, "200 done", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, done)
			p, client := newProxy(t, s, func(o *apiproxy.Options) {
				o.At = func(e apiproxy.Exchange, phase apiproxy.Phase) apiproxy.Verdict {
					if want := (apiproxy.Exchange{Name: "PUT", Ordinal: 1}); e != want {
						t.Errorf("asked about %+v, want %+v", e, want)
					}
					if phase == c.phase {
						return c.verdict
					}
					return apiproxy.Pass
				}
			})
			if heard := send(t, client, http.MethodPut, p.URL()+"/x", "body"); !strings.HasPrefix(heard, c.heard) {
				t.Errorf("the sender heard %q, want %q", heard, c.heard)
			}
			if arrived := s.arrived(); len(arrived) == 1 != c.arrives || c.arrives && arrived[0] != "PUT /x body" {
				t.Errorf("arrived %q, want %t", arrived, c.arrives)
			}
			if err := p.Settle(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestARequestArrivesThoughItsSenderIsGone(t *testing.T) {
	s := newServer(t, done)
	held, release := make(chan struct{}), make(chan struct{})
	p, client := newProxy(t, s, func(o *apiproxy.Options) {
		o.At = func(_ apiproxy.Exchange, phase apiproxy.Phase) apiproxy.Verdict {
			if phase == apiproxy.Before {
				close(held)
				<-release
			}
			return apiproxy.Pass
		}
	})
	client.Timeout = 100 * time.Millisecond
	if heard := send(t, client, http.MethodPost, p.URL()+"/x", "body"); heard != "cut" {
		t.Errorf("the sender heard %q", heard)
	}
	<-held
	close(release)
	if err := p.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if arrived := s.arrived(); !slices.Equal(arrived, []string{"POST /x body"}) {
		t.Errorf("arrived %q", arrived)
	}
}

func TestEachLifeIsNumberedFromOne(t *testing.T) {
	s := newServer(t, done)
	var seen []apiproxy.Exchange
	p, client := newProxy(t, s, func(o *apiproxy.Options) {
		o.At = func(e apiproxy.Exchange, phase apiproxy.Phase) apiproxy.Verdict {
			if phase == apiproxy.Before {
				seen = append(seen, e)
			}
			return apiproxy.Pass
		}
	})
	put := func() { send(t, client, http.MethodPut, p.URL()+"/x", "") }
	put()
	put()
	p.Renumber()
	put() // over a connection of the life before, as what a dead process had written
	client.CloseIdleConnections()
	put()
	want := []apiproxy.Exchange{
		{Name: "PUT", Ordinal: 1}, {Name: "PUT", Ordinal: 2}, {Name: "PUT", Ordinal: 3}, {Life: 1, Name: "PUT", Ordinal: 1},
	}
	if !slices.Equal(seen, want) {
		t.Errorf("numbered %+v, want %+v", seen, want)
	}
}

func TestWatchesAreHeldBackAndThenTold(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		for line := range 3 {
			fmt.Fprintln(w, "event", line)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	})
	p, client := newProxy(t, s, func(o *apiproxy.Options) { o.WatchDelay = 50 * time.Millisecond })
	release := p.HoldWatches()
	if heard := send(t, client, http.MethodGet, p.URL()+"/list", ""); !strings.HasPrefix(heard, "200 event 0") {
		t.Errorf("a list is held back: %q", heard)
	}
	began := time.Now()
	lines := make(chan string, 3)
	go func() {
		defer close(lines)
		told := send(t, client, http.MethodGet, p.URL()+"/list?watch=true", "")
		for line := range strings.Lines(strings.TrimPrefix(told, "200 ")) {
			lines <- strings.TrimSpace(line)
		}
	}()
	select {
	case line := <-lines:
		t.Errorf("heard %q while watches are held", line)
	case <-time.After(100 * time.Millisecond): // nothing tells that nothing comes
	}
	release()
	var heard []string
	for line := range lines {
		heard = append(heard, line)
	}
	if want := []string{"event 0", "event 1", "event 2"}; !slices.Equal(heard, want) || time.Since(began) < 50*time.Millisecond {
		t.Errorf("heard %q after %s", heard, time.Since(began))
	}
}

func TestAControllerSeesItsWindowOfTheClusterOnly(t *testing.T) {
	s := newServer(t, done)
	o, err := apiproxy.ToCluster(&rest.Config{Host: s.URL}, apiproxy.Window{Namespace: "team-a", Provider: "air"})
	if err != nil {
		t.Fatal(err)
	}
	p, client := newProxy(t, s, func(base *apiproxy.Options) { *base = o })
	for _, path := range []string{
		"/apis/flights.com/v1/flighttickets?limit=500", "/apis/flights.com/v1/bookingproviders?watch=true",
		"/apis/flights.com/v1/namespaces/team-b/flighttickets/x", "/api/v1/namespaces",
	} {
		send(t, client, http.MethodGet, p.URL()+path, "")
	}
	want := []string{
		"GET /apis/flights.com/v1/namespaces/team-a/flighttickets?limit=500 ",
		"GET /apis/flights.com/v1/bookingproviders?fieldSelector=metadata.name%3Dair&watch=true ",
		"GET /apis/flights.com/v1/namespaces/team-b/flighttickets/x ", "GET /api/v1/namespaces ",
	}
	if arrived := s.arrived(); !slices.Equal(arrived, want) {
		t.Errorf("arrived %q, want %q", arrived, want)
	}
}

func TestWritesAndCallsHaveNames(t *testing.T) {
	cluster, err := apiproxy.ToCluster(&rest.Config{Host: "https://cluster.invalid"}, apiproxy.Window{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := apiproxy.ToBooking("https://air.invalid", []byte("no certificate")); err == nil {
		t.Error("an authority without a certificate was taken")
	}
	for request, want := range map[string]string{
		"PUT /apis/flights.com/v1/namespaces/a/flighttickets/t/status": "PUT ticket status",
		"PATCH /apis/flights.com/v1/namespaces/a/flighttickets/t":      "PATCH ticket",
		"GET /apis/flights.com/v1/namespaces/a/flighttickets/t":        "",
		"PATCH /apis/flights.com/v1/bookingproviders/p":                "PATCH provider",
		"PUT /apis/flights.com/v1/bookingproviders/p/status":           "PUT provider status",
		"POST /apis/events.k8s.io/v1/namespaces/a/events":              "",
		"PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/l":       "",
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := cluster.Name(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s is called %q, want %q", request, got, want)
		}
	}
}
