package webhooks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// normalised applies the patches of the mutating webhook to the object of a review.
func normalised(t *testing.T, req admission.Request) (*flightsv1.FlightTicket, []byte) {
	t.Helper()
	got := newWorld(t).review(t, PathMutateTicket, req)
	if !got.Allowed {
		t.Fatalf("refused: %s", got.Result.Message)
	}
	after := req.Object.Raw
	if len(got.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(got.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if after, err = patch.Apply(after); err != nil {
			t.Fatalf("apply %s: %v", got.Patch, err)
		}
	}
	var ft flightsv1.FlightTicket
	if err := json.Unmarshal(after, &ft); err != nil {
		t.Fatal(err)
	}
	return &ft, after
}

// stored is the ticket as it is after its creation by asha.
func stored(change ...func(*flightsv1.FlightTicket)) *flightsv1.FlightTicket {
	ft := ticket()
	ft.Finalizers = []string{flightsv1.BookingFinalizer}
	ft.Annotations = map[string]string{
		flightsv1.RequestedByAnnotation:       "asha",
		flightsv1.RequestedByGroupsAnnotation: `["system:authenticated","travellers"]`,
	}
	ft.Labels = map[string]string{flightsv1.OriginLabel: "BOM", flightsv1.DestinationLabel: "LON"}
	for _, c := range change {
		c(ft)
	}
	return ft
}

func TestACreatedTicketIsNormalised(t *testing.T) {
	for name, given := range map[string]*flightsv1.FlightTicket{
		"a plain ticket": ticket(),
		"a ticket that claims another requester, groups and route": ticket(func(ft *flightsv1.FlightTicket) {
			ft.Annotations = map[string]string{flightsv1.RequestedByAnnotation: "root", flightsv1.RequestedByGroupsAnnotation: `["system:masters"]`}
			ft.Labels = map[string]string{flightsv1.OriginLabel: "JFK", flightsv1.DestinationLabel: "XXX"}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			got, after := normalised(t, create(t, "FlightTicket", given))
			if diff := cmp.Diff(stored(), got); diff != "" {
				t.Errorf("ticket (-want +got):\n%s", diff)
			}
			req := create(t, "FlightTicket", given)
			req.Object.Raw = after
			if again := newWorld(t).review(t, PathMutateTicket, req); len(again.Patch) != 0 {
				t.Errorf("a second run patches: %s", again.Patch)
			}
		})
	}
}

func TestAnUpdatedTicketKeepsWhatTheWebhookSet(t *testing.T) {
	going := func(ft *flightsv1.FlightTicket) { now := metav1.Unix(1800000000, 0); ft.DeletionTimestamp = &now }
	bare := func(ft *flightsv1.FlightTicket) { ft.ObjectMeta = ticket().ObjectMeta }
	for name, c := range map[string]struct {
		old, now, want *flightsv1.FlightTicket
	}{
		"a replace that drops everything": {old: stored(), now: ticket(), want: stored()},
		"a forged requester": {old: stored(), want: stored(), now: stored(func(ft *flightsv1.FlightTicket) {
			ft.Annotations[flightsv1.RequestedByAnnotation] = "root"
		})},
		"a tampered label": {old: stored(), want: stored(), now: stored(func(ft *flightsv1.FlightTicket) {
			ft.Labels[flightsv1.OriginLabel] = "DEL"
		})},
		"a change of place moves the label": {
			old:  stored(),
			now:  stored(func(ft *flightsv1.FlightTicket) { ft.Spec.To = "CDG" }),
			want: stored(func(ft *flightsv1.FlightTicket) { ft.Spec.To, ft.Labels[flightsv1.DestinationLabel] = "CDG", "CDG" }),
		},
		"a place that is unknown loses its label": {
			old: stored(),
			now: stored(func(ft *flightsv1.FlightTicket) { ft.Spec.To = "Nowhere at all" }),
			want: stored(func(ft *flightsv1.FlightTicket) {
				ft.Spec.To = "Nowhere at all"
				delete(ft.Labels, flightsv1.DestinationLabel)
			}),
		},
		"a ticket that is being deleted lets its finalizer go": {
			old:  stored(going),
			now:  stored(going, func(ft *flightsv1.FlightTicket) { ft.Finalizers = nil }),
			want: stored(going, func(ft *flightsv1.FlightTicket) { ft.Finalizers = nil }),
		},
		"a ticket stored while the webhook was bypassed gets no requester later": {
			old: stored(bare), now: stored(bare, func(ft *flightsv1.FlightTicket) {
				ft.Annotations = map[string]string{flightsv1.RequestedByAnnotation: "root"}
			}),
			want: stored(bare, func(ft *flightsv1.FlightTicket) { ft.Finalizers = []string{flightsv1.BookingFinalizer} }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := normalised(t, update(t, "FlightTicket", c.old, c.now))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("ticket (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheMutatingWebhookLeavesAWrongSpecToTheSchema(t *testing.T) {
	req := create(t, "FlightTicket", ticket())
	req.Object.Raw = []byte(`{"metadata":{"name":"x"},"spec":{"from":7,"to":[],"number":"two"}}`)
	if got := newWorld(t).review(t, PathMutateTicket, req); !got.Allowed || strings.Contains(string(got.Patch), "labels") {
		t.Errorf("allowed = %v, patch %s", got.Allowed, got.Patch)
	}
}

func TestStoredGroupsAreCapped(t *testing.T) {
	var many []string
	for i := range 5000 {
		many = append(many, fmt.Sprintf("group-%04d", i))
	}
	if got := capGroups(many); len(got) != maxGroups || got[0] != "group-0000" {
		t.Errorf("%d groups from %v", len(got), got[:1])
	}
	if got := capGroups([]string{strings.Repeat("x", maxGroupBytes+1)}); len(got) != 0 {
		t.Errorf("a group of %d bytes is kept", len(got[0]))
	}
	if diff := cmp.Diff([]string{"a", "b"}, capGroups([]string{"b", "a", "b"})); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}
