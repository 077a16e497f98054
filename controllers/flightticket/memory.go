package flightticket

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// memory is what this process knows of open operations beyond what is written down. It is lost with the process, and
// that is its meaning: what it doesn't hold may have been sent.
type memory struct {
	mu   sync.Mutex
	held map[types.UID]recollection
}

type recollection struct {
	operation string
	// harmless says that this process wrote the operation in this run, and that nothing can have come of it yet.
	harmless bool
	// until is send-by on this process's own clock, which runs on when the wall clock is set back.
	until time.Time
}

func newMemory() *memory { return &memory{held: map[types.UID]recollection{}} }

// written notes an operation that this process has just written down.
func (m *memory) written(ticket types.UID, op flightsv1.OperationStatus, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[ticket] = recollection{operation: op.ID, harmless: true, until: now.Add(op.SendBy.Sub(now))}
}

// harmless says whether nothing can have come of an operation, as far as this process knows for certain.
func (m *memory) harmless(ticket types.UID, operation string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.held[ticket]
	return r.operation == operation && r.harmless
}

// sending notes that an operation is about to be sent, or that a send was answered by a rejection.
func (m *memory) sending(ticket types.UID, operation string, harmless bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.held[ticket]; r.operation == operation {
		r.harmless = harmless
		m.held[ticket] = r
	}
}

// open says whether an operation may still be sent, by the wall clock and by this process's own.
func (m *memory) open(ticket types.UID, op flightsv1.OperationStatus, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.held[ticket]
	if r.operation != op.ID {
		r = recollection{operation: op.ID, until: now.Add(op.SendBy.Sub(now))}
		m.held[ticket] = r
	}
	return now.Before(op.SendBy.Time) && now.Before(r.until)
}

// drop forgets a ticket whose operation is over.
func (m *memory) drop(ticket types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, ticket)
}
