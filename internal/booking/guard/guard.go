// Package guard stands before a booking.Provider and decides whether a call may be made now: one limiter, one breaker
// and one pause per credential.
//
// It knows rates, failures and clocks. It must not know HTTP, tickets or Kubernetes. It never waits: a call that has no
// room now is answered at once with how long to wait, so that no worker is blocked and a queue can do the waiting.
package guard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/flight-operator/flight-operator/internal/booking"
)

const (
	// defaultFailures in a row open the breaker.
	defaultFailures = 5
	// defaultOpenFor is how long an open breaker lets nothing through before it tries one call.
	defaultOpenFor = 30 * time.Second
	// defaultPause follows a 429 that names no time.
	defaultPause = 30 * time.Second
	// probeWait is what a call is told that meets a breaker whose one trial call is under way.
	probeWait = time.Second
)

// Options bound the calls under one credential.
type Options struct {
	// Rate is the sustained number of calls a second (a BookingProvider's requestsPerMinute / 60).
	Rate float64
	// Burst is how many calls may be made at once after a pause.
	Burst int
	// Failures in a row that open the breaker; zero means 5. Failures are what may be the provider's outage:
	// ClassUnavailable and ClassUnknown. A refusal is an answer.
	Failures int
	// OpenFor is how long the open breaker lets nothing through; zero means 30 s.
	OpenFor time.Duration
	// Clock of limiter and pause; nil means time.Now. The breaker runs on the process's own clock (a test controls it
	// with testing/synctest).
	Clock func() time.Time
	// OnWait is told how long each call that was not let through should wait. It must return at once. May be nil.
	OnWait func(time.Duration)
}

// Guard is a booking.Provider that lets calls through to another one, or answers them itself with a CallError of
// ClassUnavailable (for writes: a Rejected outcome), which means that nothing was sent. A lookup counts as one call,
// however many pages it reads. Its codes are
// booking.CodeRateLimited, booking.CodeProviderPaused and booking.CodeBreakerOpen; RetryAfter is set.
type Guard struct {
	next    booking.Provider
	clock   func() time.Time
	onWait  func(time.Duration)
	rate    float64
	burst   int
	openFor time.Duration
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]

	mu          sync.Mutex
	limiter     *rate.Limiter
	pausedUntil time.Time
	openedAt    time.Time // on the process's clock
}

var (
	_ booking.Provider = (*Guard)(nil)
	_ booking.Admitter = (*Guard)(nil)
)

// New returns a Guard before a provider. Rate and Burst below what lets any call through are raised to one call a
// minute and one at once.
func New(next booking.Provider, o Options) *Guard {
	g := &Guard{
		next: next, clock: o.Clock, onWait: o.OnWait,
		rate: max(o.Rate, 1.0/60), burst: max(o.Burst, 1), openFor: o.OpenFor,
	}
	if g.clock == nil {
		g.clock = time.Now
	}
	if g.onWait == nil {
		g.onWait = func(time.Duration) {}
	}
	if g.openFor <= 0 {
		g.openFor = defaultOpenFor
	}
	failures := o.Failures
	if failures <= 0 {
		failures = defaultFailures
	}
	g.limiter = rate.NewLimiter(rate.Limit(g.rate), g.burst)
	g.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:   1,
		Timeout:       g.openFor,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= uint32(failures) },
		IsSuccessful:  func(err error) bool { return !isOutage(err) },
		IsExcluded:    func(err error) bool { return errors.Is(err, errNotCounted) },
		OnStateChange: g.stateChanged,
	})
	return g
}

// errNotCounted says nothing about the provider: the caller gave up, or asked for what can't be sent.
var errNotCounted = errors.New("not counted")

func isOutage(err error) bool {
	var e *booking.CallError
	return errors.As(err, &e) && (e.Class == booking.ClassUnavailable || e.Class == booking.ClassUnknown)
}

