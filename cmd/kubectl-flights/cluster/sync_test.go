package cluster

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/exit"
)

// handler plays the controller: it watches tickets, and does something with each that asks for another look.
func (d *desk) handler(handle func(*flightsv1.FlightTicket)) {
	d.Helper()
	events, err := d.admin.Watch(d.ctx, &flightsv1.FlightTicketList{}, client.InNamespace(d.namespace))
	if err != nil {
		d.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			ft, is := event.Object.(*flightsv1.FlightTicket)
			is = is && event.Type != watch.Deleted
			if asked := is && ft.Annotations[flightsv1.ReconcileRequestedAtAnnotation] != ""; asked && ft.Status.LastHandledReconcileAt == "" {
				handle(ft)
			}
		}
	}()
	d.Cleanup(func() { events.Stop(); <-done })
}

// handled writes what the controller writes once it has looked.
func (d *desk) handled(ft *flightsv1.FlightTicket) {
	ft.Status.LastHandledReconcileAt = ft.Annotations[flightsv1.ReconcileRequestedAtAnnotation]
	meta.SetStatusCondition(&ft.Status.Conditions, metav1.Condition{Type: flightsv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Booked", Message: "booking QX7"})
	if err := client.IgnoreNotFound(d.admin.Status().Update(d.ctx, ft)); err != nil && d.ctx.Err() == nil {
		d.Errorf("play the controller: %v", err)
	}
}

func TestSyncWaitsUntilTheControllerHasLookedAtEachTicket(t *testing.T) {
	d := newDesk(t)
	d.ticket("one", booked)
	d.ticket("two", booked)
	d.handler(d.handled)
	code, out, errs := d.call("sync", "one", "two", "--timeout="+patience.String())
	if code != exit.OK || out != "flightticket.flights.com/one synced\nflightticket.flights.com/two synced\n" {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	if errs != "one: Booked: booking QX7\ntwo: Booked: booking QX7\n" {
		t.Errorf("it says %q", errs)
	}
}

func TestSyncThatNobodyHandlesSaysWhatToLookAt(t *testing.T) {
	d := newDesk(t)
	d.ticket("trip", booked)
	code, out, errs := d.call("sync", "trip", "--timeout=1ms")
	if code != exit.Failed || out != "" || !strings.Contains(errs, "did not look at it within 1ms") || !strings.Contains(errs, "get deployment flight-controller") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	if d.read("trip").Annotations[flightsv1.ReconcileRequestedAtAnnotation] == "" {
		t.Error("the request does not stand")
	}
}

func TestSyncNeedNotWait(t *testing.T) {
	d := newDesk(t)
	d.ticket("trip", booked)
	for _, how := range []string{"--wait=false", "--dry-run=server", "--dry-run=client"} {
		if code, out, errs := d.call("sync", "trip", how); code != exit.OK || !strings.HasPrefix(out, "flightticket.flights.com/trip synced") {
			t.Errorf("%s: code %d, %q, %q", how, code, out, errs)
		}
	}
}

func TestATicketThatGoesWhileItIsSyncedIsNoFailure(t *testing.T) {
	d := newDesk(t)
	d.ticket("trip", booked)
	d.handler(func(ft *flightsv1.FlightTicket) {
		if err := client.IgnoreNotFound(d.admin.Delete(d.ctx, ft)); err != nil && d.ctx.Err() == nil {
			d.Errorf("delete: %v", err)
		}
	})
	if code, _, errs := d.call("sync", "trip", "--timeout="+patience.String()); code != exit.OK || !strings.Contains(errs, "trip: is gone") {
		t.Errorf("code %d, %q", code, errs)
	}
}

func TestALaterRequestThatIsHandledHandlesTheEarlierOne(t *testing.T) {
	for name, c := range map[string]struct {
		asked, last string
		want        bool
	}{
		"one's own":                       {"t1", "t1", true},
		"not yet":                         {"t1", "", false},
		"an earlier one":                  {"t1", "t0", false},
		"a later one that took its place": {"t2", "t2", true},
		"a later one, not yet":            {"t2", "", false},
	} {
		ft := &flightsv1.FlightTicket{}
		ft.Annotations = map[string]string{flightsv1.ReconcileRequestedAtAnnotation: c.asked}
		ft.Status.LastHandledReconcileAt = c.last
		if got := handled(ft, "t1"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
