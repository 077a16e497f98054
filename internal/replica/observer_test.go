package replica

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// renewed is the Lease of a replica whose own clock showed a time when it renewed.
func renewed(name string, at time.Time, change ...func(*coordinationv1.Lease)) coordinationv1.Lease {
	l := coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: LeasePrefix + name, UID: types.UID("uid-of-" + name), Labels: map[string]string{Label: LabelValue},
			Annotations: map[string]string{PoliciesAnnotation: `{"uid-1":{"g":2}}`},
		},
		Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(at)), LeaseDurationSeconds: ptr.To[int32](15)},
	}
	for _, c := range change {
		c(&l)
	}
	return l
}

func TestOnlyReplicasThatRenewAreLive(t *testing.T) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	ahead, behind := now.Add(time.Hour), now.Add(-time.Hour)
	report := Report{"uid-1": {Generation: 2}}
	o := NewObserver()
	look := func(seconds int, leases ...coordinationv1.Lease) []Replica {
		return o.Live(leases, now.Add(time.Duration(seconds)*time.Second))
	}
	got := look(0,
		renewed("behind", behind), renewed("ahead", ahead),
		renewed("foreign", now, func(l *coordinationv1.Lease) { l.Labels = nil }),
		renewed("never-renewed", now, func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil }),
		renewed("without-duration", now, func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = nil }),
		renewed("garbled", now, func(l *coordinationv1.Lease) { l.Annotations[PoliciesAnnotation] = "{garbage" }),
	)
	expires := now.Add(15 * time.Second)
	want := []Replica{
		{Name: "ahead", Expires: expires, Report: report}, {Name: "behind", Expires: expires, Report: report},
		{Name: "garbled", Expires: expires},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("at first, whatever the replicas' clocks show (-want +got):\n%s", diff)
	}
	look(10, renewed("behind", behind.Add(10*time.Second)), renewed("ahead", ahead), renewed("set-back", now))
	got = look(16, renewed("behind", behind.Add(10*time.Second)), renewed("ahead", ahead), renewed("set-back", behind))
	want = []Replica{
		{Name: "behind", Expires: now.Add(25 * time.Second), Report: report},
		{Name: "set-back", Expires: now.Add(31 * time.Second), Report: report},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("one that did not renew is gone (-want +got):\n%s", diff)
	}
}

func TestARenewalOfAReplicaThatWasGoneIsNews(t *testing.T) {
	start := time.Unix(1000, 0)
	o := NewObserver()
	for _, step := range []struct {
		after   time.Duration
		counted bool
	}{{0, false}, {5 * time.Second, true}, {30 * time.Second, false}, {35 * time.Second, true}} {
		now := start.Add(step.after)
		l := renewed("a", now)
		if got := o.See(&l, now); got != step.counted {
			t.Errorf("after %s it was counted before: %t", step.after, got)
		}
	}
}
