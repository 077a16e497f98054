package flightticket

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
)

// memory is what this process knows of tickets beyond what is written down. It is lost with the process, and that is its
// meaning: an operation that it doesn't hold may have been sent.
type memory struct {
	mu   sync.Mutex
	held map[types.NamespacedName]recollection
	kept map[types.NamespacedName]answers
}

type recollection struct {
	// about is the id of an operation or a booking, since is when this process came to know it, on a clock that runs on
	// when the wall clock is set.
	about string
	since time.Time
	// harmless says that this process wrote the operation in this run, and that nothing can have come of it yet.
	harmless bool
}

func newMemory() *memory {
	return &memory{held: map[types.NamespacedName]recollection{}, kept: map[types.NamespacedName]answers{}}
}

// known says for how long this process has known an operation or a booking of a ticket, and begins to count.
func (m *memory) known(ticket types.NamespacedName, id string, now time.Time) time.Duration {
	if id == "" {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.held[ticket]
	if r.about != id {
		r = recollection{about: id, since: now}
		m.held[ticket] = r
	}
	return now.Sub(r.since)
}

// written notes an operation that this process has just written down.
func (m *memory) written(ticket types.NamespacedName, operation string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[ticket] = recollection{about: operation, since: now, harmless: true}
}

// harmless says whether nothing can have come of an operation, as far as this process knows for certain.
func (m *memory) harmless(ticket types.NamespacedName, operation string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.held[ticket]
	return r.about == operation && r.harmless
}

// sending notes that an operation is about to be sent, or that a send was answered by a rejection.
func (m *memory) sending(ticket types.NamespacedName, operation string, harmless bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.held[ticket]; r.about == operation {
		r.harmless = harmless
		m.held[ticket] = r
	}
}

// drop forgets a ticket that rests or is gone.
func (m *memory) drop(ticket types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, ticket)
	delete(m.kept, ticket)
}

// keepTime bounds how long answers are kept for a pass that had to stop.
const keepTime = time.Hour

// answers are what a pass heard that ran out of room with the limiter. The next one goes on from them: if it asked its
// questions again, many tickets and a low limit would use all calls up for questions, and none would get to its purchase.
type answers struct {
	// version of the ticket, of the provider and of its account that they hold for.
	version string
	of      lifecycle.Provider
	at      time.Time
	heard   lifecycle.Heard
}

// keep notes what a pass has heard for the next one.
func (m *memory) keep(ticket types.NamespacedName, a answers) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[ticket] = a
}

// recall takes out what was kept, if it still holds.
func (m *memory) recall(ticket types.NamespacedName, version string, of lifecycle.Provider, now time.Time) lifecycle.Heard {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.kept[ticket]
	delete(m.kept, ticket)
	same := a.version == version && a.of.Identity == of.Identity && a.of.Generation == of.Generation
	if !ok || !same || now.Sub(a.at) > keepTime {
		return lifecycle.Heard{}
	}
	return worth(a.heard, now)
}

// worth leaves of what was heard what a later pass may build on: answers, no failures, and no offer that has expired.
func worth(h lifecycle.Heard, now time.Time) lifecycle.Heard {
	var w lifecycle.Heard
	if h.Owner != nil && h.Owner.Err == nil {
		w.Owner = h.Owner
	}
	if h.Read != nil && h.Read.Err == nil {
		w.Read = h.Read
	}
	if h.Offer != nil && h.Offer.Err == nil && h.Offer.Offer.ExpiresAt.After(now) {
		w.Offer = h.Offer
	}
	return w
}
