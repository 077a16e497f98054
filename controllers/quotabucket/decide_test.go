package quotabucket

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
	"github.com/flight-operator/flight-operator/internal/quota/census"
)

// island is a cluster in memory with one quota policy, whose keys are numbers: a ticket's key is its number modulo keys.
type island struct {
	*rand.Rand
	now        time.Time
	revision   int
	generation int64
	keys       int
	counted    int64
	tickets    map[string]quota.Ticket
	buckets    map[place]*flightsv1.QuotaBucket
	ages       map[place]quota.Ages
}

const (
	islandPolicy = types.UID("uid-island")
	islandLimit  = 1 << 20
)

func newIsland(seed uint64) *island {
	return &island{
		Rand: rand.New(rand.NewPCG(seed, 3)), now: time.Unix(1000, 0), revision: 1, generation: 1, keys: 2,
		tickets: map[string]quota.Ticket{}, buckets: map[place]*flightsv1.QuotaBucket{}, ages: map[place]quota.Ages{},
	}
}

func (w *island) claim(name string, amount int64) quota.Claim {
	number, _ := strconv.Atoi(name)
	return quota.Claim{
		Policy: "island", PolicyUID: islandPolicy, PolicyGeneration: w.generation, Scope: quota.Cluster, Amount: amount, Limit: islandLimit,
		Key: fmt.Sprintf("%d of %d", number%w.keys, w.keys),
	}
}

func placeIn(c quota.Claim) place { return c.Place("team", "operator") }

func (w *island) charged() map[place]census.Charged {
	all := map[place]census.Charged{}
	for name, t := range w.tickets {
		all[placeIn(w.claim(name, t.Amount))] = census.Charged{Sample: w.claim(name, t.Amount)}
	}
	return all
}

func (w *island) snapshot(b *flightsv1.QuotaBucket) quota.Snapshot {
	at := strconv.Itoa(w.revision)
	s := quota.Snapshot{From: at, To: at, PolicyGeneration: w.generation}
	var tickets []quota.Ticket
	for name, t := range w.tickets {
		c := w.claim(name, t.Amount)
		if placeIn(c) != placeOf(b) {
			t.Amount = 0
		} else {
			s.Sample = &c
		}
		tickets = append(tickets, t)
	}
	s.Tickets = slices.Values(tickets)
	return s
}

func (w *island) observe() observation {
	o := observation{
		now: w.now, life: time.Minute, charged: w.charged(), ages: w.ages, snapshot: w.snapshot,
		unchanged: func(*flightsv1.QuotaBucket) bool { return false },
		quotas: map[types.UID]facts{islandPolicy: {
			name: "island", generation: w.generation, newest: w.generation, counted: w.counted,
		}},
	}
	for _, at := range slices.SortedFunc(maps.Keys(w.buckets), byPlace) {
		o.buckets = append(o.buckets, w.buckets[at])
		w.ages[at] = w.ages[at].See(w.buckets[at].Entries, w.now)
	}
	return o
}

// writes are those that a plan leads to, each by itself.
func (w *island) writes(o observation, p plan) []func() {
	var all []func()
	for _, r := range p.remove {
		all = append(all, func() {
			if b := w.buckets[r.place]; b != nil && (r.withoutRegard || quota.Open(b).Removable(w.now)) {
				delete(w.buckets, r.place)
			}
		})
	}
	for _, a := range p.age {
		all = append(all, func() {
			for _, e := range a.entries {
				if t, is := w.tickets[e.Name]; !is || !quota.Stored(e, t.UID, t.Generation) {
					w.edit(placeOf(a.bucket), nil, func(page *quota.Page) error { page.Release(e.Nonce); return nil })
				}
			}
		})
	}
	count := func(c counting) func() {
		return func() {
			w.edit(c.place, c.opening, func(page *quota.Page) error { return page.Count(w.snapshot(page.Bucket())) })
		}
	}
	for _, c := range p.count {
		all = append(all, count(c))
	}
	if !w.closed() {
		return all
	}
	for at, charged := range o.charged {
		if len(p.open) > 0 && w.buckets[at] == nil {
			all = append(all, count(counting{at, islandPolicy, &charged.Sample}))
		}
	}
	if len(p.finish) > 0 {
		all = append(all, func() { w.counted = o.quotas[islandPolicy].generation })
	}
	return all
}

