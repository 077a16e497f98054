// Package instruction reads and writes what people tell a ticket by annotations: an operation resolved by hand, and how
// often a booking is read again. The webhook checks with it what the controller later acts on, and the command line writes
// it. It knows texts alone: no client, no clock and no right.
package instruction

import (
	"fmt"
	"strings"
	"time"
)

// MinPollInterval is the least time between two looks at a booking that a ticket may ask for: a shorter one would burn
// the provider's call quota.
const MinPollInterval = time.Minute

// The words of a resolution.
const (
	wordDone    = "done"
	wordNotDone = "not-done"
)

// Resolution is a person's word on an operation: the value of the annotation flights.com/resolve-operation.
type Resolution struct {
	// Operation is the id of the operation that it speaks of, and of no other.
	Operation string
	// Done says that the operation took effect.
	Done bool
	// Booking is the provider's id of the booking that a done book operation made; empty for the other kinds.
	Booking string
}

// ParseResolution reads a resolution. The error says what the text must look like.
func ParseResolution(text string) (Resolution, error) {
	words := strings.Fields(text)
	switch {
	case len(words) == 2 && words[1] == wordNotDone:
		return Resolution{Operation: words[0]}, nil
	case len(words) == 2 && words[1] == wordDone:
		return Resolution{Operation: words[0], Done: true}, nil
	case len(words) == 3 && words[1] == wordDone:
		return Resolution{Operation: words[0], Done: true, Booking: words[2]}, nil
	default:
		return Resolution{}, fmt.Errorf("%.200q is not an operation's id and then %q, %q or %q and a booking's id",
			text, wordNotDone, wordDone, wordDone)
	}
}

// String writes a resolution as ParseResolution reads it.
func (r Resolution) String() string {
	switch {
	case !r.Done:
		return r.Operation + " " + wordNotDone
	case r.Booking == "":
		return r.Operation + " " + wordDone
	default:
		return r.Operation + " " + wordDone + " " + r.Booking
	}
}

// ParsePollInterval reads the value of the annotation flights.com/poll-interval. One below MinPollInterval is an error.
func ParsePollInterval(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%.200q is not a duration such as 30m or 2h", text)
	}
	if d < MinPollInterval {
		return 0, fmt.Errorf("%s is below the least interval, %s", d, MinPollInterval)
	}
	return d, nil
}
