package flightticket

import (
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
)

// memory is what this process knows of tickets beyond what is written down. It is lost with the process, and that is its
// meaning: an operation that it doesn't hold may have been sent.
type memory struct {
	mu   sync.Mutex
	held map[types.NamespacedName]*recollection
}

// recollection is what is known of one ticket.
type recollection struct {
	// about is what lifecycle.Known names, since is when this process came to know it, on a clock that runs on when the wall
	// clock is set.
	about string
	since time.Time
	// harmless says that this process wrote the operation in this run, and that nothing can have come of it yet.
	harmless bool
	// kept is what a pass has heard that ran out of room.
	kept *answers
	// written is the resource version of this process's last write: what a cache shows that is older is not the ticket.
	written string
	// looked is when the booking was last read, share the part of the poll interval until it is read again: from one to one
	// and a fifth, or below one for a booking that this process found when it started.
	looked time.Time
	share  float64
	// rest is what the ticket waits for.
	rest rest
	// wakes is how often it was said that the ticket may find room.
	wakes int64
}

// rest is a ticket's wait: until when, as long as the facts are these, and since when it has got nowhere with its wish.
type rest struct {
	facts, wish uint64
	due         time.Time
	waits       lifecycle.Waits
	// quotas says that the ticket waits for its quotas; woken is how often it had been woken before they were asked.
	quotas bool
	woken  int64
}

func newMemory() *memory {
	return &memory{held: map[types.NamespacedName]*recollection{}}
}

// of returns the recollection of a ticket, and makes an empty one if there is none. The caller holds mu.
func (m *memory) of(ticket types.NamespacedName) *recollection {
	r := m.held[ticket]
	if r == nil {
		r = &recollection{}
		m.held[ticket] = r
	}
	return r
}

// known says for how long this process has known an operation or a booking of a ticket, and begins to count.
func (m *memory) known(ticket types.NamespacedName, id string, now time.Time) time.Duration {
	if id == "" {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(ticket)
	if r.about != id {
		r.about, r.since, r.harmless = id, now, false
	}
	return now.Sub(r.since)
}

// wroteOperation notes an operation that this process has just written down.
func (m *memory) wroteOperation(ticket types.NamespacedName, operation string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(ticket)
	r.about, r.since, r.harmless = operation, now, true
}

// harmless says whether nothing can have come of an operation, as far as this process knows for certain.
func (m *memory) harmless(ticket types.NamespacedName, operation string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.held[ticket]
	return r != nil && r.about == operation && r.harmless
}

// sending notes that an operation is about to be sent, or that a send was answered by a rejection.
func (m *memory) sending(ticket types.NamespacedName, operation string, harmless bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.held[ticket]; r != nil && r.about == operation {
		r.harmless = harmless
	}
}

// settle forgets what is known of an operation that is closed, and what was heard meanwhile: what is known of the booking
// is counted from now on.
func (m *memory) settle(ticket types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.held[ticket]; r != nil {
		r.about, r.since, r.harmless, r.kept = "", time.Time{}, false, nil
	}
}

// forget forgets a ticket that is gone.
func (m *memory) forget(ticket types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, ticket)
}

// wrote notes the version of the ticket that this process has just written.
func (m *memory) wrote(ticket types.NamespacedName, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(ticket).written = version
}

// overtakes says whether this process wrote a newer version of the ticket than this one, which a cache shows. A decision
// that rests on it would find nothing to write where the status that stands says something else.
func (m *memory) overtakes(ticket types.NamespacedName, version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.held[ticket]
	if r == nil || r.written == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, r.written)
	if err != nil {
		return version != r.written
	}
	if order >= 0 {
		r.written = ""
	}
	return order < 0
}

// lookedAt notes that the booking was just read or recorded.
func (m *memory) lookedAt(ticket types.NamespacedName, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(ticket)
	r.looked, r.share = now, 1+rand.Float64()/5
}

// lookIn is how long it is until a booking is to be read again that is read every so often. Those that are there when the
// process starts are spread over the whole interval, so that they are not all read at once.
func (m *memory) lookIn(ticket types.NamespacedName, every time.Duration, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(ticket)
	if r.looked.IsZero() {
		r.looked, r.share = now, rand.Float64()
	}
	return r.looked.Add(time.Duration(r.share * float64(every))).Sub(now)
}

// waits is since when a ticket has got nowhere with a wish.
func (m *memory) waits(ticket types.NamespacedName, wish uint64) lifecycle.Waits {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.held[ticket]
	if r == nil || r.rest.wish != wish {
		return nil
	}
	return r.rest.waits
}

// rests notes what a ticket waits for. One that waits for nothing but events has no due time.
func (m *memory) rests(ticket types.NamespacedName, wait rest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(ticket).rest = wait
}

// wake notes that a ticket may find room in its quotas now.
func (m *memory) wake(ticket types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(ticket).wakes++
}

// woken is how often a ticket was woken. A pass takes it before it asks: what wakes the ticket later must not be lost.
func (m *memory) woken(ticket types.NamespacedName) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.held[ticket]; r != nil {
		return r.wakes
	}
	return 0
}

// due is how long a ticket still rests as long as the facts are these; zero: it doesn't.
func (m *memory) due(ticket types.NamespacedName, facts uint64, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.held[ticket]
	if r == nil || r.rest.facts != facts || r.rest.quotas && r.rest.woken != r.wakes {
		return 0
	}
	return max(r.rest.due.Sub(now), 0)
}

// answers are what a pass heard that ran out of room with the limiter, or waits for its quotas. The next one goes on from
// them: if it asked its questions again, many tickets and a low limit would use all calls up for questions, and none would
// get to its purchase.
type answers struct {
	// wish and status of the ticket, and the provider under one account, that they hold for.
	wish   uint64
	status flightsv1.FlightTicketStatus
	of     lifecycle.Provider
	heard  lifecycle.Heard
}

// fit says whether answers hold for a ticket and a provider as they are now.
func (a *answers) fit(wish uint64, status flightsv1.FlightTicketStatus, of lifecycle.Provider) bool {
	return a != nil && a.wish == wish && a.of.Identity == of.Identity && a.of.Generation == of.Generation &&
		equality.Semantic.DeepEqual(a.status, status)
}

// keep notes what a pass has heard for the next one.
func (m *memory) keep(ticket types.NamespacedName, a answers) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(ticket).kept = &a
}

// recall takes out what was kept, if it still holds.
func (m *memory) recall(
	ticket types.NamespacedName, wish uint64, status flightsv1.FlightTicketStatus, of lifecycle.Provider, now time.Time,
) lifecycle.Heard {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.held[ticket]
	if r == nil {
		return lifecycle.Heard{}
	}
	a := r.kept
	r.kept = nil
	if !a.fit(wish, status, of) {
		return lifecycle.Heard{}
	}
	return a.heard.Kept(now)
}