// closed is what is asked live before anything is opened.
func (w *island) closed() bool {
	for _, b := range w.buckets {
		if !closed(b, w.generation) {
			return false
		}
	}
	return true
}

func (w *island) edit(at place, opening *quota.Claim, change func(*quota.Page) error) {
	var page *quota.Page
	switch b := w.buckets[at]; {
	case b != nil:
		page = quota.Open(b)
	case opening != nil:
		page = quota.Blank(*opening, at)
	default:
		return
	}
	if change(page) == nil && page.Changed() {
		w.revision++
		b := page.Bucket()
		b.ResourceVersion = strconv.Itoa(w.revision)
		w.buckets[at] = b
	}
}

// happen lets users, webhooks and admins do something.
func (w *island) happen() {
	name := strconv.Itoa(w.IntN(6))
	switch w.IntN(8) {
	case 0, 1:
		w.reserve(name)
		w.revision++
		was, generation := w.tickets[name], int64(1)
		if was.UID != "" {
			generation = was.Generation + 1
		}
		w.tickets[name] = quota.Ticket{
			Name: types.NamespacedName{Namespace: "team", Name: name}, UID: types.UID("uid-" + name), Generation: generation,
			Revision: strconv.Itoa(w.revision), Amount: 1 + int64(w.IntN(4)),
		}
	case 2:
		w.reserve(name) // and nothing is stored
	case 3, 4:
		w.revision++
		delete(w.tickets, name)
	case 5:
		if w.IntN(4) == 0 {
			w.generation++
			w.keys = 1 + w.IntN(4)
		}
	default:
		w.now = w.now.Add(time.Duration(w.IntN(90)) * time.Second)
	}
}

// reserve holds something for a review, where a webhook could.
func (w *island) reserve(name string) {
	c := w.claim(name, 2)
	if w.buckets[placeIn(c)] == nil && w.counted != w.generation {
		return
	}
	w.edit(placeIn(c), &c, func(page *quota.Page) error {
		return page.Reserve(quota.Reservation{
			Claim: c, Nonce: strconv.Itoa(w.Int()), Ticket: types.NamespacedName{Namespace: "team", Name: name},
			UID: types.UID("uid-" + name), Generation: w.tickets[name].Generation + 1,
		})
	})
}

// Killed between any two writes of a round, and started again with no memory: the rounds that follow come to the same end.
func TestRoundsComeToTheirEndWhereverTheyAreKilled(t *testing.T) {
	for seed := range uint64(400) {
		w := newIsland(seed)
		for range 60 {
			w.happen()
			writes := w.writes(w.observe(), decide(w.observe()))
			w.Shuffle(len(writes), func(i, j int) { writes[i], writes[j] = writes[j], writes[i] })
			for _, write := range writes[:w.IntN(len(writes)+1)] {
				write()
			}
			if w.IntN(3) == 0 {
				w.ages = map[place]quota.Ages{} // killed
			}
			if w.counted == w.generation {
				w.mustBeOpen(t, seed)
			}
		}
		for range 8 {
			w.now = w.now.Add(2 * time.Minute)
			for _, write := range w.writes(w.observe(), decide(w.observe())) {
				write()
			}
		}
		w.mustRest(t, seed)
	}
}

// mustBeOpen fails if a policy is called counted although a bucket is counted by an earlier generation.
func (w *island) mustBeOpen(t *testing.T, seed uint64) {
	t.Helper()
	for _, b := range w.buckets {
		if b.CountedRevision != "" && b.CountedGeneration < w.generation {
			t.Fatalf("seed %d: generation %d is called counted, and bucket %q was counted by %d", seed, w.generation, b.Key, b.CountedGeneration)
		}
	}
}

func (w *island) mustRest(t *testing.T, seed uint64) {
	t.Helper()
	want, got := map[string]int64{}, map[string]int64{}
	for name, ticket := range w.tickets {
		want[w.claim(name, 0).Key] += ticket.Amount
	}
	for _, b := range w.buckets {
		if got[b.Key] = b.Used; len(b.Entries) > 0 || b.CountedGeneration != w.generation {
			t.Errorf("seed %d: bucket %q has %d entries and was counted by %d", seed, b.Key, len(b.Entries), b.CountedGeneration)
		}
	}
	if !maps.Equal(want, got) || w.counted != w.generation {
		t.Fatalf("seed %d: at rest the buckets say %v, the tickets %v; counted %d of %d", seed, got, want, w.counted, w.generation)
	}
}

