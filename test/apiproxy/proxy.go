package apiproxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"
)

const (
	// maxBody caps a numbered request, which is held in memory so that it can arrive although its sender is gone.
	maxBody = 16 << 20
	// forwardTime bounds a numbered request whose sender is gone.
	forwardTime = time.Minute
)

// Phase is a moment in the life of a request.
type Phase int

const (
	// Before: the request has left its sender, and the server knows nothing of it.
	Before Phase = iota
	// Committed: the server has carried it out, and the sender has heard nothing.
	Committed
	// Answered: the answer is delivered.
	Answered
)

// Verdict is what becomes of a request.
type Verdict int

const (
	// Pass lets it go on, also if its sender is gone by now.
	Pass Verdict = iota
	// Cut breaks the connection: the request doesn't arrive, or its answer doesn't. After Answered it means nothing.
	Cut
	// Refuse answers a conflict of the API server instead of passing the request on. It is for Before only.
	Refuse
)

// Exchange is one numbered request.
type Exchange struct {
	// Life is how often Renumber had been called, from zero, when its connection was opened.
	Life int
	// Name is the kind of request, as in "PUT ticket status" or "Book".
	Name string
	// Ordinal counts the requests of that name in this life, from one.
	Ordinal int
}

// Options describe a proxy. Server, Transport and Name are required.
type Options struct {
	// Server is where requests go, by way of Transport.
	Server    *url.URL
	Transport http.RoundTripper
	// Name says what a request is called. One without a name is passed on and not numbered.
	Name func(*http.Request) string
	// Rewrite changes a request without a name before it is passed on; nil changes none.
	Rewrite func(*url.URL)
	// At is asked at each moment of a numbered request, and may block: nothing of it goes on meanwhile. It is called
	// concurrently. Nil lets all pass.
	At func(Exchange, Phase) Verdict
	// WatchDelay is how much later the controller hears what it watches.
	WatchDelay time.Duration
}

// Proxy is a running proxy. It is safe for concurrent use.
type Proxy struct {
	options Options
	server  *httptest.Server
	stream  *httputil.ReverseProxy
	done    chan struct{}

	mu     sync.Mutex
	life   int
	counts map[Exchange]int // by life and name
	busy   int              // numbered requests that are on their way
	idle   chan struct{}    // closed while busy is zero
	held   chan struct{}    // closed while watches flow
}

// lifeKey is where a connection's context holds the life in which it was opened. A request that a dead process had
// written before its end may be read later than its successor's first one.
type lifeKey struct{}

// Start starts a proxy on a port of its own. The caller must Close it.
func Start(o Options) *Proxy {
	flowing := make(chan struct{})
	close(flowing)
	p := &Proxy{options: o, done: make(chan struct{}), counts: map[Exchange]int{}, idle: flowing, held: flowing}
	p.stream = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			if o.Rewrite != nil {
				o.Rewrite(r.Out.URL)
			}
			p.direct(r.Out)
		},
		Transport: o.Transport, FlushInterval: -1, ModifyResponse: p.slow,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { cut() },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	p.server = httptest.NewUnstartedServer(p)
	// HTTP/1.1 by intent: one connection carries one request at a time, so that to cut it harms no other.
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		p.mu.Lock()
		defer p.mu.Unlock()
		return context.WithValue(ctx, lifeKey{}, p.life)
	}
	p.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	p.server.StartTLS()
	return p
}

// URL is where the proxy listens, Authority the PEM that its certificate is signed by.
func (p *Proxy) URL() string { return p.server.URL }

// Authority is the PEM of the proxy's certificate.
func (p *Proxy) Authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Renumber begins a new life: what comes over connections that are opened from now on is numbered from one.
func (p *Proxy) Renumber() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life++
}

// Settle waits until no numbered request is on its way.
func (p *Proxy) Settle(ctx context.Context) error {
	p.mu.Lock()
	idle := p.idle
	p.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the requests that are on their way: %w", ctx.Err())
	}
}

// Close breaks all connections and ends what is on its way. At must let go of what it holds.
func (p *Proxy) Close() {
	close(p.done)
	p.server.CloseClientConnections()
	p.server.Close()
	if t, ok := p.options.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := p.options.Name(r)
	if name == "" {
		p.stream.ServeHTTP(w, r)
		return
	}
	life, _ := r.Context().Value(lifeKey{}).(int)
	e := p.begin(life, name)
	defer p.end()
	p.exchange(w, r, e)
}

func (p *Proxy) begin(life int, name string) Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := Exchange{Life: life, Name: name}
	p.counts[e]++
	e.Ordinal = p.counts[e]
	if p.busy == 0 {
		p.idle = make(chan struct{})
	}
	p.busy++
	return e
}

func (p *Proxy) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy--; p.busy == 0 {
		close(p.idle)
	}
}

// exchange takes one numbered request through its phases.
func (p *Proxy) exchange(w http.ResponseWriter, r *http.Request, e Exchange) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		cut()
	}
	switch p.at(e, Before) {
	case Cut:
		cut()
	case Refuse:
		conflict(w)
		return
	case Pass:
	}
	got, err := p.forward(r, body)
	if err != nil || p.at(e, Committed) == Cut {
		cut()
	}
	for name, values := range got.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(got.body))) // so that the answer is whole before this function ends
	w.WriteHeader(got.status)
	_, _ = w.Write(got.body) // the sender may be gone
	_ = http.NewResponseController(w).Flush()
	p.at(e, Answered)
}

func (p *Proxy) at(e Exchange, phase Phase) Verdict {
	if p.options.At == nil {
		return Pass
	}
	return p.options.At(e, phase)
}

// answer is what a server said, all of it.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// forward carries a request out, whether its sender still waits or not, and reads the whole answer.
func (p *Proxy) forward(r *http.Request, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), forwardTime)
	defer cancel()
	out := r.Clone(ctx)
	out.RequestURI = ""
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.Header.Del("Connection")
	p.direct(out)
	response, err := p.options.Transport.RoundTrip(out)
	if err != nil {
		return answer{}, fmt.Errorf("pass a request on: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("read an answer: %w", err)
	}
	return answer{status: response.StatusCode, header: response.Header, body: text}, nil
}

func (p *Proxy) direct(r *http.Request) {
	r.URL.Scheme, r.URL.Host, r.Host = p.options.Server.Scheme, p.options.Server.Host, ""
}

// cut breaks the connection of the request that is being served.
func cut() {
	panic(http.ErrAbortHandler) //nolint:forbidigo // the way that net/http offers to cut a connection
}

// conflict is how the API server answers a write on an old version.
func conflict(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusConflict)
	_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",`+
		`"message":"the object has been modified","reason":"Conflict","code":409}`)
}
