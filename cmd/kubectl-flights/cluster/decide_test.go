package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/exit"
)

func TestADecisionIsWrittenAndPrinted(t *testing.T) {
	d := newDesk(t)
	d.ticket("adopting", nil)
	d.ticket("unknown", operating("op1", flightsv1.OperationBook))
	d.ticket("lost", operating("op2", flightsv1.OperationBook))
	d.ticket("changing", operating("op3", flightsv1.OperationChange))
	d.ticket("booked", booked)
	for _, c := range []struct {
		args, out        string
		ticket, key, say string
	}{
		{"adopt adopting --booking bk_9", "flightticket.flights.com/adopting adopts\n", "adopting", flightsv1.AdoptBookingAnnotation, "bk_9"},
		{"resolve unknown --done --booking bk_9", "flightticket.flights.com/unknown resolved\n", "unknown", flightsv1.ResolveOperationAnnotation, "op1 done bk_9"},
		{"resolve lost --not-done", "flightticket.flights.com/lost resolved\n", "lost", flightsv1.ResolveOperationAnnotation, "op2 not-done"},
		{"resolve changing --done -o name", "flightticket.flights.com/changing\n", "changing", flightsv1.ResolveOperationAnnotation, "op3 done"},
		{"retain booked", "flightticket.flights.com/booked retains its booking\n", "booked", flightsv1.RetainBookingAnnotation, "bk_1"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, out, errs := d.call(strings.Fields(c.args)...)
			if code != exit.OK || out != c.out {
				t.Errorf("code %d, %q, %q", code, out, errs)
			}
			d.says(c.ticket, c.key, c.say)
		})
	}
}

func TestADryRunStoresNothing(t *testing.T) {
	d := newDesk(t)
	d.ticket("trip", booked)
	for _, how := range []string{"client", "server"} {
		word := map[string]string{"client": "(dry run)", "server": "(server dry run)"}[how]
		if code, out, errs := d.call("retain", "trip", "--dry-run="+how); code != exit.OK || !strings.HasSuffix(out, word+"\n") {
			t.Errorf("%s: code %d, %q, %q", how, code, out, errs)
		}
		for format, decode := range map[string]func([]byte, any) error{
			"json": json.Unmarshal, "yaml": func(text []byte, into any) error { return yaml.Unmarshal(text, into) },
		} {
			var shown flightsv1.FlightTicket
			code, out, errs := d.call("retain", "trip", "--dry-run="+how, "-o", format)
			if err := decode([]byte(out), &shown); code != exit.OK || err != nil {
				t.Fatalf("%s %s: code %d, %v, %q", how, format, code, err, errs)
			}
			if shown.Kind != "FlightTicket" || shown.Annotations[flightsv1.RetainBookingAnnotation] != "bk_1" || shown.Annotations["team"] != "sales" {
				t.Errorf("%s %s: %s", how, format, out)
			}
		}
		d.says("trip", flightsv1.RetainBookingAnnotation, "")
	}
}

func TestWhatThereIsNothingToDecideAboutIsAFailureThatSaysSo(t *testing.T) {
	d := newDesk(t)
	d.ticket("trip", nil)
	for args, want := range map[string]string{
		"retain trip":            "retain the booking of trip: it has no booking that could stay with the provider",
		"resolve trip --done":    "trip has no open operation, so nothing is left to decide",
		"retain tour":            "namespace " + d.namespace + " has no such ticket, see kubectl get flighttickets",
		"resolve tour":           "has no such ticket",
		"adopt tour --booking b": "has no such ticket",
		"sync tour --wait=false": "has no such ticket",
	} {
		if code, out, errs := d.call(strings.Fields(args)...); code != exit.Failed || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, %q, %q", args, code, out, errs)
		}
	}
}

func TestOneTicketThatFailsKeepsNoOtherFromBeingRetained(t *testing.T) {
	d := newDesk(t)
	d.ticket("one", booked)
	d.ticket("two", booked)
	going := d.read("two")
	going.Finalizers = []string{flightsv1.BookingFinalizer}
	if err := d.admin.Update(d.ctx, going); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := d.admin.Patch(context.Background(), going, patch); err != nil {
			t.Error(err)
		}
	})
	if err := d.admin.Delete(d.ctx, going); err != nil {
		t.Fatal(err)
	}
	code, out, errs := d.call("retain", "one", "none", "two")
	if code != exit.Failed || strings.Count(out, "retains its booking") != 2 || !strings.Contains(errs, "retain the booking of none: ") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	d.says("two", flightsv1.RetainBookingAnnotation, "bk_1")
}

func TestResolveShowsWhatToAskBeforeItDecides(t *testing.T) {
	d := newDesk(t)
	d.ticket("trip", operating("op1", flightsv1.OperationBook))
	code, out, errs := d.call("resolve", "trip")
	if code != exit.Usage || out != "" || !strings.Contains(errs, "say --done or --not-done once you know from the provider") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	for _, part := range []string{
		d.namespace + "/trip", "op1 (Book)", "main, account acct-7", "house/u-2/1", "house/team/trip", "BOM to LON, seats: 2, departure: 2027-03-14",
		"Ask main whether a booking with that client reference exists", "until 2027-01-02T03:09:05Z: decide nothing before",
	} {
		if !strings.Contains(errs, part) {
			t.Errorf("%q is not told: %s", part, errs)
		}
	}
	if strings.Contains(errs, "Secret") || strings.Contains(errs, "Traveller") {
		t.Errorf("a passenger is named: %s", errs)
	}
	d.says("trip", flightsv1.ResolveOperationAnnotation, "")
}

