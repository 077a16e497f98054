package quota_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// The times of the small world, in steps. A request that has not been stored within its life never will be; entries are
// looked at after a longer time.
const (
	requestLife = 25
	patience    = 40
)

// rules are the parts of the ledger that a walk uses. A mutant replaces one of them.
type rules struct {
	reservations func(quota.Review, string) ([]quota.Reservation, error)
	reserve      func(*quota.Page, quota.Reservation) error
	release      func(*quota.Page, quota.Reservation) // by the review itself
	count        func(*quota.Page, quota.Snapshot) error
	overdue      func(quota.Ages, []flightsv1.QuotaEntry, time.Time) []flightsv1.QuotaEntry
	stored       func(flightsv1.QuotaEntry, types.UID, int64) bool
	fits         func(read, standing string) bool // may a write go through?
	believed     func(*quota.Page, int64) bool    // was the bucket counted by a policy generation?
}

func asDesigned() rules {
	return rules{
		reservations: quota.Review.Reservations,
		reserve:      (*quota.Page).Reserve,
		release:      func(p *quota.Page, r quota.Reservation) { p.Release(r.Nonce) },
		count:        (*quota.Page).Count,
		overdue: func(a quota.Ages, entries []flightsv1.QuotaEntry, now time.Time) []flightsv1.QuotaEntry {
			return a.Overdue(entries, now, patience*time.Second)
		},
		stored:   quota.Stored,
		fits:     func(read, standing string) bool { return read == standing },
		believed: (*quota.Page).CountedBy,
	}
}

// object is a ticket as the API server stores it.
type object struct {
	uid      types.UID
	gen      int64
	rev      int
	amount   int64
	deleting bool
}

// flight is an admission request on its way: reviewed, held, stored or lost.
type flight struct {
	name    string
	old     *object // what it was reviewed against; nil: a create
	uid     types.UID
	gen     int64
	amount  int64
	polgen  int64
	started int

	asked   *quota.Reservation // nil: nothing to hold
	page    *quota.Page        // read, and not yet written back
	read    string
	allowed bool
	over    bool
}

// keeper is a controller. Two run at the same time, as a leader and an old leader that nobody has stopped.
type keeper struct {
	cache int // its revision
	ages  quota.Ages

	page *quota.Page // read, and not yet written back
	read string
	snap quota.Snapshot
	drop []string // nonces to release
}

// world is an API server with one bucket, seen through caches that lag.
type world struct {
	*rand.Rand
	rules
	retains  bool // the claims outlive their tickets
	reprices bool // generations of the policy measure tickets in different ways

	rev, clock int
	live       map[string]*object
	history    map[string][]object // by name; amount -1: gone
	bucket     *flightsv1.QuotaBucket
	limits     []int64 // by policy generation
	prices     []int64 // by policy generation: how often it counts what a ticket asks for
	touched    int64   // the highest generation that an allowed reservation or a count had
	retained   int64   // as it must be
	flights    []*flight
	created    map[types.UID]bool
	keepers    [2]*keeper
	made       int // for names that occur once

	broken string // the first promise that didn't hold
	log    []string
}

const placeName = "ledger"

func newWorld(seed uint64, r rules) *world {
	w := &world{
		Rand: rand.New(rand.NewPCG(seed, 7)), rules: r, live: map[string]*object{}, history: map[string][]object{},
		created: map[types.UID]bool{}, rev: 1, limits: []int64{0, 6}, touched: 1,
	}
	w.retains = w.IntN(3) == 0
	w.reprices = !w.retains && seed%2 == 0 // what is retained stays at the price that it was retained at
	w.prices = []int64{0, w.price()}
	for i := range w.keepers {
		w.keepers[i] = &keeper{cache: 1, ages: quota.Ages{}}
	}
	page := quota.Blank(w.claim(0, 1), types.NamespacedName{Namespace: placeName, Name: placeName})
	if err := page.Count(w.snapshot(1, 1, 1)); err != nil {
		panic(err)
	}
	w.put(page, "")
	return w
}

func (w *world) claim(amount, polgen int64) quota.Claim {
	return quota.Claim{
		Policy: "seats", PolicyUID: "p", PolicyGeneration: polgen, Key: "k", Scope: quota.Namespace,
		Amount: amount * w.prices[polgen], Limit: w.limits[polgen], Retain: w.retains,
	}
}

