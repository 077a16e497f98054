package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

const (
	// sendWindow is how long after it was written an operation may be sent. A process that was frozen for longer does
	// no harm when it wakes.
	sendWindow = time.Minute
	// shortestKey is the shortest lifetime of a key that is relied on.
	shortestKey = 10 * time.Second
	// maxSkew is how far the clock of a process may be wrong. One that has just started can't tell how old an operation is
	// but by that clock, and must not send a key that the provider has forgotten.
	maxSkew = 15 * time.Minute
)

// sendBy is the end of an operation's sends: well inside the lifetime of its key, if it has one.
func sendBy(now time.Time, p Provider) time.Time {
	window := sendWindow
	if p.takesKeys() {
		window = min(window, p.KeyTTL/2)
	}
	return now.Add(window)
}

// takesKeys says whether keys can be relied on: one that is forgotten before a repeat arrives would buy twice.
func (p Provider) takesKeys() bool { return p.KeyTTL >= shortestKey }

// window is how long an operation may be sent after it was written.
func window(op flightsv1.OperationStatus) time.Duration { return op.SendBy.Sub(op.StartedAt.Time) }

// Known names what Observation.KnownFor measures the knowledge of: the open operation, else the booking as it was recorded
// last, else nothing.
func Known(s flightsv1.FlightTicketStatus) string {
	switch {
	case s.Operation != nil:
		return s.Operation.ID
	case s.Booking != nil:
		return s.Booking.ID + " " + s.Booking.Version
	default:
		return ""
	}
}

// Sendable says whether an operation may be sent at a time, for one who has known it for so long. Both clocks must
// agree: the wall clock, which other processes share but which may be set, and the process's own. A time before the
// operation's start shows a wall clock that was set back.
func Sendable(op flightsv1.OperationStatus, now time.Time, knownFor time.Duration) bool {
	return !now.Before(op.StartedAt.Time) && now.Before(op.SendBy.Time) && knownFor < window(op)
}

func (o Observation) sendable(op flightsv1.OperationStatus) bool {
	return Sendable(op, o.Now, o.KnownFor)
}

// lapse is how long after its last send an operation may still take effect: a request that hangs in the network until
// its call times out, the provider's work, and the lag of its reads. What was declared when the operation was written
// stands, and longer times that were declared since.
func lapse(op flightsv1.OperationStatus, p Provider) time.Duration {
	now := p.Timeout + p.MaxProcessing + p.ReadLag
	if op.SettlesAt == nil {
		return now
	}
	return max(now, op.SettlesAt.Sub(op.SendBy.Time))
}

// outgrown says whether a send could take effect later by what the provider declares now than the operation says.
func outgrown(op flightsv1.OperationStatus, p Provider) bool {
	return op.SettlesAt == nil || settling(op, p).After(op.SettlesAt.Time)
}

// settling is when what is sent until send-by can take effect no more, to be written into the operation.
func settling(op flightsv1.OperationStatus, p Provider) *metav1.MicroTime {
	return &metav1.MicroTime{Time: op.SendBy.Add(lapse(op, p))}
}

// settled says whether nothing that was sent for an operation can take effect after a look that began then. Only such a
// look proves absence. The time that this process has known the operation counts too: the wall clock alone would prove
// absence too early after it was set forward, or when it is ahead of the clock of the process that sent.
func settled(op flightsv1.OperationStatus, p Provider, askedAt time.Time, knownFor time.Duration) bool {
	rest := lapse(op, p)
	return askedAt.After(op.SendBy.Add(rest)) && knownFor > window(op)+rest
}

// settlesAt is when an operation is settled by both clocks, for one who has known it for so long by now.
func settlesAt(op flightsv1.OperationStatus, p Provider, now time.Time, knownFor time.Duration) time.Time {
	rest := lapse(op, p)
	byWall, byKnowledge := op.SendBy.Add(rest), now.Add(window(op)+rest-knownFor)
	if byKnowledge.After(byWall) {
		return byKnowledge
	}
	return byWall
}
