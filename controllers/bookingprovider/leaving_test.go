package bookingprovider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

func many(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("team/t-%04d", i))
	}
	return names
}

func TestAProviderThatIsBeingDeletedSaysWhatItStaysFor(t *testing.T) {
	cases := map[string]struct {
		users []string
		want  string
	}{
		"nobody uses it": {nil, "is being deleted; no ticket has a booking or an open operation with it, so it goes in a few seconds"},
		"one ticket": {many(1), "is being deleted; it stays until the ticket that has a booking or an open operation with it is gone: " +
			"team/t-0000"},
		"as many as are named": {many(5), "is being deleted; it stays until the 5 tickets that have a booking or an open operation " +
			"with it are gone: team/t-0000, team/t-0001, team/t-0002, team/t-0003, team/t-0004"},
		"more than are named": {many(6), "is being deleted; it stays until the 6 tickets that have a booking or an open operation " +
			"with it are gone: team/t-0000, team/t-0001, team/t-0002, team/t-0003, team/t-0004, …"},
		"more than are counted": {many(1001), "is being deleted; it stays until the tickets that have a booking or an open operation " +
			"with it, more than 1000, are gone: team/t-0000, team/t-0001, team/t-0002, team/t-0003, team/t-0004, …"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, staying(c.users)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAProviderThatIsBeingDeletedIsNotReady(t *testing.T) {
	cases := map[string]struct {
		found finding
		mood  string // the one of Reconciling and Stalled that is true
		says  string
	}{
		"it works": {finding{reason: flightsv1.ReasonProviderReady, message: "books"}, flightsv1.ConditionReconciling, "stays"},
		"it is down": {finding{reason: flightsv1.ReasonUnreachable, message: "is down"}, flightsv1.ConditionReconciling,
			"stays; it can't be called meanwhile: is down"},
		"its credential is refused": {finding{reason: flightsv1.ReasonCredentialsRefused, message: "is refused"}, flightsv1.ConditionStalled,
			"stays; it can't be called meanwhile: is refused"},
		"nothing was found out": {finding{limited: true}, flightsv1.ConditionReconciling, "stays"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
			r, p := reconciler(t, &now, "token"), example()
			r.conclude(p, c.found, "stays")
			ready := meta.FindStatusCondition(p.Status.Conditions, flightsv1.ConditionReady)
			if ready.Status != metav1.ConditionFalse || ready.Reason != flightsv1.ReasonDeleting || ready.Message != c.says {
				t.Errorf("Ready is %+v", ready)
			}
			for _, mood := range []string{flightsv1.ConditionReconciling, flightsv1.ConditionStalled} {
				if got := meta.IsStatusConditionTrue(p.Status.Conditions, mood); got != (mood == c.mood) {
					t.Errorf("%s is %t", mood, got)
				}
			}
			before := p.Status.DeepCopy()
			now = now.Add(time.Hour)
			r.conclude(p, c.found, "stays")
			r.conclude(p, finding{limited: true}, "stays")
			if diff := cmp.Diff(before, &p.Status); diff != "" {
				t.Errorf("the status changes while nothing does:\n%s", diff)
			}
		})
	}
}

func TestThatAProviderIsBeingDeletedIsToldOnce(t *testing.T) {
	now := time.Now()
	r, p := reconciler(t, &now, "token"), example()
	recorder := events.NewFakeRecorder(8)
	r.Events = recorder
	good := finding{reason: flightsv1.ReasonProviderReady, message: "books"}
	for _, stays := range []string{"", "stays for 2", "stays for 1", "goes"} {
		was := p.Status.DeepCopy()
		r.conclude(p, good, stays)
		r.tellEvent(p, was, good)
	}
	close(recorder.Events)
	var told []string
	for e := range recorder.Events {
		told = append(told, strings.TrimSpace(e))
	}
	if diff := cmp.Diff([]string{"Normal ProviderReady books", "Normal Deleting stays for 2"}, told); diff != "" {
		t.Error(diff)
	}
}