// price is how often the next generation counts what a ticket asks for.
func (w *world) price() int64 {
	if w.reprices {
		return 1 + int64(len(w.limits)+w.clock)%2
	}
	return 1
}

func (w *world) generation() int64 { return int64(len(w.limits) - 1) }

func (w *world) next() int { w.rev++; return w.rev }

func (w *world) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%d@%d ", w.clock, w.rev)+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

// put writes a page back if the bucket is the one that was read.
func (w *world) put(p *quota.Page, read string) bool {
	if w.bucket != nil && !w.fits(read, w.bucket.ResourceVersion) {
		return false
	}
	b := p.Bucket()
	b.ResourceVersion = strconv.Itoa(w.next())
	w.bucket = b
	return true
}

func (w *world) get() (*quota.Page, string) { return quota.Open(w.bucket), w.bucket.ResourceVersion }

// store changes a ticket.
func (w *world) store(name string, o *object) {
	rev := w.next()
	if o == nil {
		delete(w.live, name)
		w.history[name] = append(w.history[name], object{rev: rev, amount: -1})
		return
	}
	o.rev = rev
	w.created[o.uid] = true
	w.live[name] = o
	w.history[name] = append(w.history[name], *o)
}

// at is a ticket as of a revision; nil if it wasn't there.
func (w *world) at(name string, rev int) *object {
	var found *object
	for _, o := range w.history[name] {
		if o.rev > rev {
			break
		}
		found = &o
	}
	if found == nil || found.amount < 0 {
		return nil
	}
	return found
}

// snapshot shows each ticket as of some revision between two.
func (w *world) snapshot(from, to int, polgen int64) quota.Snapshot {
	var tickets []quota.Ticket
	for _, name := range slices.Sorted(maps.Keys(w.history)) {
		o := w.at(name, from+w.IntN(to-from+1))
		if o == nil {
			continue
		}
		tickets = append(tickets, quota.Ticket{
			Name: types.NamespacedName{Namespace: "team", Name: name}, UID: o.uid, Generation: o.gen, Revision: strconv.Itoa(o.rev),
			Amount: o.amount * w.prices[polgen], Outlived: o.deleting && w.retains,
		})
	}
	sample := w.claim(0, polgen)
	return quota.Snapshot{
		From: strconv.Itoa(from), To: strconv.Itoa(to), PolicyGeneration: polgen, Sample: &sample, Tickets: slices.Values(tickets),
	}
}

// lands reports whether a flight may still be stored.
func (w *world) lands(f *flight) bool {
	now := w.live[f.name]
	switch {
	case f.over || !f.allowed || w.clock-f.started > requestLife:
		return false
	case f.old == nil:
		return now == nil && !w.created[f.uid] // a request is stored once, however often it was reviewed
	default:
		return now != nil && now.rev == f.old.rev && !now.deleting
	}
}

// worst is what could be stored at most, if of each ticket the largest lands that may, at the newest price that counts.
func (w *world) worst() int64 {
	largest := map[string]int64{}
	for name, o := range w.live {
		largest[name] = o.amount
	}
	for _, f := range w.flights {
		if w.lands(f) {
			largest[f.name] = max(largest[f.name], f.amount)
		}
	}
	sum := w.retained
	for _, amount := range largest {
		sum += amount * w.prices[w.touched]
	}
	return sum
}

// drained reports whether everything that is admitted was measured by one generation.
func (w *world) drained(p *quota.Page, polgen int64) bool { return !w.reprices || p.Drained(polgen) }

// said is what a bucket must say is taken after a count: of each ticket the larger of what was counted and of its entries.
func (w *world) said(s quota.Snapshot) int64 {
	largest := map[string]int64{}
	for t := range s.Tickets {
		if !quota.Departed(w.bucket, t.UID) {
			largest[t.Name.Name] = t.Amount
		}
	}
	for _, e := range w.bucket.Entries {
		largest[e.Name] = max(largest[e.Name], e.Amount)
	}
	sum := w.bucket.Retained
	for _, amount := range largest {
		sum += amount
	}
	return sum
}
