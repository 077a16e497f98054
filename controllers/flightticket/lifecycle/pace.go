package lifecycle

import (
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// Cause is why a ticket waits. Each has its own pace and its own budget of calls; docs/error-classes.md is their table.
type Cause string

const (
	// CauseRefused: the provider understood and said no. A repeat gets the same answer, so that nothing is asked again until
	// the spec, the provider, its credential or the annotation flights.com/reconcile-requested-at changes.
	CauseRefused Cause = "refused"
	// CauseCredential: the provider is missing, not connected, of another account, or refuses the credential. The change of
	// the provider or of the Secret ends the wait.
	CauseCredential Cause = "credential"
	// CauseThrottled: the provider asked to be left alone (429).
	CauseThrottled Cause = "throttled"
	// CauseUnavailable: the provider could not be reached, or a read failed. Nothing was decided.
	CauseUnavailable Cause = "unavailable"
	// CauseUnknown: an operation is open and what became of it is not known yet, or a read may lag.
	CauseUnknown Cause = "unknown"
	// CauseAnew: an operation certainly had no effect, or policies or quotas could not be asked; it is tried anew.
	CauseAnew Cause = "anew"
	// CauseHeld: a policy, the price ceiling or an adoption holds the ticket back, and a person is to change something.
	CauseHeld Cause = "held"
	// CauseFull: a quota has no room. What makes room wakes the ticket.
	CauseFull Cause = "full"
	// CauseCounting: a quota of the ticket is being counted, and the API server is asked again soon.
	CauseCounting Cause = "counting"
	// CauseTurn: our own limiter or breaker has no room. The provider is not called.
	CauseTurn Cause = "turn"
	// CauseLook: the ticket is as it should be; its booking is read again from time to time.
	CauseLook Cause = "look"
)

// Causes lists the closed set, in the order of the table in docs/error-classes.md.
func Causes() []Cause {
	return []Cause{
		CauseRefused, CauseCredential, CauseThrottled, CauseUnavailable, CauseUnknown, CauseAnew, CauseHeld, CauseFull,
		CauseCounting, CauseTurn, CauseLook,
	}
}

// The pauses of a ticket that waits. A fifth is added to each at random, so that tickets which began to wait together
// don't come back together.
const (
	// firstPause and slowestPause bound a pause that grows: it is as long as the ticket has waited for the same cause.
	firstPause   = time.Second
	slowestPause = 5 * time.Minute
	// firstPoll and slowestPoll bound the time between two looks at an open operation.
	firstPoll   = 2 * time.Second
	slowestPoll = time.Minute
	// throttledPause follows a 429 that names no time.
	throttledPause = time.Minute
)

// The budgets: the most calls to the provider that one ticket makes in an hour while it waits for one cause, its first
// attempt included, at the default poll interval of 10 minutes. An attempt is at most three calls: a look-up or a read, a
// quote, and the operation itself.
const (
	budgetRefused     = 12
	budgetCredential  = 24
	budgetThrottled   = 48
	budgetUnavailable = 48
	budgetUnknown     = 130
	budgetAnew        = 72
	budgetHeld        = 16
	budgetFull        = 12
	budgetCounting    = 72
	budgetTurn        = 0
	budgetLook        = 60
)

// Pace is how often a ticket asks that waits for one cause.
type Pace struct {
	// First and Slowest bound the pause between two attempts. Both zero: it is the poll interval.
	First, Slowest time.Duration
	// CallsAnHour is the most calls to the provider in an hour for one ticket.
	CallsAnHour int
}

// PaceOf returns the pace of a cause.
func PaceOf(c Cause) Pace {
	switch c {
	case CauseThrottled:
		return Pace{firstPause, slowestPause, budgetThrottled}
	case CauseUnavailable:
		return Pace{firstPause, slowestPause, budgetUnavailable}
	case CauseUnknown:
		return Pace{firstPoll, slowestPoll, budgetUnknown}
	case CauseAnew:
		return Pace{firstPause, slowestPause, budgetAnew}
	case CauseRefused:
		return Pace{CallsAnHour: budgetRefused}
	case CauseCredential:
		return Pace{CallsAnHour: budgetCredential}
	case CauseHeld:
		return Pace{CallsAnHour: budgetHeld}
	case CauseFull:
		return Pace{CallsAnHour: budgetFull}
	case CauseCounting:
		return Pace{firstPause, slowestPoll, budgetCounting}
	case CauseTurn:
		return Pace{CallsAnHour: budgetTurn}
	default:
		return Pace{CallsAnHour: budgetLook}
	}
}

// Waits says since when a ticket has waited for each cause without getting anywhere. It holds only the causes whose pause
// grows. It belongs to one process and one wish: when the spec, our annotations or the provider's spec, credential or
// account change, it begins anew.
type Waits map[Cause]time.Time

// After returns the waits after a step was taken at a time. What shows that the provider answers, or that the ticket got
// somewhere, ends them; how often passes happen doesn't count, so that other people's edits can't stretch a pause.
func (w Waits) After(step Step, at time.Time) Waits {
	switch {
	case step.Action == Record, step.Action == Nothing, step.Action == RemoveFinalizer:
		return nil
	case step.Action != Wait && step.Action != CloseOperation:
		return w
	}
	switch step.Cause {
	case CauseRefused, CauseHeld, CauseFull, CauseLook:
		return nil
	case CauseThrottled, CauseUnavailable, CauseUnknown, CauseAnew, CauseCounting:
		if _, waits := w[step.Cause]; waits {
			return w
		}
		next := Waits{step.Cause: at}
		for cause, since := range w {
			next[cause] = since
		}
		return next
	default:
		return w
	}
}

// pause is how long a ticket rests that waits for a cause: as long as it has waited so far, within the bounds of the
// pace. So it doubles from pass to pass, and extra passes don't make it longer.
func (o Observation) pause(c Cause) time.Duration {
	p := PaceOf(c)
	if p.First == 0 {
		return o.Recheck
	}
	since, waits := o.Waits[c]
	if !waits {
		return p.First
	}
	return min(max(o.Now.Sub(since), p.First), p.Slowest)
}

// poll is the pause before the next look at an open operation: as long as the operation has been open.
func poll(now time.Time, op flightsv1.OperationStatus) time.Duration {
	return min(max(now.Sub(op.StartedAt.Time), firstPoll), slowestPoll)
}

// causeOf says why a ticket waits after a failed call.
func causeOf(err *booking.CallError) Cause {
	switch err.Class {
	case booking.ClassCredential:
		return CauseCredential
	case booking.ClassThrottled:
		return CauseThrottled
	case booking.ClassUnavailable, booking.ClassUnknown:
		return CauseUnavailable
	default: // Refused, Conflict, NotFound: a call that the provider doesn't understand will not get better soon
		return CauseRefused
	}
}

// asked is how long a failed call asks to wait at least.
func asked(err *booking.CallError) time.Duration {
	if err.Class == booking.ClassThrottled && err.RetryAfter <= 0 {
		return throttledPause
	}
	return max(err.RetryAfter, 0)
}