// bucketOf is a bucket of the island's policy that was counted, and says what nobody claims.
func bucketOf(key string, change ...func(*flightsv1.QuotaBucket)) *flightsv1.QuotaBucket {
	b := &flightsv1.QuotaBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: key}, Policy: "island", PolicyUID: islandPolicy, PolicyGeneration: 2,
		Scope: quota.Cluster, Key: key, Limit: 10, CountedRevision: "5", CountedGeneration: 2, Used: 1,
	}
	for _, f := range change {
		f(b)
	}
	return b
}

func TestWhatARoundDecides(t *testing.T) {
	now := time.Unix(10_000, 0)
	counted := facts{name: "island", generation: 2, newest: 2, counted: 2}
	with := func(change func(*facts)) facts { f := counted; change(&f); return f }
	empty := func(b *flightsv1.QuotaBucket) { b.Used = 0 }
	before := func(b *flightsv1.QuotaBucket) { b.PolicyGeneration, b.CountedGeneration = 1, 1 }
	open := func(b *flightsv1.QuotaBucket) {
		b.Entries = []flightsv1.QuotaEntry{{Nonce: "x", Name: "other", PolicyGeneration: 1}}
	}
	team := func(b *flightsv1.QuotaBucket) { b.Namespace, b.Scope = "team", quota.Namespace }
	for _, test := range []struct {
		name    string
		facts   facts
		buckets []*flightsv1.QuotaBucket
		charged []string
		change  func(*observation)
		want    string
	}{
		{"nothing to do", counted, []*flightsv1.QuotaBucket{bucketOf("a")}, []string{"a"}, nil, ""},
		{"a bucket that says something else", counted, []*flightsv1.QuotaBucket{bucketOf("a", func(b *flightsv1.QuotaBucket) { b.Used = 9 })}, []string{"a"}, nil, "count a; "},
		{"a bucket that is missing", counted, nil, []string{"a"}, nil, "open a; "},
		{"a bucket that nothing charges any more", counted, []*flightsv1.QuotaBucket{bucketOf("a", empty)}, nil, nil, "remove a; "},
		{"an empty bucket before the policy is counted", with(func(f *facts) { f.counted = 1 }), []*flightsv1.QuotaBucket{bucketOf("a", empty)}, nil, nil, "finish; "},
		{"an old bucket", with(func(f *facts) { f.counted = 1 }), []*flightsv1.QuotaBucket{bucketOf("a", before)}, []string{"a", "b"}, nil, "count a; "},
		{"an old entry", with(func(f *facts) { f.counted = 1 }), []*flightsv1.QuotaBucket{bucketOf("a", open)}, []string{"a", "b"}, nil, ""},
		{"all old buckets are closed", with(func(f *facts) { f.counted = 1 }), []*flightsv1.QuotaBucket{bucketOf("a")}, []string{"a", "b"}, nil, "transition; "},
		{"no bucket is missing", with(func(f *facts) { f.counted = 1 }), []*flightsv1.QuotaBucket{bucketOf("a")}, []string{"a"}, nil, "finish; "},
		{"a newer generation isn't loaded", with(func(f *facts) { f.counted, f.newest = 1, 3 }), []*flightsv1.QuotaBucket{bucketOf("a")}, []string{"a"}, nil, ""},
		{"a ticket that can't be evaluated", with(func(f *facts) { f.failing = true }), []*flightsv1.QuotaBucket{bucketOf("a", before)}, []string{"a", "b"}, nil, ""},
		{"the policy is gone", facts{}, []*flightsv1.QuotaBucket{bucketOf("a")}, nil, func(o *observation) {
			o.quotas, o.gone = nil, map[types.UID]bool{islandPolicy: true}
		}, "drop a; "},
		{"the policy isn't known yet", facts{}, []*flightsv1.QuotaBucket{bucketOf("a")}, nil, func(o *observation) { o.quotas = nil }, ""},
		{"the namespace ends", counted, []*flightsv1.QuotaBucket{bucketOf("a", team)}, nil, func(o *observation) { o.ending = map[string]bool{"team": true} }, "drop a; "},
		{"the operator's namespace ends", counted, nil, []string{"a"}, func(o *observation) { o.ending = map[string]bool{"operator": true} }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := observation{
				now: now, life: time.Minute, quotas: map[types.UID]facts{islandPolicy: test.facts}, buckets: test.buckets,
				charged: map[place]census.Charged{}, unchanged: func(*flightsv1.QuotaBucket) bool { return false },
				snapshot: func(b *flightsv1.QuotaBucket) quota.Snapshot {
					one := []quota.Ticket{{UID: "t", Amount: 1, Revision: "1"}}
					if !slices.Contains(test.charged, b.Name) {
						one = nil
					}
					return quota.Snapshot{From: "7", To: "7", PolicyGeneration: 2, Tickets: slices.Values(one)}
				},
			}
			for _, key := range test.charged {
				o.charged[place{Namespace: "operator", Name: key}] = census.Charged{Sample: quota.Claim{PolicyUID: islandPolicy, Key: key}}
			}
			if test.change != nil {
				test.change(&o)
			}
			if got := inWords(decide(o)); got != test.want {
				t.Errorf("it decides %q, want %q", got, test.want)
			}
		})
	}
}

