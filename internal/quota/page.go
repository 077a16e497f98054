package quota

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

const (
	// MaxEntryBytes bounds the entries of a bucket, as JSON: each write carries them all. Beyond it a review is told
	// that the bucket is busy.
	MaxEntryBytes = 256 << 10
	// MaxEntries bounds their number, as the kind does; so the sum of their amounts stays below 2^63.
	MaxEntries = 1000
	// MaxDepartures bounds the tickets that leave a bucket at the same time; more wait for the next count.
	MaxDepartures = 512
	// entryOverhead is what an entry takes in JSON beyond its texts: names of values, quotes, and four numbers of at most
	// 19 digits.
	entryOverhead = 140
)

// Page is a bucket that is being worked on: a running copy, to which several claims are applied one after the other and
// which is then written at once. It is not safe for concurrent use. What it was opened from stays as it is.
type Page struct {
	bucket  flightsv1.QuotaBucket
	tickets map[types.NamespacedName]holding // of the open entries
	beyond  int64                            // sum of held less settled over tickets
	bytes   int                              // of the entries, at most
	changed bool
}

// holding is what the open entries of one ticket say.
type holding struct {
	settled int64 // the smallest: used contains at least this much of the ticket
	largest int64 // the largest amount
}

// beyond is what the ticket holds that used doesn't contain (rule 2). The largest counts, not the sum: two updates are
// reviewed as the same next generation, and only one of them is stored.
func (h holding) beyond() int64 { return max(h.settled, h.largest) - h.settled }

// Open starts from a bucket that was read.
func Open(b *flightsv1.QuotaBucket) *Page {
	p := &Page{bucket: *b.DeepCopy()}
	p.index()
	return p
}

// Blank starts from the bucket that a claim needs and that isn't there: empty, never counted, to be created.
func Blank(c Claim, place types.NamespacedName) *Page {
	b := flightsv1.QuotaBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: place.Namespace, Name: place.Name},
		Policy:     c.Policy, PolicyUID: c.PolicyUID, Scope: c.Scope, Key: c.Key,
	}
	p := &Page{bucket: b, tickets: map[types.NamespacedName]holding{}}
	p.touch(c)
	p.changed = false // nothing has happened in it yet
	return p
}

// Bucket is the bucket to write, with the sums that people read. Its resourceVersion is the one that was read.
func (p *Page) Bucket() *flightsv1.QuotaBucket {
	b := p.bucket.DeepCopy()
	b.Reserved = min(p.beyond, MaxAmount)
	b.Available = max(0, b.Limit-p.Held())
	if b.DeletionTimestamp.IsZero() && !slices.Contains(b.Finalizers, flightsv1.QuotaFinalizer) {
		b.Finalizers = append(b.Finalizers, flightsv1.QuotaFinalizer)
	}
	return b
}

// Changed reports whether the page differs from what it was opened from, so that it has to be written.
func (p *Page) Changed() bool { return p.changed }

// Held is what is taken in all: used, what open entries hold beyond it, and retained. Above MaxAmount it says overfull,
// which fits no limit.
func (p *Page) Held() int64 { return plus(plus(p.bucket.Used, p.beyond), p.bucket.Retained) }

// NeverCounted reports that no count has been written: then used is 0 because nobody looked. Whether it may be believed
// only the policy's countedGeneration can tell (rule 7).
func (p *Page) NeverCounted() bool { return p.bucket.CountedRevision == "" }

// CountedBy reports whether used is what a policy generation makes of the tickets. An earlier generation may have measured
// them in another way, and a bucket that a review of this one has touched says nothing about who counted it (rule 7).
func (p *Page) CountedBy(policyGeneration int64) bool { return CountedBy(&p.bucket, policyGeneration) }

// CountedBy is that of a bucket that was read.
func CountedBy(b *flightsv1.QuotaBucket, policyGeneration int64) bool {
	return b.CountedRevision != "" && b.CountedGeneration >= policyGeneration
}

