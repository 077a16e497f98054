package quota

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// Ticket is what a stored ticket means to one bucket.
type Ticket struct {
	Name       types.NamespacedName
	UID        types.UID
	Generation int64
	// Revision is the ticket's resourceVersion.
	Revision string
	// Amount is what it claims on this bucket: the larger of its spec's claim and its booked order's, until the provider
	// has confirmed a change (rule 12). 0 if it claims nothing here.
	Amount int64
	// Outlived says that the ticket is being deleted and that its amount outlives it: because the claim says retain and it had
	// a booking, or because the booking stays. Its amount is final then.
	Outlived bool
	// Created is the ticket's creation time, and Committed that it has a booking or an open operation. Only the second
	// gate reads them.
	Created   time.Time
	Committed bool
}

// Snapshot is what the controller's cache says of the tickets of one bucket.
type Snapshot struct {
	// From is the cache's revision, read before the tickets: all that was stored up to it is among them. To is read after
	// them: nothing that was stored later is. They are equal if nothing happened in between.
	From, To string
	// PolicyGeneration is the one that the amounts were computed with.
	PolicyGeneration int64
	// AtBooking says that the policy's claims are reserved just before an operation is written down, and not by admission.
	// The generation of such an entry is that of the stored ticket and settles nothing: it goes once the ticket claims what
	// it says.
	AtBooking bool
	// Floor is a revision that the count written last must not be before, so that it is written anew even if it says the
	// same, once From has come so far; empty: none.
	Floor string
	// Sample is one of the claims, of which the limit and the window are taken; nil if there is none.
	Sample *Claim
	// Tickets are all that claim on the bucket, and all others that an entry of it names. It is walked once.
	Tickets iter.Seq[Ticket]
}

// VoidError says that a count is too old to be written: a later one stands. The controller's cache is behind, as that of
// an old leader is.
type VoidError struct {
	// Revision is the count's, and Standing the one in the bucket.
	Revision, Standing string
}

func (e *VoidError) Error() string {
	return fmt.Sprintf("count of revision %s is void: revision %s is counted already", e.Revision, e.Standing)
}

// Count writes down what the tickets of a snapshot claim (rule 1). It adds nothing to what was counted before, so a
// repeat, a crash or an old leader takes nothing away twice. The error is a *VoidError or a *StaleError, and the page is
// as before.
func (p *Page) Count(s Snapshot) error {
	if err := p.countable(s); err != nil {
		return err
	}
	before := p.Bucket()
	used, counted, present := p.walk(s)
	p.bucket.Used = min(used, MaxAmount)
	p.settle(s, counted)
	p.depart(s, present)
	p.bucket.CountedRevision, p.bucket.CountedGeneration = s.From, s.PolicyGeneration
	if s.Sample != nil {
		p.touch(*s.Sample)
	}
	p.Stamp(s.PolicyGeneration)
	p.changed = p.changed || differs(before, p.Bucket()) || later(s.Floor, before.CountedRevision) && !later(s.Floor, s.From)
	return nil
}

// countable says as an error that a count must not be written.
func (p *Page) countable(s Snapshot) error {
	b := p.bucket
	if s.PolicyGeneration < b.PolicyGeneration {
		return &StaleError{Policy: b.Policy, Generation: s.PolicyGeneration, Newest: b.PolicyGeneration}
	}
	for _, revision := range []string{s.From, s.To} {
		if _, err := resourceversion.CompareResourceVersion(revision, revision); err != nil {
			return fmt.Errorf("count a quota bucket: %w", err)
		}
	}
	if later(b.CountedRevision, s.From) {
		return &VoidError{Revision: s.From, Standing: b.CountedRevision}
	}
	return nil
}

