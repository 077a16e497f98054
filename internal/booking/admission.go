package booking

import "context"

// Priority says who goes first when calls are short: a lower one leaves room for those above it.
type Priority int

// The priorities. Cancelling frees money, booking spends it, polling only looks.
const (
	PriorityPoll Priority = iota
	PriorityBook
	PriorityCancel
)

type priorityKey struct{}

// WithPriority sets the priority of the calls made with the context: a read that a cancellation waits for is as urgent
// as the cancellation.
func WithPriority(ctx context.Context, p Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, p)
}

// PriorityOf returns the priority set in a context, else the given one.
func PriorityOf(ctx context.Context, otherwise Priority) Priority {
	if p, ok := ctx.Value(priorityKey{}).(Priority); ok {
		return p
	}
	return otherwise
}

// Permit is room for one call. It is used by the first call that is made with its Context, or given back by Release.
type Permit interface {
	// Context returns a context whose first call uses the permit instead of asking for room of its own.
	Context(ctx context.Context) context.Context
	// Release gives the room back if no call has used it. It may be called twice.
	Release()
}

// Admitter is a Provider behind a limiter, which can hold room for a call that is about to be written down.
type Admitter interface {
	// Admit returns a Permit, or a CallError of ClassUnavailable that says how long to wait.
	Admit(p Priority) (Permit, *CallError)
}
