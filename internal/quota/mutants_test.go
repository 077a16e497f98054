package quota_test

import (
	"iter"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// mutants are the ledger with one rule taken out. Where a rule is about what a page holds, the page is altered before or
// after the function that follows the rule.
var mutants = []struct {
	rule   string
	mutate func(*rules)
	since  uint64 // the seed to begin with, where the first that finds it out is far away
}{
	{rule: "1: a count is void if a later one stands", mutate: func(r *rules) {
		r.count = countAfter(func(b *flightsv1.QuotaBucket) { b.CountedRevision = "" })
	}},
	{rule: "1: an entry goes only once its ticket is in every count to come", mutate: func(r *rules) {
		r.count = func(p *quota.Page, s quota.Snapshot) error {
			s.Tickets = writtenAt(s.From, s.Tickets, func(t quota.Ticket) bool { return !t.Outlived })
			return p.Count(s)
		}
	}},
	{rule: "1: settled is written anew with each count", mutate: func(r *rules) { r.count = countThatKeepsSettled }},
	{rule: "2: the largest of a ticket's entries counts, not the last", mutate: func(r *rules) {
		r.reserve = reserveAnd(func(b *flightsv1.QuotaBucket, own quota.Reservation) {
			b.Entries = slices.DeleteFunc(b.Entries, func(e flightsv1.QuotaEntry) bool {
				return e.Name == own.Ticket.Name && e.Nonce != own.Nonce
			})
		})
	}},
	{rule: "3: an answer rests on the review's own entry", mutate: func(r *rules) {
		r.reserve = func(p *quota.Page, own quota.Reservation) error {
			if slices.ContainsFunc(p.Bucket().Entries, func(e flightsv1.QuotaEntry) bool {
				return e.UID == own.UID && e.Generation == own.Generation && e.Amount >= own.Amount
			}) {
				return nil
			}
			return p.Reserve(own)
		}
	}},
	{rule: "4: settled is at most that of the ticket's open entries", mutate: func(r *rules) {
		r.reserve = reserveAnd(func(b *flightsv1.QuotaBucket, own quota.Reservation) {
			for i := range b.Entries {
				if b.Entries[i].Name == own.Ticket.Name {
					b.Entries[i].Settled = own.Old
				}
			}
		})
	}},
	{rule: "5: what is no raise always fits", mutate: func(r *rules) {
		r.reservations = func(review quota.Review, nonce string) ([]quota.Reservation, error) {
			review.Old = nil
			return review.Reservations(nonce)
		}
	}},
	{rule: "6: a review takes back its own entries only", mutate: func(r *rules) {
		r.release = func(p *quota.Page, own quota.Reservation) {
			for _, e := range p.Bucket().Entries {
				if e.UID == own.UID {
					p.Release(e.Nonce)
				}
			}
		}
	}},
	{rule: "7: a bucket that an earlier generation counted isn't believed", mutate: func(r *rules) {
		r.believed = func(*quota.Page, int64) bool { return true }
	}, since: 14_000},
	{rule: "8: a claim of an earlier policy generation is refused", mutate: func(r *rules) {
		r.reserve = func(p *quota.Page, own quota.Reservation) error {
			return altered(p, func(b *flightsv1.QuotaBucket) { b.PolicyGeneration = 1 }, func(p *quota.Page) error { return p.Reserve(own) }, nil)
		}
	}},
	{rule: "9: entries are left alone for longer than a request lives", mutate: func(r *rules) {
		r.overdue = func(a quota.Ages, entries []flightsv1.QuotaEntry, now time.Time) []flightsv1.QuotaEntry {
			return a.Overdue(entries, now, 0)
		}
	}},
	{rule: "9: an entry whose ticket is stored waits for the count", mutate: func(r *rules) {
		r.stored = func(flightsv1.QuotaEntry, types.UID, int64) bool { return false }
	}},
	{rule: "10: a write goes through only if nobody else wrote", mutate: func(r *rules) {
		r.fits = func(string, string) bool { return true }
	}},
	{rule: "12: a ticket is moved to retained once", mutate: func(r *rules) {
		r.count = countAfter(func(b *flightsv1.QuotaBucket) { b.Departures = nil })
	}},
	{rule: "12: a ticket is moved to retained only once it is in every count to come", mutate: func(r *rules) {
		r.count = func(p *quota.Page, s quota.Snapshot) error {
			s.Tickets = writtenAt(s.From, s.Tickets, func(t quota.Ticket) bool { return t.Outlived })
			return p.Count(s)
		}
	}, since: 23_000},
	{rule: "12: a departure is remembered until no count to come has the ticket", mutate: func(r *rules) {
		r.count = func(p *quota.Page, s quota.Snapshot) error {
			return altered(p, nil, func(p *quota.Page) error { return p.Count(s) }, func(b *flightsv1.QuotaBucket) {
				b.Departures = slices.DeleteFunc(b.Departures, func(d flightsv1.QuotaDeparture) bool { return d.GoneBy != "" })
			})
		}
	}},
}

// Each rule is there because something breaks without it.
func TestTheWalksFindOutWhenARuleIsTakenOut(t *testing.T) {
	for _, mutant := range mutants {
		t.Run(mutant.rule, func(t *testing.T) {
			t.Parallel()
			r := asDesigned()
			mutant.mutate(&r)
			for more := range uint64(100_000) {
				if broken := walk(mutant.since+more, r); broken != "" {
					t.Logf("found out by seed %d", mutant.since+more)
					return
				}
			}
			t.Error("no walk broke a promise")
		})
	}
}

// altered opens the page's bucket anew with something else in it, works on it, and alters the outcome.
func altered(p *quota.Page, before func(*flightsv1.QuotaBucket), do func(*quota.Page) error, after func(*flightsv1.QuotaBucket)) error {
	b := p.Bucket()
	if before != nil {
		before(b)
	}
	q := quota.Open(b)
	if err := do(q); err != nil {
		return err
	}
	b = q.Bucket()
	if after != nil {
		after(b)
	}
	// An entry that comes and goes makes the page one that has to be written.
	b.Entries = append(b.Entries, flightsv1.QuotaEntry{Nonce: "passing", Name: "nobody"})
	*p = *quota.Open(b)
	p.Release("passing")
	return nil
}

func countAfter(before func(*flightsv1.QuotaBucket)) func(*quota.Page, quota.Snapshot) error {
	return func(p *quota.Page, s quota.Snapshot) error {
		return altered(p, before, func(p *quota.Page) error { return p.Count(s) }, nil)
	}
}

func reserveAnd(after func(*flightsv1.QuotaBucket, quota.Reservation)) func(*quota.Page, quota.Reservation) error {
	return func(p *quota.Page, own quota.Reservation) error {
		return altered(p, nil, func(p *quota.Page) error { return p.Reserve(own) }, func(b *flightsv1.QuotaBucket) { after(b, own) })
	}
}

func countThatKeepsSettled(p *quota.Page, s quota.Snapshot) error {
	was := map[string]int64{}
	for _, e := range p.Bucket().Entries {
		was[e.Nonce] = e.Settled
	}
	return altered(p, nil, func(p *quota.Page) error { return p.Count(s) }, func(b *flightsv1.QuotaBucket) {
		for i := range b.Entries {
			b.Entries[i].Settled = was[b.Entries[i].Nonce]
		}
	})
}

// writtenAt says of some tickets that they were written at a revision.
func writtenAt(revision string, tickets iter.Seq[quota.Ticket], some func(quota.Ticket) bool) iter.Seq[quota.Ticket] {
	return func(yield func(quota.Ticket) bool) {
		for t := range tickets {
			if some(t) {
				t.Revision = revision
			}
			if !yield(t) {
				return
			}
		}
	}
}