func TestEachKindOfOperationHasItsQuestion(t *testing.T) {
	for kind, want := range map[flightsv1.OperationKind]string{
		flightsv1.OperationBook: "Ask main whether a booking with", flightsv1.OperationChange: "Ask main whether booking bk_1 is as the order says",
		flightsv1.OperationCancel: "Ask main whether booking bk_1 is cancelled",
	} {
		ft := &flightsv1.FlightTicket{}
		operating("op1", kind)(&ft.Status)
		var text strings.Builder
		if err := showOperation(&text, ft, time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), want) || strings.Contains(text.String(), "decide nothing before") {
			t.Errorf("%s: %s", kind, text.String())
		}
	}
}

// opened are the desk's tickets, with something that happens just before each write, until it returns false.
func (d *desk) opened(meanwhile func() bool) *tickets {
	more := true
	return &tickets{namespace: d.namespace, client: interceptor.NewClient(d.admin, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if more {
				more = meanwhile()
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})}
}

func TestATicketThatChangesMeanwhileIsReadAgain(t *testing.T) {
	d := newDesk(t)
	d.ticket("trip", operating("op1", flightsv1.OperationBook))
	o := &resolveOptions{ticket: "trip", notDone: true}
	touched := d.opened(func() bool {
		d.status("trip", func(s *flightsv1.FlightTicketStatus) { s.Attempts++ })
		return false
	})
	if _, err := touched.decide(d.ctx, "trip", o.resolution("op1"), dryRunNone); err != nil {
		t.Errorf("an operation that stays is not resolved: %v", err)
	}
	d.says("trip", flightsv1.ResolveOperationAnnotation, "op1 not-done")
}

func TestAnOperationThatIsClosedMeanwhileIsNotResolved(t *testing.T) {
	d := newDesk(t)
	for name, edit := range map[string]func(*flightsv1.FlightTicketStatus){
		"closed":   func(s *flightsv1.FlightTicketStatus) { s.Operation = nil },
		"followed": operating("op2", flightsv1.OperationBook),
	} {
		d.ticket(name, operating("op1", flightsv1.OperationBook))
		o := &resolveOptions{ticket: name, notDone: true}
		closed := d.opened(func() bool { d.status(name, edit); return false })
		if _, err := closed.decide(d.ctx, name, o.resolution("op1"), dryRunNone); err == nil || !strings.Contains(err.Error(), "was closed meanwhile") {
			t.Errorf("%s: %v", name, err)
		}
		d.says(name, flightsv1.ResolveOperationAnnotation, "")
	}
}

func TestATicketThatNeverHoldsStillIsAConflict(t *testing.T) {
	d := newDesk(t)
	d.ticket("trip", booked)
	restless := d.opened(func() bool {
		d.status("trip", func(s *flightsv1.FlightTicketStatus) { s.Attempts++ })
		return true
	})
	if _, err := restless.decide(d.ctx, "trip", retention, dryRunNone); err == nil || !strings.Contains(err.Error(), "the object has been modified") {
		t.Errorf("it ends with %v", err)
	}
	d.says("trip", flightsv1.RetainBookingAnnotation, "")
}

func TestAClusterWithoutFlightOperatorIsToldFromATicketThatIsNotThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	d := newDesk(t)
	if err := plane.WriteKubeconfig(d.kubeconfig, &rest.Config{Host: server.URL}); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := d.call("retain", "trip"); code != exit.Failed || !strings.Contains(errs, "is Flight Operator installed there?") {
		t.Errorf("code %d, %q", code, errs)
	}
}

func TestTheNamesOfTicketsAreCompleted(t *testing.T) {
	d := newDesk(t)
	d.ticket("one", nil)
	d.ticket("two", nil)
	for _, c := range []struct {
		command string
		named   []string
		want    string
	}{
		{"resolve", nil, "one two"}, {"resolve", []string{"one"}, ""}, {"adopt", nil, "one two"},
		{"sync", []string{"one"}, "two"}, {"retain", []string{"two", "one"}, ""},
	} {
		for _, command := range Commands(genericiooptions.NewTestIOStreamsDiscard()) {
			if command.Name() != c.command {
				continue
			}
			if err := command.ParseFlags([]string{"--kubeconfig=" + d.kubeconfig, "--namespace=" + d.namespace}); err != nil {
				t.Fatal(err)
			}
			command.SetContext(d.ctx)
			if got, _ := command.ValidArgsFunction(command, c.named, ""); strings.Join(got, " ") != c.want {
				t.Errorf("%s %v is completed with %v", c.command, c.named, got)
			}
		}
	}
}
