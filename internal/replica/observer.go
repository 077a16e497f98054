package replica

import (
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Observer tells which replicas live. It compares no clocks: a Lease stands for its duration from when this process saw
// it renewed, whatever time the replica wrote into it. A replica stops deciding by its own clock, counted from before it
// renewed, and so always before it is counted as gone. An Observer is safe for concurrent use.
type Observer struct {
	mu   sync.Mutex
	seen map[types.UID]sighting
}

// sighting is a renewal and when this process first saw it.
type sighting struct {
	renewed metav1.MicroTime
	expires time.Time
}

// NewObserver returns an observer that has seen nothing: every Lease that it is shown stands at first.
func NewObserver() *Observer { return &Observer{seen: map[types.UID]sighting{}} }

// See enters a Lease as it is now, and says whether its replica was counted as live before.
func (o *Observer) See(l *coordinationv1.Lease, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, known := o.seen[l.UID]
	o.see(l, now)
	return known && now.Before(before.expires)
}

// see returns when a Lease expires. The caller holds mu.
func (o *Observer) see(l *coordinationv1.Lease, now time.Time) (expires time.Time, isReplica bool) {
	if l.Labels[Label] != LabelValue || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return time.Time{}, false
	}
	s, known := o.seen[l.UID]
	// Another time is a renewal, and not only a later one: clocks are set back.
	if !known || !s.renewed.Equal(l.Spec.RenewTime) {
		s = sighting{*l.Spec.RenewTime, now.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second)}
		o.seen[l.UID] = s
	}
	return s.expires, true
}

// Live returns the replicas whose Lease stands, sorted by name, and forgets all others' that are not among the Leases
// given.
func (o *Observer) Live(leases []coordinationv1.Lease, now time.Time) []Replica {
	o.mu.Lock()
	defer o.mu.Unlock()
	var live []Replica
	there := make(map[types.UID]bool, len(leases))
	for i := range leases {
		l := &leases[i]
		there[l.UID] = true
		expires, isReplica := o.see(l, now)
		if !isReplica || !now.Before(expires) {
			continue
		}
		report, err := Decode(l.Annotations[PoliciesAnnotation])
		if err != nil {
			report = nil
		}
		live = append(live, Replica{Name: strings.TrimPrefix(l.Name, LeasePrefix), Expires: expires, Report: report})
	}
	for uid, s := range o.seen {
		if !there[uid] && !now.Before(s.expires) {
			delete(o.seen, uid)
		}
	}
	slices.SortFunc(live, func(a, b Replica) int { return strings.Compare(a.Name, b.Name) })
	return live
}
