package history

import (
	"cmp"
	"fmt"
	"slices"
)

// OverAdmission is a revision that stored more than a limit allows.
type OverAdmission struct {
	Place    Place
	Revision uint64
	// Ticket is whose write raised the bucket, Taken what it held from then on, Limit what it may hold.
	Ticket       string
	Taken, Limit int64
	// Generation is the policy's that was in force.
	Generation int64
}

func (o OverAdmission) String() string {
	return fmt.Sprintf("revision %d: ticket %s raised quota %q of %s (generation %d) to %d, limit %d",
		o.Revision, o.Ticket, o.Place.Key, o.Place.Policy, o.Generation, o.Taken, o.Limit)
}

// OverAdmissions returns every version of a ticket that raised a bucket above its limit while the policy was Ready. A
// limit that was lowered evicts nobody, so a bucket may stay above it, but nothing may raise it. Between the revision of
// a new generation and its Ready the larger of both limits holds, where both generations know the bucket; keys that only
// one of them knows are promised nothing meanwhile.
func (h History) OverAdmissions() []OverAdmission {
	var found []OverAdmission
	for _, r := range h.Rules {
		if r.Ready != 0 {
			found = append(found, h.overAdmissions(r)...)
		}
	}
	slices.SortFunc(found, func(a, b OverAdmission) int { return cmp.Compare(a.Revision, b.Revision) })
	return found
}

func (h History) overAdmissions(r Rule) []OverAdmission {
	var found []OverAdmission
	b := newBook(r)
	next, followed := h.next(r)
	for _, t := range h.Tickets {
		raised := b.enter(t)
		switch {
		case t.Revision <= r.Ready:
			continue
		case r.Ended != 0 && t.Revision > r.Ended && (!followed || next.Ready != 0 && t.Revision > next.Ready):
			return found
		}
		var after map[Place]Claim
		changing := r.Ended != 0 && t.Revision > r.Ended
		if changing {
			after = next.of(t)
		}
		for _, c := range raised {
			limit := c.Limit
			if changing {
				claim, both := after[c.Place]
				if !both || claim.Amount != c.Amount {
					continue
				}
				limit = max(limit, claim.Limit)
			}
			if taken := b.taken(c.Place); taken > limit {
				found = append(found, OverAdmission{c.Place, t.Revision, t.Namespace + "/" + t.Name, taken, limit, r.Generation})
			}
		}
	}
	return found
}

// Leak is a bucket that says something else than the tickets once nothing moves any more.
type Leak struct {
	Place Place
	// Used and Retained are the bucket's, with what its entries still hold in Reserved; Live and Kept are what the tickets
	// that are there claim, and what those that are gone retain.
	Used, Reserved, Retained, Live, Kept int64
	Entries                              int
	// Problem says it in words.
	Problem string
}

func (l Leak) String() string {
	return fmt.Sprintf("quota %q of %s in %q: %s: used %d, reserved %d in %d entries, retained %d; tickets claim %d, and %d is retained",
		l.Place.Key, l.Place.Policy, l.Place.Namespace, l.Problem, l.Used, l.Reserved, l.Entries, l.Retained, l.Live, l.Kept)
}

// Leaks compares the buckets at the end of the history with the tickets that are there then, under the rules that are in
// force, to the unit. Buckets of policies that no rule names are none of its business; those of an earlier policy of such a
// name are.
func (h History) Leaks() []Leak {
	expected, named := map[Place]Leak{}, map[string]bool{}
	for _, r := range h.Rules {
		named[r.Policy] = true
		if r.Ended != 0 {
			continue
		}
		b := newBook(r)
		for _, t := range h.Tickets {
			b.enter(t)
		}
		for place, live := range b.live {
			expected[place] = Leak{Place: place, Live: live, Kept: b.retained[place]}
		}
	}
	for place, b := range h.atEnd() {
		if !named[place.Policy] {
			continue
		}
		l := expected[place]
		l.Place, l.Used, l.Reserved, l.Retained, l.Entries = place, b.Used, b.Reserved, b.Retained, len(b.Entries)
		expected[place] = l
	}
	var leaks []Leak
	for _, l := range expected {
		if l.Problem = l.problem(); l.Problem != "" {
			leaks = append(leaks, l)
		}
	}
	slices.SortFunc(leaks, func(a, b Leak) int { return cmp.Compare(a.Place.Key, b.Place.Key) })
	return leaks
}

// problem says what is wrong; nothing if all is well.
func (l Leak) problem() string {
	switch {
	case l.Entries > 0 || l.Reserved != 0:
		return "entries are left"
	case l.Used > l.Live:
		return "more is used than tickets claim"
	case l.Used < l.Live:
		return "less is used than tickets claim"
	case l.Retained != l.Kept:
		return "what is retained is not what tickets left"
	}
	return ""
}

// atEnd are the buckets that are there after the last version.
func (h History) atEnd() map[Place]Bucket {
	last := map[Place]Bucket{}
	for _, b := range h.Buckets {
		last[b.Place] = b
		if b.Gone {
			delete(last, b.Place)
		}
	}
	return last
}
