package lifecycle

import (
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

const (
	// sendWindow is how long after it was written an operation may be sent. A process that was frozen for longer does
	// no harm when it wakes.
	sendWindow = time.Minute
	// firstPoll and slowestPoll bound the time between two looks at an open operation.
	firstPoll   = 2 * time.Second
	slowestPoll = time.Minute
	// throttled is the pause after a 429 that names none.
	throttled = time.Minute
)

// sendBy is the end of an operation's sends: well inside the lifetime of its key, if it has one.
func sendBy(now time.Time, p Provider) time.Time {
	window := sendWindow
	if half := p.KeyTTL / 2; half > 0 && half < window {
		window = half
	}
	return now.Add(window)
}

// settledAt is when nothing that was sent for an operation can take effect any more: the last send, a request that
// hangs in the network until its call times out, the provider's work, and the lag of its reads. Only a look-up begun
// later proves absence.
func settledAt(op flightsv1.OperationStatus, p Provider) time.Time {
	return op.SendBy.Add(p.Timeout + p.MaxProcessing + p.ReadLag)
}

// poll is the pause before the next look at an open operation. It doubles from pass to pass, because it is as long as
// the operation has been open, and needs no memory for that.
func poll(now time.Time, op flightsv1.OperationStatus) time.Duration {
	return min(max(now.Sub(op.StartedAt.Time), firstPoll), slowestPoll)
}
