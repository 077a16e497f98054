// Package history judges quotas by what was stored: every version of every ticket, every version of every bucket, and
// what people were answered, in the order of the cluster's revisions. It says whether a revision had more claims than a
// limit, whether the ledger is right to the unit once nothing moves any more, and why somebody was refused although the
// stored claims left room.
//
// It computes what a ticket claims by itself, from Rules that the test writes in Go. It must not know the engine, the
// ledger's arithmetic or a client: it would repeat their mistakes.
package history

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Form is one thing that a ticket holds for: what its spec asks, what is booked for it, or what is being booked.
type Form struct {
	Seats int64
	// Month of departure, as in "2027-03"; empty without a date.
	Month string
}

// Ticket is one stored version of a ticket.
type Ticket struct {
	// Revision is that of the write; of a deletion, that of the removal.
	Revision uint64
	// Seen is when the watcher heard of it.
	Seen       time.Time
	UID        types.UID
	Namespace  string
	Name       string
	Generation int64
	CostCenter string
	// Forms are what the ticket holds for. In each bucket the largest counts.
	Forms []Form
	// Booked says that the ticket has or had a booking.
	Booked bool
	// Gone says that the write removed the ticket.
	Gone bool
}

// Place is a bucket in the words of a policy.
type Place struct {
	// Policy is the policy's name, and UID tells it from a later one of that name.
	Policy string
	UID    types.UID
	// Namespace is that of the tickets; empty for a bucket of the whole cluster.
	Namespace string
	Key       string
}

// Claim is what a form charges to a bucket.
type Claim struct {
	Place
	Amount, Limit int64
	// Retain says that the amount outlives the ticket if that had a booking.
	Retain bool
}

// Rule is one generation of a policy.
type Rule struct {
	Policy     string
	UID        types.UID
	Generation int64
	// Applied is the revision that stored this generation. Ready is the first from which the policy said that it is in
	// force and counted; 0 if it never did. Ended is the revision of the next generation, or of the policy's deletion; 0 if
	// there was none.
	Applied, Ready, Ended uint64
	// Deleted says that Ended is a deletion.
	Deleted bool
	// Claims are those of one form of a ticket, one a bucket.
	Claims func(t Ticket, f Form) []Claim
}

// of sums up what a version of a ticket claims: in each bucket the largest of its forms.
func (r Rule) of(t Ticket) map[Place]Claim {
	claims := map[Place]Claim{}
	for _, f := range t.Forms {
		for _, c := range r.Claims(t, f) {
			c.Policy, c.UID = r.Policy, r.UID
			if was, there := claims[c.Place]; !there || c.Amount > was.Amount {
				claims[c.Place] = c
			}
		}
	}
	return claims
}

// Entry is an entry of a bucket.
type Entry struct {
	Nonce      string
	Ticket     types.UID
	Generation int64
	Amount     int64
}

// Bucket is one stored version of a bucket.
type Bucket struct {
	Revision uint64
	// Seen is when the watcher heard of it.
	Seen  time.Time
	Place Place
	// Used, Reserved and Retained are the bucket's, and Counted is its countedRevision; 0 for none.
	Used, Reserved, Retained int64
	Counted                  uint64
	Entries                  []Entry
	// Gone says that the write removed the bucket.
	Gone bool
}

// History is what happened.
type History struct {
	// Tickets and Buckets are in the order of their revisions, as Sort puts them.
	Tickets []Ticket
	Buckets []Bucket
	Rules   []Rule
}

// Sort orders the history by revisions, and the rules of each policy by generation.
func (h *History) Sort() {
	slices.SortFunc(h.Tickets, func(a, b Ticket) int { return cmp.Compare(a.Revision, b.Revision) })
	slices.SortFunc(h.Buckets, func(a, b Bucket) int { return cmp.Compare(a.Revision, b.Revision) })
	slices.SortFunc(h.Rules, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Generation, b.Generation))
	})
}

// next is the generation that followed a rule.
func (h History) next(r Rule) (Rule, bool) {
	for _, other := range h.Rules {
		if other.UID == r.UID && other.Generation == r.Generation+1 {
			return other, true
		}
	}
	return Rule{}, false
}