func (g *Guard) stateChanged(_ string, _, to gobreaker.State) {
	if to != gobreaker.StateOpen {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.openedAt = time.Now()
}

// Ready tells whether a book or change call would be let through at this time: zero and "", or how long to wait and the
// code that says why. It takes nothing, so a call right after it can still be refused; Admit holds the room.
func (g *Guard) Ready(now time.Time) (wait time.Duration, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.room(now, booking.PriorityBook)
}

// State is the breaker's: "closed", "open" or "half-open".
func (g *Guard) State() string { return g.breaker.State().String() }

// room is zero if a call may be made. The caller holds mu.
func (g *Guard) room(now time.Time, p booking.Priority) (time.Duration, string) {
	if wait := g.pausedUntil.Sub(now); wait > 0 {
		return wait, booking.CodeProviderPaused
	}
	if !g.openedAt.IsZero() {
		if wait := g.openFor - time.Since(g.openedAt); wait > 0 {
			return wait, booking.CodeBreakerOpen
		}
	}
	if missing := 1 + g.kept(p) - g.limiter.TokensAt(now); missing > 0 {
		wait := time.Duration(missing / g.rate * float64(time.Second))
		return max(wait, time.Millisecond), booking.CodeRateLimited
	}
	return 0, ""
}

// kept is how many tokens a priority leaves for those above it: a fifth of the burst each.
func (g *Guard) kept(p booking.Priority) float64 {
	return float64(g.burst / 5 * int(booking.PriorityCancel-p))
}

// Permit is room for one call. It is used by the first call that is made with its Context, or given back by Release.
type Permit struct {
	g    *Guard
	once sync.Once
}

// Admit takes the room for one call before the caller writes down that it will make it. Without room it returns a
// CallError that says how long to wait.
func (g *Guard) Admit(p booking.Priority) (booking.Permit, *booking.CallError) {
	g.mu.Lock()
	now := g.clock()
	wait, reason := g.room(now, p)
	if reason == "" {
		g.limiter.AllowN(now, 1)
	}
	g.mu.Unlock()
	if reason == "" {
		return &Permit{g: g}, nil
	}
	g.onWait(wait)
	return nil, refused(reason, wait)
}

// Context returns a context whose first call through the Guard uses the permit instead of taking room of its own.
func (p *Permit) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, permitKey{}, p)
}

// Release gives the room back if no call has used it. It may be called twice.
func (p *Permit) Release() { p.once.Do(p.g.giveBack) }

// giveBack returns a token. The limiter adds what is taken negatively; cancelling a reservation would give back only
// one that lies in the future.
func (g *Guard) giveBack() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limiter.AllowN(g.clock(), -1)
}

// use says whether this call is the one that the permit is for.
func (p *Permit) use() (first bool) {
	p.once.Do(func() { first = true })
	return first
}

type permitKey struct{}

// enter lets a call through, or says why not. The returned function must be told how the call went.
func (g *Guard) enter(ctx context.Context, p booking.Priority) (func(*booking.CallError), *booking.CallError) {
	p = booking.PriorityOf(ctx, p)
	permit, ok := ctx.Value(permitKey{}).(*Permit)
	if !ok || permit.g != g || !permit.use() {
		if _, err := g.Admit(p); err != nil {
			return nil, err
		}
	}
	done, err := g.breaker.Allow()
	if err != nil {
		g.giveBack()
		wait := probeWait
		if errors.Is(err, gobreaker.ErrOpenState) {
			wait = g.stillOpen()
		}
		g.onWait(wait)
		return nil, refused(booking.CodeBreakerOpen, wait)
	}
	return func(e *booking.CallError) { g.leave(done, e) }, nil
}

func (g *Guard) stillOpen() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(g.openFor-time.Since(g.openedAt), probeWait)
}

// leave counts how a call went and takes up the pause that the provider asks for.
func (g *Guard) leave(done func(error), e *booking.CallError) {
	switch {
	case e == nil:
		done(nil)
		return
	case e.Code == booking.CodeCancelled, e.Code == booking.CodeInvalidRequest:
		done(errNotCounted)
		return
	}
	done(e)
	pause := e.RetryAfter
	switch {
	case e.Class == booking.ClassThrottled && pause <= 0:
		pause = defaultPause
	case pause <= 0, e.Class != booking.ClassThrottled && !isOutage(e):
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := g.clock().Add(pause); until.After(g.pausedUntil) {
		g.pausedUntil = until
	}
}

func refused(code string, wait time.Duration) *booking.CallError {
	details := map[string]string{
		booking.CodeRateLimited:    "the provider's rate limit leaves no room for this call now",
		booking.CodeProviderPaused: "the provider asked to pause all calls",
		booking.CodeBreakerOpen:    "the provider failed repeatedly and is not called for a while",
	}
	return &booking.CallError{
		Class: booking.ClassUnavailable, Code: code, Detail: details[code], RetryAfter: wait,
	}
}