// CountedSince reports whether the count that was written last has all that was stored up to a revision.
func (p *Page) CountedSince(revision string) bool { return !later(revision, p.bucket.CountedRevision) }

// Belongs says as an error that the bucket is not the claim's. Its name is a hash of the same three, so only a bucket
// that others wrote can differ.
func (p *Page) Belongs(c Claim) error {
	if b := p.bucket; b.PolicyUID != c.PolicyUID || b.Scope != c.Scope || b.Key != c.Key {
		return fmt.Errorf("quota bucket %s/%s is not that of policy %s and key %q: it was not written by this operator, a cluster admin has to delete it",
			b.Namespace, b.Name, c.Policy, c.Key)
	}
	return nil
}

// Drained reports that no entry of an earlier policy generation is open: what was admitted under it is stored and
// counted, or never will be (rule 8).
func (p *Page) Drained(policyGeneration int64) bool {
	return !slices.ContainsFunc(p.bucket.Entries, func(e flightsv1.QuotaEntry) bool { return e.PolicyGeneration < policyGeneration })
}

// windowGrace is how long a window's bucket stays after the window's end, for clocks and time zones that differ.
const windowGrace = 24 * time.Hour

// Removable reports whether nothing is lost with the bucket (rule 7): nothing is used, open or on its way to retained,
// what is retained is of a window that is over, and a window ended at least a day ago.
func (p *Page) Removable(now time.Time) bool {
	b := p.bucket
	if b.Used > 0 || len(b.Entries) > 0 || len(b.Departures) > 0 || p.NeverCounted() {
		return false
	}
	if b.Resets.IsZero() {
		return b.Retained == 0
	}
	return now.Sub(b.Resets.Time) >= windowGrace
}

// Stamp raises the policy generation, so that claims of an earlier one are refused from the write on (rule 8).
func (p *Page) Stamp(policyGeneration int64) {
	if policyGeneration > p.bucket.PolicyGeneration {
		p.bucket.PolicyGeneration, p.changed = policyGeneration, true
	}
}

// touch takes over what a claim says about the whole bucket, and its policy generation.
func (p *Page) touch(c Claim) {
	p.Stamp(c.PolicyGeneration)
	p.bucket.Policy, p.bucket.Limit = c.Policy, c.Limit
	p.bucket.Resets = nil
	if !c.Resets.IsZero() {
		p.bucket.Resets = &metav1.Time{Time: c.Resets.UTC().Truncate(time.Second)} // as it is stored
	}
}

// Release takes away the entries of some reviews. Nonces that aren't there are no error: releases are repeated.
func (p *Page) Release(nonces ...string) {
	kept := slices.DeleteFunc(p.bucket.Entries, func(e flightsv1.QuotaEntry) bool { return slices.Contains(nonces, e.Nonce) })
	if len(kept) < len(p.bucket.Entries) {
		p.replace(kept)
	}
}

// replace sets the entries.
func (p *Page) replace(entries []flightsv1.QuotaEntry) {
	p.bucket.Entries, p.changed = entries, true
	p.index()
}

// index computes the sums over the entries anew.
func (p *Page) index() {
	p.tickets, p.beyond, p.bytes = make(map[types.NamespacedName]holding, len(p.bucket.Entries)), 0, 0
	for _, e := range p.bucket.Entries {
		p.enter(e)
	}
}

// enter adds an entry to the sums.
func (p *Page) enter(e flightsv1.QuotaEntry) {
	ticket := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
	h, open := p.tickets[ticket]
	if !open {
		h.settled = e.Settled
	} else {
		p.beyond -= h.beyond()
	}
	h.settled, h.largest = min(h.settled, e.Settled), max(h.largest, e.Amount)
	p.tickets[ticket] = h
	p.beyond += h.beyond()
	p.bytes += size(e)
}

// size is what an entry takes in JSON, at most.
func size(e flightsv1.QuotaEntry) int {
	return entryOverhead + len(e.Nonce) + len(e.Namespace) + len(e.Name) + len(e.UID)
}
