package census

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// Revisions are those between which the last look was taken. They are the revision of the informer's own store, not that
// of its watch: an event that has arrived and isn't in the store yet doesn't count.
func (c *Census) Revisions() (from, to string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.from, c.to
}

// Shows reports whether a ticket was there at the last look.
func (c *Census) Shows(name types.NamespacedName, uid types.UID) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	r := c.rows[name]
	return r != nil && r.ticket.UID == uid
}

// Asked is how often a policy was asked about a ticket so far.
func (c *Census) Asked() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.asked
}

// Quotas are the quotas by which the last look counted.
func (c *Census) Quotas() []policy.Quota {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.serving)
}

// Places are the buckets that stored tickets charge.
func (c *Census) Places() map[types.NamespacedName]Charged {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[types.NamespacedName]Charged, len(c.pages))
	for place, p := range c.pages {
		all[place] = Charged{Sample: p.sample(), Version: p.changed}
	}
	return all
}

// Charged is a bucket that stored tickets charge.
type Charged struct {
	// Sample is one of their claims.
	Sample quota.Claim
	// Version is another one after each change of the bucket's tickets.
	Version uint64
}

// Problem says why the tickets can't be counted under a policy yet: it could not be asked about one of them, which must
// not be taken for one that claims nothing. Nil if it was.
func (c *Census) Problem(of types.UID) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	count, example, err := c.find(c.unasked, func(by claimed) bool { return by.policy == of && by.err != nil && !by.fails() })
	if err == nil {
		return nil
	}
	return fmt.Errorf("%d stored tickets can't be counted, such as %s: %w", count, example, err)
}

// Uncounted says which tickets are in no sum, since the policy fails on them; nil if there are none. What such a ticket
// takes nobody knows. It must not hold up the count of the others: its author would decide over everybody's quota.
func (c *Census) Uncounted(of types.UID) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	count, example, err := c.find(c.failing, func(by claimed) bool { return by.policy == of && by.fails() })
	if err == nil {
		return nil
	}
	return fmt.Errorf("%d stored tickets are not counted, since the policy fails on them, such as %s: %w", count, example, err)
}

// find counts the rows of which something is true, and returns the first by name with its error. The caller holds mu.
func (c *Census) find(among map[types.NamespacedName]struct{}, is func(claimed) bool) (count int, example string, err error) {
	for name := range among {
		for _, by := range c.rows[name].claimed {
			if !is(by) {
				continue
			}
			count++
			if err == nil || name.String() < example {
				example, err = name.String(), by.err
			}
		}
	}
	return count, example, err
}

// Snapshot is what the tickets claim of one bucket, and what they are that its entries name (rule 1). The policy
// generation is the one that serves; 0, which no bucket takes for one, if the policy has no quota any more.
func (c *Census) Snapshot(place types.NamespacedName, of types.UID, entries []flightsv1.QuotaEntry) quota.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := quota.Snapshot{From: c.from, To: c.to}
	for _, q := range c.serving {
		if q.PolicyUID() == of {
			s.PolicyGeneration, s.AtBooking = q.PolicyGeneration(), q.Stage() == policy.StageBooking
		}
	}
	tickets := c.charging(place)
	if p := c.pages[place]; p != nil {
		sample := p.sample()
		s.Sample = &sample
	}
	s.Tickets = c.withNamed(tickets, entries)
	return s
}

// charging lists the tickets that charge a bucket. The caller holds mu.
func (c *Census) charging(place types.NamespacedName) map[types.NamespacedName]quota.Ticket {
	p := c.pages[place]
	if p == nil {
		return map[types.NamespacedName]quota.Ticket{}
	}
	all := make(map[types.NamespacedName]quota.Ticket, len(p.claims))
	for name, claim := range p.claims {
		all[name] = entry(c.rows[name].ticket, claim)
	}
	return all
}

// withNamed adds the tickets that entries name and that claim nothing. The caller holds mu.
func (c *Census) withNamed(tickets map[types.NamespacedName]quota.Ticket, entries []flightsv1.QuotaEntry) iter.Seq[quota.Ticket] {
	for _, e := range entries {
		name := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
		if _, charges := tickets[name]; charges {
			continue
		}
		if r := c.rows[name]; r != nil {
			tickets[name] = entry(r.ticket, quota.Claim{})
		}
	}
	return func(yield func(quota.Ticket) bool) {
		for _, t := range tickets {
			if !yield(t) {
				return
			}
		}
	}
}

// sample is the claim with the lowest limit, so that it is the same one at each look. Policies may give tickets of one
// bucket different limits; people are shown the lowest.
func (p *page) sample() quota.Claim {
	if p.sampled == nil {
		for _, claim := range p.claims {
			if p.sampled == nil || compare(claim, *p.sampled) < 0 {
				p.sampled = &claim
			}
		}
	}
	return *p.sampled
}

func compare(a, b quota.Claim) int {
	return cmp.Or(cmp.Compare(a.Limit, b.Limit), a.Resets.Compare(b.Resets), cmp.Compare(a.WarnAt, b.WarnAt))
}
