package quota_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flight-operator/flight-operator/internal/quota"
)

// step does one thing that may happen at any time.
func (w *world) step() {
	w.clock++
	switch n := w.IntN(100); {
	case n < 16:
		w.review()
	case n < 20:
		w.reviewAgain()
	case n < 34:
		w.read()
	case n < 48:
		w.write()
	case n < 60:
		w.land()
	case n < 64:
		w.refuseAfterwards()
	case n < 69:
		w.remove()
	case n < 73:
		w.finish()
	case n < 80:
		w.look(w.keepers[w.IntN(2)])
	case n < 88:
		w.count(w.keepers[w.IntN(2)])
	case n < 93:
		w.age(w.keepers[w.IntN(2)])
	case n < 97:
		w.drop(w.keepers[w.IntN(2)])
	case n < 98:
		w.keepers[w.IntN(2)].ages = quota.Ages{} // restarted
	default:
		w.setLimit()
	}
}

// review begins a create or an update of one of a few tickets, by a replica that may lag behind the policy.
func (w *world) review() {
	f := &flight{name: string(rune('a' + w.IntN(4))), amount: int64(w.IntN(5)), started: w.clock, gen: 1}
	f.polgen = max(1, w.generation()-int64(w.IntN(2)))
	w.made++
	f.uid = types.UID(strconv.Itoa(w.made))
	if o := w.live[f.name]; o != nil {
		if o.deleting {
			return
		}
		stored := *o
		f.old, f.uid, f.gen = &stored, o.uid, o.gen+1
	}
	w.begin(f)
}

// reviewAgain reviews a request a second time, with another run of the handler, perhaps with another content.
func (w *world) reviewAgain() {
	if f := w.pick(func(f *flight) bool { return !f.over }); f != nil {
		again := &flight{name: f.name, old: f.old, uid: f.uid, gen: f.gen, amount: f.amount, polgen: f.polgen, started: f.started}
		if w.IntN(2) == 0 {
			again.amount = int64(w.IntN(5))
		}
		w.begin(again)
	}
}

func (w *world) begin(f *flight) {
	r := quota.Review{
		Ticket: types.NamespacedName{Namespace: "team", Name: f.name}, UID: f.uid, Generation: f.gen,
		Claims: []quota.Claim{w.claim(f.amount, f.polgen)},
	}
	if f.old != nil {
		r.Old = []quota.Claim{w.claim(f.old.amount, f.polgen)}
	}
	w.made++
	list, err := w.reservations(r, fmt.Sprintf("%032x", w.made))
	if err != nil {
		w.fail("claims: %v", err)
	}
	f.allowed = len(list) == 0
	if !f.allowed {
		f.asked = &list[0]
	}
	w.flights = append(w.flights, f)
	w.say("review %s uid %s gen %d amount %d under %d", f.name, f.uid, f.gen, f.amount, f.polgen)
}

