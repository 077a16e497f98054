package quotabucket

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// force is how far a generation of a quota policy has come on its way into force. From then on no admission raises a bucket
// above its limit. It takes, one after the other: that all replicas of the webhook serve it; that a request's life has
// passed, so that everything reviewed before is stored or never will be; and that every bucket is counted by it with all
// that was stored until then, and none is above its limit while a claim may still come.
type force struct {
	generation int64
	// servedSince is when all replicas were first seen to serve it; zero: not yet.
	servedSince time.Time
	// floor is a revision by which everything reviewed before is stored; empty: not known yet.
	floor string
	in    bool
}

// advance takes over what is seen of the policy's object: which generation counts, and whether all replicas serve it.
func (f force) advance(generation int64, served bool, now time.Time) force {
	if f.generation != generation {
		f = force{generation: generation}
	}
	if served && f.servedSince.IsZero() {
		f.servedSince = now
	}
	return f
}

// lacksFloor reports whether it is time to ask which revision counts have to come up to, and else in how long it will be;
// 0 if time alone does nothing.
func (f force) lacksFloor(now time.Time, life time.Duration) (bool, time.Duration) {
	if f.servedSince.IsZero() || f.floor != "" {
		return false, 0
	}
	left := life - now.Sub(f.servedSince)
	return left <= 0, max(left, 0)
}

// counted reports whether a policy's buckets show that it is in force.
func (f force) counted(o observation, uid types.UID) bool {
	q, serves := o.quotas[uid]
	if !serves || q.failing || f.floor == "" || !q.settled() || q.generation != f.generation {
		return false
	}
	there := map[place]bool{}
	for _, b := range o.buckets {
		if b.PolicyUID != uid {
			continue
		}
		there[placeOf(b)] = true
		if !o.absent(placeOf(b)) && !f.shownBy(b) {
			return false
		}
	}
	for at, charged := range o.charged {
		if charged.Sample.PolicyUID == uid && !there[at] && !o.absent(at) {
			return false
		}
	}
	return true
}

// shownBy reports whether a bucket is counted as far as it has to be, and nothing can come that nobody asked whether it
// fits.
func (f force) shownBy(b *flightsv1.QuotaBucket) bool {
	page := quota.Open(b)
	return page.CountedBy(f.generation) && page.CountedSince(f.floor) && (page.Held() <= b.Limit || len(b.Entries) == 0)
}

// waiting says in words what a policy that is not in force waits for.
func (f force) waiting(settled bool) string {
	switch {
	case !settled:
		return "its quotas are being counted"
	case f.servedSince.IsZero():
		return "not every webhook replica is known to serve it"
	case f.floor == "":
		return "its quotas are counted; requests that were reviewed before it may be on their way still"
	default:
		return "its quotas are being counted with what was stored last"
	}
}

// served reports whether the policy's status says that every live replica of the webhook serves its generation.
func served(p *flightsv1.FlightPolicy) bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, flightsv1.ConditionReady)
	if ready == nil || ready.Reason != flightsv1.ReasonServing && ready.Reason != flightsv1.ReasonCounting {
		return false
	}
	return p.Status.ObservedGeneration == p.Generation && p.Status.Replicas > 0 && p.Status.ReplicasServing == p.Status.Replicas
}
