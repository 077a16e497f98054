package quotabucket

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
	"github.com/flight-operator/flight-operator/internal/quota/census"
)

// observation is all that a round decides by.
type observation struct {
	now     time.Time
	life    time.Duration
	quotas  map[types.UID]facts // by policy
	gone    map[types.UID]bool  // policies that don't exist any more, or have no quota any more
	buckets []*flightsv1.QuotaBucket
	charged map[place]census.Charged
	ending  map[string]bool // namespaces that are being deleted
	// snapshot is the census's, of the bucket of a policy.
	snapshot func(*flightsv1.QuotaBucket) quota.Snapshot
	// unchanged says that nothing which a count depends on has changed since one changed nothing.
	unchanged func(*flightsv1.QuotaBucket) bool
	ages      map[place]quota.Ages
}

// facts are what is known of a quota policy.
type facts struct {
	name string
	// generation is the one that serves here, and counts. newest is the stored object's.
	generation, newest int64
	// counted is the status's countedGeneration.
	counted int64
	// failing says that a stored ticket could not be evaluated in time: then no sum is right.
	failing bool
	// floor is a revision that counts have to come up to before the quota is in force; empty: none, or not known yet.
	floor string
}

// settled reports whether every bucket that the policy needs is there (rule 7).
func (f facts) settled() bool { return f.counted == f.generation }

// plan is what a round does.
type plan struct {
	remove []removal
	age    []aged
	count  []counting
	// open are the policies whose old buckets are counted and drained as far as the cache shows, so that the missing ones
	// can be opened; finish are those that lack none, so that their count is done.
	open, finish []types.UID
	// unchanged are the buckets that say what they have to.
	unchanged []*flightsv1.QuotaBucket
	// next is when the time alone may ask for something.
	next time.Duration
}

// removal is a bucket that is over. Without regard says that it goes with all that is in it, for nobody asks for it any more.
type removal struct {
	place         place
	withoutRegard bool
}

// aged are entries of a bucket that have been open for longer than any request lives.
type aged struct {
	bucket  *flightsv1.QuotaBucket
	entries []flightsv1.QuotaEntry
}

// counting is a bucket to be counted, and made if it is missing and opening isn't nil.
type counting struct {
	place   place
	policy  types.UID
	opening *quota.Claim
}

// decide says what a round does. It is pure.
func decide(o observation) plan {
	p := plan{next: idle}
	held := map[types.UID]bool{} // policies with a bucket that isn't counted by the generation that serves, or not drained
	there := make(map[place]bool, len(o.buckets))
	for _, b := range o.buckets {
		there[placeOf(b)] = true
		f, serves := o.quotas[b.PolicyUID]
		switch {
		case b.Scope == flightsv1.QuotaScopeNamespace && o.ending[b.Namespace], o.gone[b.PolicyUID]:
			p.remove = append(p.remove, removal{placeOf(b), true})
			continue
		case !serves:
			held[b.PolicyUID] = true
			continue
		case f.failing: // entries age all the same
			held[b.PolicyUID] = true
			p.entries(o, b)
			continue
		}
		if !closed(b, f.generation) {
			held[b.PolicyUID] = true
		}
		p.ofBucket(o, b)
	}
	for at, charged := range o.charged {
		if !there[at] && !o.absent(at) {
			p.missing(o.quotas[charged.Sample.PolicyUID], at, charged.Sample, held)
		}
	}
	p.transitions(o, held)
	p.sort()
	return p
}

// closed reports whether everything in a bucket is as a generation measures it (rule 8).
func closed(b *flightsv1.QuotaBucket, generation int64) bool {
	return quota.CountedBy(b, generation) && quota.Open(b).Drained(generation)
}

// absent reports whether a bucket can't be made: its namespace is being deleted.
func (o observation) absent(at place) bool { return o.ending[at.Namespace] }

// ofBucket decides about one bucket of a policy that serves.
func (p *plan) ofBucket(o observation, b *flightsv1.QuotaBucket) {
	p.entries(o, b)
	page := quota.Open(b)
	if _, charged := o.charged[placeOf(b)]; !charged && o.quotas[b.PolicyUID].settled() && page.CountedBy(o.quotas[b.PolicyUID].generation) {
		if page.Removable(o.now) {
			p.remove = append(p.remove, removal{place: placeOf(b)})
			return
		}
	}
	if o.unchanged(b) {
		return
	}
	var void *quota.VoidError
	var stale *quota.StaleError
	switch err := page.Count(o.snapshot(b)); {
	case errors.As(err, &void), errors.As(err, &stale):
		// Another controller's cache is ahead of ours; ours comes up to it.
		p.wait(pace)
	case err != nil || page.Changed():
		p.count = append(p.count, counting{place: placeOf(b), policy: b.PolicyUID})
	default:
		p.unchanged = append(p.unchanged, b)
	}
}

// entries looks for entries that have aged (rule 9).
func (p *plan) entries(o observation, b *flightsv1.QuotaBucket) {
	if len(b.Entries) == 0 {
		return
	}
	ages := o.ages[placeOf(b)]
	if overdue := ages.Overdue(b.Entries, o.now, o.life); len(overdue) > 0 {
		p.age = append(p.age, aged{b, overdue})
	}
	if wait, some := ages.Next(o.now, o.life); some {
		p.wait(max(wait, pace))
	}
}

// missing decides about a bucket that stored tickets charge and that isn't there. While a policy is being counted, it has
// to wait for the old ones (rule 8).
func (p *plan) missing(f facts, at place, sample quota.Claim, held map[types.UID]bool) {
	switch {
	case f.name == "" || f.failing: // the policy has gone, or can't be counted
	case f.settled():
		p.count = append(p.count, counting{at, sample.PolicyUID, &sample})
	case !held[sample.PolicyUID]:
		p.open = append(p.open, sample.PolicyUID)
		held[sample.PolicyUID] = true // not finished before they are open
	}
}

// transitions finds the policies whose count is done.
func (p *plan) transitions(o observation, held map[types.UID]bool) {
	for uid, f := range o.quotas {
		if !f.settled() && f.generation == f.newest && !f.failing && !held[uid] {
			p.finish = append(p.finish, uid)
		}
	}
}

func (p *plan) wait(d time.Duration) { p.next = min(p.next, d) }

// sort makes a plan the same for the same observation, whatever the order of the maps.
func (p *plan) sort() {
	slices.SortFunc(p.count, func(a, b counting) int { return byPlace(a.place, b.place) })
	slices.Sort(p.open)
	p.open = slices.Compact(p.open)
	slices.Sort(p.finish)
}

func byPlace(a, b place) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func placeOf(b *flightsv1.QuotaBucket) place { return place{Namespace: b.Namespace, Name: b.Name} }