func (w *world) pick(wanted func(*flight) bool) *flight {
	var some []*flight
	for _, f := range w.flights {
		if wanted(f) {
			some = append(some, f)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[w.IntN(len(some))]
}

func (w *world) read() {
	if f := w.pick(func(f *flight) bool { return !f.over && !f.allowed }); f != nil {
		f.page, f.read = w.get()
	}
}

// write reserves on what was read some time ago, and writes it back.
func (w *world) write() {
	f := w.pick(func(f *flight) bool { return !f.over && !f.allowed && f.page != nil })
	if f == nil {
		return
	}
	page := f.page
	f.page = nil
	if !w.believed(page, f.polgen) {
		return // being counted: it tries again
	}
	drained := w.drained(page, f.polgen)
	if err := w.reserve(page, *f.asked); err != nil {
		f.over = true
		w.say("%s refused: %v", f.asked.Nonce[28:], err)
		if f.old != nil && f.amount <= f.old.amount {
			w.fail("an update from %d to %d was refused", f.old.amount, f.amount)
		}
		return
	}
	if page.Changed() && !w.put(page, f.read) {
		return // a conflict: it reads again
	}
	f.allowed = true
	w.touched = max(w.touched, f.polgen)
	w.say("%s holds %d for %s", f.asked.Nonce[28:], f.amount, f.name)
	if worst, limit := w.worst(), w.limits[w.touched]; drained && w.lands(f) && worst > limit {
		w.fail("%d may be stored after a review under a limit of %d", worst, limit)
	}
}

func (w *world) land() {
	if f := w.pick(w.lands); f != nil {
		f.over = true
		w.store(f.name, &object{uid: f.uid, gen: f.gen, amount: f.amount})
		w.say("stored %s gen %d amount %d", f.name, f.gen, f.amount)
	}
}

// refuseAfterwards ends a request that we allowed. Its own replica takes the entry back, or dies first.
func (w *world) refuseAfterwards() {
	f := w.pick(func(f *flight) bool { return !f.over && f.allowed })
	if f == nil {
		return
	}
	f.over = true
	if f.asked != nil && w.IntN(2) == 0 {
		page, read := w.get()
		w.release(page, *f.asked)
		w.put(page, read)
		w.say("%s taken back", f.asked.Nonce[28:])
	}
}

func (w *world) remove() {
	names := slices.Sorted(maps.Keys(w.live))
	if len(names) == 0 {
		return
	}
	name := names[w.IntN(len(names))]
	if o := *w.live[name]; !o.deleting {
		o.deleting = true
		o.gen++
		w.store(name, &o)
		w.say("deleting %s", name)
	}
}

// finish lets tickets go whose deletion was asked for. What outlives its ticket is in the bucket first.
func (w *world) finish() {
	for _, name := range slices.Sorted(maps.Keys(w.live)) {
		o := w.live[name]
		if !o.deleting || w.retains && o.amount > 0 && !quota.Departed(w.bucket, o.uid) {
			continue
		}
		if w.retains {
			w.retained += o.amount
		}
		w.store(name, nil)
		w.say("%s is gone", name)
	}
}

// look takes a snapshot and reads the bucket.
func (w *world) look(k *keeper) {
	k.cache += w.IntN(w.rev - k.cache + 1)
	to := k.cache + w.IntN(w.rev-k.cache+1)
	k.page, k.read = w.get()
	k.snap = w.snapshot(k.cache, to, max(1, w.generation()-int64(w.IntN(2))))
}

func (w *world) count(k *keeper) {
	if k.page == nil {
		return
	}
	page := k.page
	k.page = nil
	if err := w.rules.count(page, k.snap); err != nil {
		return
	}
	if page.Changed() && w.put(page, k.read) {
		w.touched = max(w.touched, k.snap.PolicyGeneration)
		if held := quota.Open(w.bucket).Held(); held != w.said(k.snap) {
			w.fail("%d are held after a count; tickets and entries have %d", held, w.said(k.snap))
		}
		w.say("counted %s..%s: used %d, retained %d, %d entries", k.snap.From, k.snap.To, w.bucket.Used, w.bucket.Retained, len(w.bucket.Entries))
	}
}

func (w *world) now() time.Time { return time.Unix(int64(w.clock), 0) }

// age looks for the tickets of entries that have been open for long.
func (w *world) age(k *keeper) {
	k.ages = k.ages.See(w.bucket.Entries, w.now())
	k.drop = nil
	for _, e := range w.overdue(k.ages, w.bucket.Entries, w.now()) {
		if o := w.live[e.Name]; o == nil || !w.stored(e, o.uid, o.gen) {
			k.drop = append(k.drop, e.Nonce)
		}
	}
}

func (w *world) drop(k *keeper) {
	page, read := w.get()
	page.Release(k.drop...)
	if page.Changed() && w.put(page, read) {
		w.say("dropped %s", k.drop)
	}
	k.drop = nil
}

func (w *world) setLimit() {
	if len(w.limits) < 5 {
		w.limits = append(w.limits, int64(3+w.IntN(6)))
		w.prices = append(w.prices, w.price())
		w.say("generation %d has limit %d and price %d", w.generation(), w.limits[w.generation()], w.prices[w.generation()])
	}
}

// rest lets everything come to its end, and compares to the unit.
func (w *world) rest() {
	for _, f := range w.flights {
		f.over = true
	}
	for round := range 4 {
		if round > 0 {
			w.finish()
		}
		k := w.keepers[0]
		k.cache = w.rev
		page, read := w.get()
		if err := w.rules.count(page, w.snapshot(w.rev, w.rev, w.generation())); err != nil {
			w.fail("the last count: %v", err)
		}
		w.put(page, read)
		w.age(k)
		w.clock += patience + 1
		w.age(k)
		w.drop(k)
	}
	var used int64
	for _, o := range w.live {
		used += o.amount * w.prices[w.generation()]
	}
	if b := w.bucket; b.Used != used || b.Reserved != 0 || len(b.Entries) != 0 || b.Retained != w.retained || len(b.Departures) != 0 {
		w.fail("at rest used %d, reserved %d, retained %d, %d entries, %d departures; it must be used %d, retained %d and nothing else",
			b.Used, b.Reserved, b.Retained, len(b.Entries), len(b.Departures), used, w.retained)
	}
}

// walk returns the promise that was broken first, with the way that led there; empty if all held.
func walk(seed uint64, r rules) string {
	w := newWorld(seed, r)
	for range 250 {
		if w.step(); w.broken != "" {
			break
		}
	}
	if w.broken == "" {
		w.rest()
	}
	if w.broken == "" {
		return ""
	}
	return fmt.Sprintf("seed %d: %s\n%s", seed, w.broken, strings.Join(w.log, "\n"))
}

// seeds is how many walks are taken; FLIGHT_QUOTA_SEEDS sets another number.
func seeds(t *testing.T, usual int) uint64 {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("FLIGHT_QUOTA_SEEDS"), strconv.Itoa(usual)))
	if err != nil || n < 1 {
		t.Fatalf("FLIGHT_QUOTA_SEEDS must be a number above 0: %v", err)
	}
	return uint64(n)
}

func TestTheLedgerKeepsItsPromisesOnEveryWalk(t *testing.T) {
	for seed := range seeds(t, 3000) {
		if broken := walk(seed, asDesigned()); broken != "" {
			t.Fatal(broken)
		}
	}
}
