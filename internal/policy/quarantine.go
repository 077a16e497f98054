package policy

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// maxStrikes is how many evaluations in a row may run out of time before a policy is put in quarantine.
	maxStrikes = 3
	// coolDown is how long a quarantine lasts.
	coolDown = 30 * time.Second
)

// quarantine keeps a policy that runs out of time again and again from taking its time of every request. While it lasts,
// the policy errs at once; afterwards it has one try, and the next time-out puts it back. A new generation starts free.
// The zero value is ready for use.
type quarantine struct {
	strikes atomic.Int32
	until   atomic.Int64 // Unix nanoseconds
}

// errQuarantine marks a policy that is not asked for a while.
var errQuarantine = errors.New("it is in quarantine")

// check says whether the policy may run.
func (q *quarantine) check(now time.Time) error {
	if left := time.Duration(q.until.Load() - now.UnixNano()); left > 0 {
		return fmt.Errorf("%w for another %v, because it ran out of time %d times in a row",
			errQuarantine, left.Round(time.Second), q.strikes.Load())
	}
	return nil
}

// report enters how an evaluation ended.
func (q *quarantine) report(timedOut bool, now time.Time) {
	if !timedOut {
		if q.strikes.Load() != 0 {
			q.strikes.Store(0)
		}
		return
	}
	if q.strikes.Add(1) >= maxStrikes {
		q.until.Store(now.Add(coolDown).UnixNano())
	}
}
