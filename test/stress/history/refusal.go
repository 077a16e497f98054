package history

import (
	"cmp"
	"slices"
	"time"
)

// Refusal is one quota that somebody was told has no room, in the numbers of the answer.
type Refusal struct {
	Place Place
	// Asked and Answered are when the request was sent, and when its answer came.
	Asked, Answered time.Time
	// Requested is the whole claim and Old the stored ticket's.
	Requested, Old, Limit, Used, Reserved, Retained int64
}

// Reason is why a refusal was given.
type Reason string

// The reasons of a refusal.
const (
	// Full: the stored claims left no room.
	Full Reason = "no room by what is stored"
	// InFlight: they left room, and admissions that were not counted yet took it.
	InFlight Reason = "room, taken by entries in flight"
	// Behind: they left room, and tickets that had gone or shrunk were not counted off yet.
	Behind Reason = "room, of tickets that went and were not counted off yet"
	// Unexplained: they left room, and nothing took it.
	Unexplained Reason = "room, and nothing explains it"
)

// Explain says why each of the refusals was given. The watcher may hear of a version later than somebody is answered; slack
// says by how much.
func (h History) Explain(refusals []Refusal, slack time.Duration) []Reason {
	e := newExplainer(h)
	reasons := make([]Reason, len(refusals))
	for i, r := range refusals {
		reasons[i] = e.explain(r, slack)
	}
	return reasons
}

// sum is what the stored tickets took of a bucket from a revision on.
type sum struct {
	revision uint64
	seen     time.Time
	taken    int64
}

type explainer struct {
	sums    map[Place][]sum
	buckets map[Place][]Bucket
}

func newExplainer(h History) explainer {
	e := explainer{map[Place][]sum{}, map[Place][]Bucket{}}
	for _, b := range h.Buckets {
		e.buckets[b.Place] = append(e.buckets[b.Place], b)
	}
	for _, r := range h.Rules {
		b := newBook(r)
		for _, t := range h.Tickets {
			touched := b.held[t.UID]
			b.enter(t)
			for _, claims := range []map[Place]Claim{touched, b.held[t.UID]} {
				for place := range claims {
					e.sums[place] = append(e.sums[place], sum{t.Revision, t.Seen, b.taken(place)})
				}
			}
		}
	}
	for _, sums := range e.sums { // of several generations
		slices.SortStableFunc(sums, func(a, b sum) int { return cmp.Compare(a.revision, b.revision) })
	}
	return e
}

// explain finds the versions of the bucket that the answer may rest on: those that stood while the request was on its way.
func (e explainer) explain(r Refusal, slack time.Duration) Reason {
	need := r.Requested - r.Old
	versions := standing(e.buckets[r.Place], r.Asked.Add(-slack), r.Answered.Add(slack))
	if len(versions) == 0 { // a bucket that was never written
		return roomy(need <= r.Limit-r.Used-r.Reserved-r.Retained, r)
	}
	last := versions[len(versions)-1]
	if e.least(r.Place, r.Asked.Add(-slack), r.Answered.Add(slack))+need > r.Limit {
		return Full
	}
	inFlight, from, found := int64(0), last.Counted, false
	seen := map[string]bool{}
	for _, v := range versions {
		if v.Used == r.Used && v.Retained == r.Retained {
			found = true
		}
		from = min(from, v.Counted)
		for _, entry := range v.Entries {
			if !seen[entry.Nonce] {
				seen[entry.Nonce], inFlight = true, inFlight+entry.Amount
			}
		}
	}
	switch {
	case r.Used+r.Reserved+r.Retained+need <= r.Limit, r.Reserved > inFlight, !found:
		return Unexplained
	case r.Reserved > 0:
		return InFlight
	case r.Used+r.Retained <= e.most(r.Place, from, last.Revision):
		return Behind
	}
	return Unexplained
}

// roomy judges a refusal by an empty bucket.
func roomy(room bool, r Refusal) Reason {
	if room || r.Used+r.Reserved+r.Retained > 0 {
		return Unexplained
	}
	return Full
}

// standing are the versions that were the newest at some moment of a span.
func standing(versions []Bucket, from, to time.Time) []Bucket {
	start, end := 0, 0
	for i, v := range versions {
		if !v.Seen.After(from) {
			start = i
		}
		if !v.Seen.After(to) {
			end = i + 1
		}
	}
	return versions[min(start, end):end]
}

// least is the least that was taken of a bucket in a span.
func (e explainer) least(p Place, from, to time.Time) int64 {
	before, within := int64(0), []int64(nil)
	for _, s := range e.sums[p] {
		switch {
		case !s.seen.After(from):
			before = s.taken
		case !s.seen.After(to):
			within = append(within, s.taken)
		}
	}
	return slices.Min(append(within, before))
}

// most is the most that was taken of a bucket between two revisions.
func (e explainer) most(p Place, from, to uint64) int64 {
	before, within := int64(0), []int64(nil)
	for _, s := range e.sums[p] {
		switch {
		case s.revision <= from:
			before = s.taken
		case s.revision <= to:
			within = append(within, s.taken)
		}
	}
	return slices.Max(append(within, before))
}