func inWords(p plan) (text string) {
	for _, r := range p.remove {
		text += map[bool]string{true: "drop ", false: "remove "}[r.withoutRegard] + r.place.Name + "; "
	}
	for _, c := range p.count {
		text += map[bool]string{true: "open ", false: "count "}[c.opening != nil] + c.place.Name + "; "
	}
	if len(p.open) > 0 {
		text += "transition; "
	}
	if len(p.finish) > 0 {
		text += "finish; "
	}
	return text
}

func TestAPolicyComesIntoForceStepByStep(t *testing.T) {
	now := time.Unix(10_000, 0)
	f := force{}.advance(2, false, now)
	if due, wait := f.lacksFloor(now, time.Minute); due || wait != 0 {
		t.Error("it asks for a floor before any replica serves it")
	}
	f = f.advance(2, true, now).advance(2, false, now.Add(time.Second)).advance(2, true, now.Add(30*time.Second))
	if due, wait := f.lacksFloor(now.Add(30*time.Second), time.Minute); due || wait != 30*time.Second {
		t.Errorf("half a life after it was served: due %v, in %s", due, wait)
	}
	if due, _ := f.lacksFloor(now.Add(time.Minute), time.Minute); !due {
		t.Error("a life after it was served it must ask for a floor")
	}
	f.floor = "6"
	for name, test := range map[string]struct {
		bucket *flightsv1.QuotaBucket
		facts  facts
		want   bool
	}{
		"counted at the floor":             {bucketOf("a", func(b *flightsv1.QuotaBucket) { b.CountedRevision = "6" }), facts{generation: 2, counted: 2}, true},
		"counted before the floor":         {bucketOf("a"), facts{generation: 2, counted: 2}, false},
		"counted by an earlier generation": {bucketOf("a", func(b *flightsv1.QuotaBucket) { b.CountedRevision, b.CountedGeneration = "6", 1 }), facts{generation: 2, counted: 2}, false},
		"above its limit":                  {bucketOf("a", func(b *flightsv1.QuotaBucket) { b.CountedRevision, b.Used = "6", 99 }), facts{generation: 2, counted: 2}, true},
		"above its limit, and a claim may come": {bucketOf("a", func(b *flightsv1.QuotaBucket) {
			b.CountedRevision, b.Used, b.Entries = "6", 99, make([]flightsv1.QuotaEntry, 1)
		}), facts{generation: 2, counted: 2}, false},
		"the policy isn't counted":                 {bucketOf("a", func(b *flightsv1.QuotaBucket) { b.CountedRevision = "6" }), facts{generation: 2, counted: 1}, false},
		"a ticket can't be evaluated":              {bucketOf("a", func(b *flightsv1.QuotaBucket) { b.CountedRevision = "6" }), facts{generation: 2, counted: 2, failing: true}, false},
		"an earlier generation serves for a while": {bucketOf("a", func(b *flightsv1.QuotaBucket) { b.CountedRevision = "6" }), facts{generation: 1, counted: 1}, false},
	} {
		o := observation{quotas: map[types.UID]facts{islandPolicy: test.facts}, buckets: []*flightsv1.QuotaBucket{test.bucket}}
		if got := f.counted(o, islandPolicy); got != test.want {
			t.Errorf("%s: in force %v", name, got)
		}
	}
	if next := f.advance(3, true, now); next.floor != "" || next.servedSince != now {
		t.Errorf("the next generation goes on with %+v", next)
	}
}
