package census

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// Tickets is a cache of all tickets. The store of a client-go informer is one: it changes its contents and the revision
// under one lock, an object that goes with the revision at which it went. So what is listed between two reads of the
// revision is between these two, however late the watch is.
type Tickets interface {
	// List returns all tickets, which must not be changed.
	List() []any
	// LastStoreSyncResourceVersion is the revision that the contents have; empty if the cache doesn't know it.
	LastStoreSyncResourceVersion() string
}

// Census is what the tickets of a cache claim, as of its last look. It is safe for concurrent use.
type Census struct {
	tickets           Tickets
	quotas            func() []policy.Quota
	operatorNamespace string

	mu       sync.RWMutex
	from, to string
	serving  []policy.Quota
	rows     map[types.NamespacedName]*row
	pages    map[types.NamespacedName]*page
	unasked  map[types.NamespacedName]struct{} // rows about which a policy could not be asked yet
	failing  map[types.NamespacedName]struct{} // rows on which a policy fails
	asked    uint64
	looks    uint64
}

// page is what is claimed of one bucket.
type page struct {
	claims  map[types.NamespacedName]quota.Claim // by ticket
	sampled *quota.Claim                         // see sample; nil: not known yet
	changed uint64                               // the look that found the last change
}

// New returns a census that has not looked yet. quotas lists the quotas that serve, as the engine's Quotas does.
func New(tickets Tickets, quotas func() []policy.Quota, operatorNamespace string) *Census {
	return &Census{
		tickets: tickets, quotas: quotas, operatorNamespace: operatorNamespace,
		rows: map[types.NamespacedName]*row{}, pages: map[types.NamespacedName]*page{},
		unasked: map[types.NamespacedName]struct{}{}, failing: map[types.NamespacedName]struct{}{},
	}
}

// Look brings the census up to date with the cache and the policies. Only tickets and policies that have changed are
// evaluated. Claims that can't be computed are no error here: see Problem and Uncounted.
func (c *Census) Look(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := c.tickets.LastStoreSyncResourceVersion()
	if from == "" {
		return errors.New("the cache of tickets doesn't tell its revision: it isn't filled yet, or client-go's feature AtomicFIFO is switched off")
	}
	serving := c.quotas()
	if from == c.from && c.from == c.to && same(serving, c.serving) && len(c.unasked) == 0 {
		return nil
	}
	list := c.tickets.List()
	to := c.tickets.LastStoreSyncResourceVersion()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("look at the tickets: %w", err)
	}
	c.looks++
	c.update(ctx, list, serving)
	c.from, c.to = from, to
	return nil
}

// update takes over what was listed.
func (c *Census) update(ctx context.Context, list []any, serving []policy.Quota) {
	stale, renewed := changes(c.serving, serving)
	c.serving = serving
	present := make(map[types.NamespacedName]struct{}, len(list))
	for _, object := range list {
		t, is := object.(*flightsv1.FlightTicket)
		if !is {
			continue
		}
		name := types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
		present[name] = struct{}{}
		c.enter(ctx, name, t, stale, renewed)
	}
	for name, r := range c.rows {
		if _, still := present[name]; !still {
			c.strike(name, r)
			delete(c.rows, name)
			c.unmark(name)
		}
	}
}

// enter takes over one ticket.
func (c *Census) enter(ctx context.Context, name types.NamespacedName, t *flightsv1.FlightTicket, stale map[types.UID]bool, renewed []policy.Quota) {
	r, known := c.rows[name]
	switch unasked := unaskedOf(r); {
	case !known, !alike(r.ticket, t):
		next := &row{ticket: t}
		c.asked += uint64(next.compute(ctx, c.serving))
		if known {
			c.strike(name, r)
		}
		c.add(name, next)
	case len(stale) > 0 || len(unasked) > 0:
		c.strike(name, r)
		again := slices.Clone(renewed)
		for _, q := range c.serving {
			if unasked[q.PolicyUID()] && !stale[q.PolicyUID()] {
				again = append(again, q)
			}
		}
		r.ticket = t
		r.forget(stale)
		r.forget(unasked)
		c.asked += uint64(r.compute(ctx, again))
		c.add(name, r)
	case r.ticket != t:
		r.ticket = t
		c.touch(r)
	}
}

func unaskedOf(r *row) map[types.UID]bool {
	if r == nil {
		return nil
	}
	return r.unasked()
}

// strike takes a ticket's claims out of the pages.
func (c *Census) strike(name types.NamespacedName, r *row) {
	for place := range c.places(r) {
		p := c.pages[place]
		delete(p.claims, name)
		p.sampled, p.changed = nil, c.looks
		if len(p.claims) == 0 {
			delete(c.pages, place)
		}
	}
}

// add enters a ticket and its claims.
func (c *Census) add(name types.NamespacedName, r *row) {
	c.rows[name] = r
	c.mark(name, r)
	for place, claim := range c.places(r) {
		p := c.pages[place]
		if p == nil {
			p = &page{claims: map[types.NamespacedName]quota.Claim{}}
			c.pages[place] = p
		}
		p.claims[name] = claim
		p.sampled, p.changed = nil, c.looks
	}
}

// mark notes whether a row can be counted.
func (c *Census) mark(name types.NamespacedName, r *row) {
	c.unmark(name)
	for _, by := range r.claimed {
		switch {
		case by.err == nil:
		case by.fails():
			c.failing[name] = struct{}{}
		default:
			c.unasked[name] = struct{}{}
		}
	}
}

func (c *Census) unmark(name types.NamespacedName) {
	delete(c.unasked, name)
	delete(c.failing, name)
}

// touch notes that a ticket is another one to its buckets, although its claims are the same.
func (c *Census) touch(r *row) {
	for place := range c.places(r) {
		c.pages[place].changed = c.looks
	}
}

// places are the buckets that a row charges, each with its claim.
func (c *Census) places(r *row) iter.Seq2[types.NamespacedName, quota.Claim] {
	return func(yield func(types.NamespacedName, quota.Claim) bool) {
		for _, by := range r.claimed {
			for _, claim := range by.claims {
				if !yield(claim.Place(r.ticket.Namespace, c.operatorNamespace), claim) {
					return
				}
			}
		}
	}
}

// revisionOf tells a generation of a policy from all others.
type revisionOf struct {
	uid        types.UID
	generation int64
}

func revisions(quotas []policy.Quota) map[revisionOf]policy.Quota {
	all := make(map[revisionOf]policy.Quota, len(quotas))
	for _, q := range quotas {
		all[revisionOf{q.PolicyUID(), q.PolicyGeneration()}] = q
	}
	return all
}

func same(a, b []policy.Quota) bool {
	return maps.EqualFunc(revisions(a), revisions(b), func(policy.Quota, policy.Quota) bool { return true })
}

// changes are the policies of which nothing holds any more, and the quotas that have to be asked in their place.
func changes(was, is []policy.Quota) (stale map[types.UID]bool, renewed []policy.Quota) {
	before, now := revisions(was), revisions(is)
	stale = map[types.UID]bool{}
	for r := range before {
		if _, still := now[r]; !still {
			stale[r.uid] = true
		}
	}
	for r, q := range now {
		if _, already := before[r]; !already {
			stale[r.uid] = true
			renewed = append(renewed, q)
		}
	}
	return stale, renewed
}
