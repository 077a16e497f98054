package ledger

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// The states of a bucket. A bucket can be being counted and over its limit at the same time.
const (
	// StateOpen: there is room.
	StateOpen = "Open"
	// StateFull: exactly all is taken.
	StateFull = "Full"
	// StateOverLimit: more is taken than the limit allows, as when the limit was lowered. Nothing is taken away from
	// anybody, and nothing is added.
	StateOverLimit = "OverLimit"
	// StateCounting: what is used was not summed yet by the policy as it stands. Until then raises are refused.
	StateCounting = "Counting"
	// StatePolicyGone: the policy was deleted, so the bucket stops nobody.
	StatePolicyGone = "PolicyGone"
)

// Policies are all FlightPolicies by name; nil for a person who may not read them.
type Policies map[string]*flightsv1.FlightPolicy

// of is the policy of a bucket; nil if it is gone, or nobody can tell. A policy that was made anew is another one.
func (p Policies) of(b *flightsv1.QuotaBucket) *flightsv1.FlightPolicy {
	if owner := p[b.Policy]; owner != nil && owner.UID == b.PolicyUID {
		return owner
	}
	return nil
}

// State says in one word or two how a bucket stands. Without policies it rests on what the bucket itself says of its
// policy's generation, which is behind for as long as nobody has touched the bucket since the policy changed.
func (p Policies) State(b *flightsv1.QuotaBucket) string {
	newest := b.PolicyGeneration
	if owner := p.of(b); owner != nil {
		newest = max(newest, owner.Generation)
	} else if p != nil {
		return StatePolicyGone
	}
	var words []string
	if !quota.CountedBy(b, newest) {
		words = append(words, StateCounting)
	}
	switch taken := Taken(b); {
	case taken > b.Limit:
		words = append(words, StateOverLimit)
	case taken == b.Limit:
		words = append(words, StateFull)
	case len(words) == 0:
		words = append(words, StateOpen)
	}
	return strings.Join(words, ",")
}

// Taken is what is taken in all. Each part is at most 2^53, so the sum can't overflow.
func Taken(b *flightsv1.QuotaBucket) int64 { return b.Used + b.Reserved + b.Retained }

// Sort puts the fullest buckets first, those that are equally full by namespace, policy and key.
func Sort(buckets []flightsv1.QuotaBucket) {
	slices.SortStableFunc(buckets, func(a, b flightsv1.QuotaBucket) int {
		return cmp.Or(
			cmp.Compare(fullness(&b), fullness(&a)),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Key, b.Key),
		)
	})
}

// fullness is the share of the limit that is taken; above 1 for what is over it. A limit of 0 leaves no room: it is full.
func fullness(b *flightsv1.QuotaBucket) float64 {
	if b.Limit == 0 {
		return 1 + float64(Taken(b))
	}
	return float64(Taken(b)) / float64(b.Limit)
}

// resets says when a bucket's window ends, from now and as a date in UTC.
func resets(b *flightsv1.QuotaBucket, now time.Time) string {
	if b.Resets.IsZero() {
		return "never"
	}
	at := b.Resets.UTC()
	date := at.Format(time.DateOnly)
	if at.Truncate(24*time.Hour) != at {
		date = at.Format("2006-01-02 15:04")
	}
	if left := at.Sub(now); left > 0 {
		return "in " + duration.HumanDuration(left) + " (" + date + ")"
	}
	return duration.HumanDuration(now.Sub(at)) + " ago (" + date + ")"
}

// PolicyNames are the policies of buckets, each once, sorted.
func PolicyNames(buckets []flightsv1.QuotaBucket) []string {
	var names []string
	for i := range buckets {
		names = append(names, buckets[i].Policy)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
