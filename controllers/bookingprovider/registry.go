package bookingprovider

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/booking/guard"
)

// connection is a booking API under one credential, for one generation of a BookingProvider.
type connection struct {
	uid        types.UID
	generation int64
	token      string
	guard      *guard.Guard

	// accepted says that the provider has accepted the credential, and for which account.
	accepted bool
	account  string
	// rotated is when the credential was last seen to change.
	rotated *metav1.Time
	// checked is when the provider was last asked.
	checked time.Time
	// usable says that the last check went well, answered that the provider has accepted or refused this very credential.
	usable, answered bool
}

// Registry holds the connections of this process by the provider's name. It is safe for concurrent use.
type Registry struct {
	doubts chan string

	mu   sync.Mutex
	held map[string]*connection
	// going tells since when this process has known that a provider is being deleted.
	going map[types.UID]time.Time
}

// NewRegistry returns a Registry without connections. A Reconciler fills it.
func NewRegistry() *Registry {
	return &Registry{doubts: make(chan string, 64), held: map[string]*connection{}, going: map[types.UID]time.Time{}}
}

// Connected returns a provider's API under its present credential, the account that the credential belongs to, and when
// the credential last changed. The API is nil unless the credential was accepted for exactly this uid and generation.
func (r *Registry) Connected(name string, uid types.UID, generation int64) (booking.Provider, string, *metav1.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.held[name]
	if c == nil || c.uid != uid || c.generation != generation || !c.usable {
		return nil, "", nil
	}
	return c.guard, c.account, c.rotated
}

// Pause returns how long the provider's breaker, or a pause that it asked for, lasts still. The limiter is left out: its
// waits are short, and waited for where the call is made.
func (r *Registry) Pause(name string, now time.Time) time.Duration {
	r.mu.Lock()
	c := r.held[name]
	r.mu.Unlock()
	if c == nil {
		return 0
	}
	wait, reason := c.guard.Ready(now)
	if reason == booking.CodeRateLimited {
		return 0
	}
	return wait
}

// Doubt asks for a new look at a provider. It never blocks: one that is asked for already is enough.
func (r *Registry) Doubt(name string) {
	r.mu.Lock()
	if c := r.held[name]; c != nil {
		c.checked = time.Time{}
	}
	r.mu.Unlock()
	select {
	case r.doubts <- name:
	default:
	}
}

// get returns a copy of what is held of a provider, and false if nothing is.
func (r *Registry) get(name string) (connection, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.held[name]
	if c == nil {
		return connection{}, false
	}
	return *c, true
}

// put replaces what is held of a provider.
func (r *Registry) put(name string, c connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[name] = &c
}

// drop forgets a provider.
func (r *Registry) drop(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, name)
}

// lapse takes a provider's connection out of use. Its token is remembered: another one that comes in its place is a
// changed credential.
func (r *Registry) lapse(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.held[name]; c != nil {
		lapsed := *c
		lapsed.usable, lapsed.accepted, lapsed.answered = false, false, false
		r.held[name] = &lapsed
	}
}

// answeredTo says whether a provider has accepted or refused a credential.
func (r *Registry) answeredTo(name, token string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.held[name]
	return c != nil && c.answered && c.token == token
}

// goingFor says for how long this process has known that a provider is being deleted, and begins to count.
func (r *Registry) goingFor(provider types.UID, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.going[provider]; !known {
		r.going[provider] = now
	}
	return now.Sub(r.going[provider])
}

// went forgets a provider that has gone.
func (r *Registry) went(provider types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.going, provider)
}
