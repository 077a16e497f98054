package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// What holds a bucket beside tickets.
const (
	// Gone is what tickets took that are gone.
	Gone = "(tickets that are gone)"
	// Others is what was counted of tickets that could not be found out.
	Others = "(others)"
)

// Holder is one ticket that holds something of a bucket.
type Holder struct {
	// Ticket is the ticket's namespace and name, or Gone, or Others.
	Ticket string
	// Amount is what it holds in the policy's unit. All holders of a bucket together hold what is taken of it, unless a
	// ticket is not counted yet.
	Amount int64
	// As says how it is held: counted, in flight (admitted and not counted yet), or retained.
	As string
}

// Holders lists what holds a bucket: the tickets in flight as the bucket names them, the counted ones as the claims tell,
// what is retained, and what is left of the count without a name. Uncounted is how much more the tickets claim than was
// counted so far; they are counted soon, or the bucket changed while it was looked at.
func Holders(b *flightsv1.QuotaBucket, claims []Claim) (holders []Holder, uncounted int64) {
	flying := inFlight(b)
	rest := b.Used
	for _, ticket := range slices.SortedFunc(maps.Keys(flying), byName) {
		f := flying[ticket]
		rest -= f.settled
		holders = append(holders, Holder{ticket.String(), max(f.settled, f.largest), f.words()})
	}
	var counted []Holder
	for _, c := range claims {
		if _, is := flying[c.Ticket]; is || c.Amount == 0 || quota.Departed(b, c.UID) {
			continue
		}
		rest -= c.Amount
		counted = append(counted, Holder{c.Ticket.String(), c.Amount, "counted"})
	}
	slices.SortFunc(counted, func(a, b Holder) int { return cmp.Compare(a.Ticket, b.Ticket) })
	holders = append(holders, counted...)
	if rest > 0 {
		holders = append(holders, Holder{Others, rest, "counted"})
	}
	if b.Retained > 0 {
		holders = append(holders, Holder{Gone, b.Retained, "retained"})
	}
	return holders, max(0, -rest)
}

// flight is what the open entries of one ticket say, as the ledger reads them: the smallest part that is counted, and the
// largest amount.
type flight struct{ settled, largest int64 }

func (f flight) words() string {
	if f.settled == 0 {
		return "in flight"
	}
	return fmt.Sprintf("in flight, %d of it counted", f.settled)
}

func inFlight(b *flightsv1.QuotaBucket) map[types.NamespacedName]flight {
	flying := map[types.NamespacedName]flight{}
	for _, e := range b.Entries {
		ticket := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
		f, seen := flying[ticket]
		if !seen {
			f.settled = e.Settled
		}
		flying[ticket] = flight{settled: min(f.settled, e.Settled), largest: max(f.largest, e.Amount)}
	}
	return flying
}

func byName(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
