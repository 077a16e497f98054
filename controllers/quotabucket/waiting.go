package quotabucket

import (
	"cmp"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// waiter is a ticket that was told to wait, and what for.
type waiter struct {
	ticket quota.Ticket
	asks   asks
}

// await notes that a ticket waits.
func (g *Gate) await(t *flightsv1.FlightTicket, a asks) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiters[nameOf(t)] = waiter{
		ticket: quota.Ticket{Name: nameOf(t), UID: t.UID, Created: t.CreationTimestamp.Time}, asks: a,
	}
}

// wake announces the tickets that would be answered otherwise now, the oldest first. Each stands for what it needs, so that
// some room wakes no more tickets than could use it. Whoever is woken and must wait again says so by asking.
func (g *Gate) wake(o observation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiters) == 0 {
		return
	}
	r := room{gate: g, quotas: o.quotas, buckets: map[place]*flightsv1.QuotaBucket{}, taken: map[place]int64{}, books: map[place]book{}}
	for _, b := range o.buckets {
		r.buckets[placeOf(b)] = b
	}
	waiting := make([]waiter, 0, len(g.waiters))
	for name, w := range g.waiters {
		if !g.census.Shows(name, w.ticket.UID) {
			delete(g.waiters, name) // it is gone
			continue
		}
		waiting = append(waiting, w)
	}
	slices.SortFunc(waiting, func(a, b waiter) int {
		return cmp.Or(a.ticket.Created.Compare(b.ticket.Created), cmp.Compare(a.ticket.UID, b.ticket.UID))
	})
	for _, w := range waiting {
		if !r.hasRoom(w) {
			continue
		}
		select {
		case g.changed <- w.ticket.Name:
			delete(g.waiters, w.ticket.Name)
		default:
			return // too many at once; the next round goes on
		}
	}
}

// room is what buckets have left as the caches show them.
type room struct {
	gate    *Gate
	quotas  map[types.UID]facts
	buckets map[place]*flightsv1.QuotaBucket
	books   map[place]book
	taken   map[place]int64 // by tickets that are woken in this round
}

// book is a bucket with its tickets, gathered once for all that wait for it.
type book struct {
	page    *quota.Page
	shown   quota.Snapshot
	tickets []quota.Ticket
}

// book opens a bucket of which the cache knows; false if it knows of none.
func (r *room) book(at place) (book, bool) {
	if open, is := r.books[at]; is {
		return open, true
	}
	b := r.buckets[at]
	if b == nil {
		return book{}, false
	}
	s := r.gate.withGrants(r.gate.census.Snapshot(at, b.PolicyUID, b.Entries))
	open := book{page: quota.Open(b), shown: s, tickets: slices.Collect(s.Tickets)}
	r.books[at] = open
	return open, true
}

// hasRoom reports whether a ticket would be told something else, and takes what it needs.
func (r *room) hasRoom(w waiter) bool {
	for _, c := range w.asks.outliving {
		if !r.departed(w, c) {
			return false
		}
	}
	for _, c := range w.asks.admitted {
		if !r.bookable(w, c) {
			return false
		}
	}
	for _, c := range w.asks.atBooking.Claims {
		at := c.Place(w.ticket.Name.Namespace, r.gate.OperatorNamespace)
		open, is := r.book(at) // one that isn't there may be made at the next attempt
		if is && (!open.page.CountedBy(c.PolicyGeneration) || open.page.Held()+r.taken[at]+c.Amount > c.Limit) {
			return false
		}
	}
	for _, c := range w.asks.atBooking.Claims {
		r.taken[c.Place(w.ticket.Name.Namespace, r.gate.OperatorNamespace)] += c.Amount
	}
	return true
}

// bookable asks a bucket as the cache shows it.
func (r *room) bookable(w waiter, c quota.Claim) bool {
	open, is := r.book(c.Place(w.ticket.Name.Namespace, r.gate.OperatorNamespace))
	if !is {
		return false
	}
	s := open.shown
	s.Tickets = slices.Values(open.tickets)
	if s.PolicyGeneration > c.PolicyGeneration {
		return open.page.CountedBy(s.PolicyGeneration) // the policy has changed; what the ticket claims now, it asks anew
	}
	var full *quota.RefusedError
	var wait *quota.NotCountedError
	err := open.page.Bookable(c, w.ticket.UID, s)
	return !errors.As(err, &full) && !errors.As(err, &wait)
}

// departed reports whether a claim is retained, or nobody asks for it any more.
func (r *room) departed(w waiter, c quota.Claim) bool {
	b := r.buckets[c.Place(w.ticket.Name.Namespace, r.gate.OperatorNamespace)]
	_, asked := r.quotas[c.PolicyUID]
	return !asked || b != nil && quota.Departed(b, w.ticket.UID)
}
