// Package simulator is a booking API that serves the contract of api/booking/openapi.yaml from memory. It keeps a
// ledger of everything that was ever booked, which tests use as their oracle, and has faults that can be switched on.
//
// It knows HTTP and the contract. It must not know the client, the controllers or Kubernetes, and is in no shipped
// program: what it says is worth something as an oracle because it shares no code with the client that it judges.
package simulator

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Settings are how this provider behaves while it is well. They can be changed while it serves.
type Settings struct {
	// IdempotencyKeyTTL is how long keys are remembered; zero ignores them.
	IdempotencyKeyTTL metav1.Duration `json:"idempotencyKeyTTL"`
	// NoLookup makes listing bookings answer 501.
	NoLookup bool `json:"noLookup"`
	// ReadLag is how long a commit is missing from reads.
	ReadLag metav1.Duration `json:"readLag"`
	// Processing is how long a new booking stays pending; zero answers 201 at once.
	Processing metav1.Duration `json:"processing"`
	// ProcessingFails makes pending bookings end as failed instead of confirmed.
	ProcessingFails bool `json:"processingFails"`
	// Latency is how long every answer takes, once the call has done what it asks for.
	Latency metav1.Duration `json:"latency"`
	// RateLimit is how many calls a second an account may make. What is more is answered with 429 and the seconds to
	// wait, and nothing is done. Zero: any number.
	RateLimit float64 `json:"rateLimit"`
	// RateBurst is how many calls an account may make at once after a pause; zero means those of one second.
	RateBurst int `json:"rateBurst"`
	// QuoteTTL is how long a quote can be booked; zero means 30 minutes.
	QuoteTTL metav1.Duration `json:"quoteTTL"`
	// Currency of all prices; empty means EUR.
	Currency string `json:"currency"`
}

// Validate names what no provider can be like.
func (s Settings) Validate() error {
	for name, d := range map[string]metav1.Duration{
		"idempotencyKeyTTL": s.IdempotencyKeyTTL, "readLag": s.ReadLag, "processing": s.Processing, "latency": s.Latency,
		"quoteTTL": s.QuoteTTL,
	} {
		if d.Duration < 0 {
			return fmt.Errorf("%s is %s: a time is not negative", name, d.Duration)
		}
	}
	if s.RateLimit < 0 || s.RateBurst < 0 {
		return errors.New("rateLimit and rateBurst are not negative")
	}
	return nil
}

// Options are what a Simulator is made with.
type Options struct {
	Settings Settings
	// Tokens maps bearer tokens to the accounts they belong to.
	Tokens map[string]string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// NewID makes identifiers; nil means random ones, so that a restarted simulator never repeats one.
	NewID func() string
}

// Simulator is the booking API with its ledger. It is safe for concurrent use.
type Simulator struct {
	now   func() time.Time
	newID func() string
	done  chan struct{}
	stop  sync.Once

	mu       sync.Mutex
	settings Settings
	tokens   map[string]string
	faults   []*armed
	quotes   map[string]quote
	records  []*Record
	keys     map[string]*stored
	limiters map[string]*rate.Limiter // by account
	calls    []*Call
	breaches []Violation
	changed  chan struct{}
}

// New returns a Simulator that serves nothing yet.
func New(o Options) *Simulator {
	s := &Simulator{
		now: o.Now, newID: o.NewID, done: make(chan struct{}), settings: o.Settings,
		quotes: map[string]quote{}, keys: map[string]*stored{}, limiters: map[string]*rate.Limiter{},
		changed: make(chan struct{}),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.newID == nil {
		s.newID = rand.Text
	}
	s.SetTokens(o.Tokens)
	return s
}

// Close ends every call that a fault holds. The Simulator serves no held call afterwards.
func (s *Simulator) Close() { s.stop.Do(func() { close(s.done) }) }

// SetTokens replaces all tokens by these, each with the account it belongs to.
func (s *Simulator) SetTokens(tokens map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = make(map[string]string, len(tokens))
	for token, account := range tokens {
		s.tokens[token] = account
	}
}

// AddToken lets a token in for an account.
func (s *Simulator) AddToken(token, account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = account
}

// RevokeToken shuts a token out.
func (s *Simulator) RevokeToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, token)
}

// Settings returns the settings in force.
func (s *Simulator) Settings() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings
}

// SetSettings replaces the settings, which must be valid. Each account may make its burst of calls anew.
func (s *Simulator) SetSettings(settings Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings = settings
	clear(s.limiters)
}

// Handler serves the booking API.
func (s *Simulator) Handler() http.Handler {
	strict := NewStrictHandlerWithOptions(s.api(), nil, StrictHTTPServerOptions{
		RequestErrorHandlerFunc:  writeBadRequest,
		ResponseErrorHandlerFunc: writeFailure,
	})
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, newProblem(http.StatusNotFound, "not_found", "This API has no such path or method."))
	})
	routes := HandlerWithOptions(strict, StdHTTPServerOptions{BaseRouter: mux, ErrorHandlerFunc: writeBadRequest})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, routes) })
}

func writeBadRequest(w http.ResponseWriter, _ *http.Request, err error) {
	writeProblem(w, newProblem(http.StatusBadRequest, "bad_request", err.Error()))
}

func writeFailure(w http.ResponseWriter, _ *http.Request, err error) {
	var p *problem
	if !errors.As(err, &p) {
		p = newProblem(http.StatusInternalServerError, "internal", "The simulator has a fault of its own.")
	}
	writeProblem(w, p)
}
