package quota

import (
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// Patience is how long an entry may stay before its ticket is looked for: longer than the longest request of an API
// server (60 s by default) together with what it spends on admission and on writing.
const Patience = 90 * time.Second

// Ages is when the entries of one bucket were first seen, by nonce (rule 9). Entries carry no time of their own: clocks
// of webhooks differ. The times must come from one process and have a monotonic part, as those of time.Now do, so that a
// clock that is set ages nothing. A process that starts begins at zero ages.
type Ages map[string]time.Time

// See takes note of the entries that are open now, and forgets the others.
func (a Ages) See(entries []flightsv1.QuotaEntry, now time.Time) Ages {
	next := make(Ages, len(entries))
	for _, e := range entries {
		if seen, known := a[e.Nonce]; known {
			next[e.Nonce] = seen
		} else {
			next[e.Nonce] = now
		}
	}
	return next
}

// Overdue are the entries that have been open for longer than patience. Of each the controller reads the ticket live: if
// it is Stored, the next count takes the entry; if not, it never will be, and the entry is released.
func (a Ages) Overdue(entries []flightsv1.QuotaEntry, now time.Time, patience time.Duration) []flightsv1.QuotaEntry {
	var overdue []flightsv1.QuotaEntry
	for _, e := range entries {
		if seen, known := a[e.Nonce]; known && now.Sub(seen) > patience {
			overdue = append(overdue, e)
		}
	}
	return overdue
}

// Next is how long it takes until an entry becomes overdue; false if there is none to wait for.
func (a Ages) Next(now time.Time, patience time.Duration) (time.Duration, bool) {
	least, found := time.Duration(0), false
	for _, seen := range a {
		if wait := max(0, patience-now.Sub(seen)); !found || wait < least {
			least, found = wait, true
		}
	}
	return least, found
}