// later reports whether one revision is after another. What is empty is before all.
func later(a, b string) bool {
	if a == "" || b == "" {
		return a != ""
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

// walk adds up the amounts, moves what outlives its ticket to retained, and remembers the tickets that entries name and
// the departures that are still there.
func (p *Page) walk(s Snapshot) (used int64, counted map[types.NamespacedName]Ticket, present map[types.UID]bool) {
	counted, present = map[types.NamespacedName]Ticket{}, map[types.UID]bool{}
	departed := map[types.UID]bool{}
	for _, d := range p.bucket.Departures {
		departed[d.UID] = true
	}
	for t := range s.Tickets {
		if !departed[t.UID] && s.departs(t) && !p.namesake(t) && len(p.bucket.Departures) < MaxDepartures {
			p.bucket.Departures = append(p.bucket.Departures, flightsv1.QuotaDeparture{UID: t.UID})
			p.bucket.Retained = min(plus(p.bucket.Retained, t.Amount), MaxAmount)
			departed[t.UID] = true
		}
		if departed[t.UID] {
			present[t.UID], t.Amount = true, 0
		}
		used = plus(used, t.Amount)
		if _, named := p.tickets[t.Name]; named {
			counted[t.Name] = t
		}
	}
	return used, counted, present
}

// departs reports whether a ticket's amount is to move to retained. Not so if the ticket was written after From: a later
// count of a revision in between may not have it yet, and would take it for gone.
func (s Snapshot) departs(t Ticket) bool {
	return t.Outlived && t.Amount > 0 && !later(t.Revision, s.From)
}

// namesake reports whether an entry of another ticket of that name is open. Of the two only the larger is held, since only
// one can be stored at a time; what is retained stays beside the other, and nobody asked whether both fit. Such an entry
// ages soon: its ticket can't be stored before this one is gone.
func (p *Page) namesake(t Ticket) bool {
	return slices.ContainsFunc(p.bucket.Entries, func(e flightsv1.QuotaEntry) bool {
		return e.UID != t.UID && e.Name == t.Name.Name && e.Namespace == t.Name.Namespace
	})
}

// settle drops the entries whose ticket is counted at their generation or later, and writes anew how much of the others'
// tickets used contains. A ticket that was written after From doesn't count for the first: a later count of a revision in
// between may lack it, and would then find no entry either.
func (p *Page) settle(s Snapshot, counted map[types.NamespacedName]Ticket) {
	kept := make([]flightsv1.QuotaEntry, 0, len(p.bucket.Entries))
	for _, e := range p.bucket.Entries {
		t, found := counted[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}]
		if found && s.settles(e, t) {
			continue
		}
		e.Settled = t.Amount
		kept = append(kept, e)
	}
	p.bucket.Entries = kept
	p.index()
}

// settles reports whether an entry's ticket is counted for what the entry was made for.
func (s Snapshot) settles(e flightsv1.QuotaEntry, t Ticket) bool {
	return Stored(e, t.UID, t.Generation) && !later(t.Revision, s.From) && (!s.AtBooking || t.Amount >= e.Amount)
}

// depart forgets departures whose tickets are gone for every count to come. A snapshot that mixes revisions may lack a
// ticket that a later count, of a revision in between, still has: that count must find the departure, or the amount would
// be retained twice.
func (p *Page) depart(s Snapshot, present map[types.UID]bool) {
	kept := make([]flightsv1.QuotaDeparture, 0, len(p.bucket.Departures))
	for _, d := range p.bucket.Departures {
		if !present[d.UID] && d.GoneBy == "" {
			d.GoneBy = s.To
		}
		if d.GoneBy == "" || later(d.GoneBy, s.From) {
			kept = append(kept, d)
		}
	}
	p.bucket.Departures = kept
}

// differs reports whether a bucket has to be written again. The counted revision alone is no reason: it would be a write
// for each change of any ticket.
func differs(a, b *flightsv1.QuotaBucket) bool {
	return a.Used != b.Used || a.Retained != b.Retained || a.Limit != b.Limit || a.Policy != b.Policy ||
		a.Available != b.Available || a.PolicyGeneration != b.PolicyGeneration || !a.Resets.Equal(b.Resets) ||
		a.CountedRevision == "" || a.CountedGeneration != b.CountedGeneration ||
		!slices.Equal(a.Entries, b.Entries) || !slices.Equal(a.Departures, b.Departures)
}

// Departed reports whether a ticket's amount is in retained, so that the ticket may go (rule 12).
func Departed(b *flightsv1.QuotaBucket, ticket types.UID) bool {
	return slices.ContainsFunc(b.Departures, func(d flightsv1.QuotaDeparture) bool { return d.UID == ticket })
}

// Stored reports whether what an entry's review admitted is stored, or was overtaken: the ticket is there at the entry's
// generation or a later one.
func Stored(e flightsv1.QuotaEntry, uid types.UID, generation int64) bool {
	return e.UID == uid && generation >= e.Generation
}
