package cluster

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/exit"
	"github.com/flight-operator/flight-operator/internal/controlplane"
)

// plane is the control plane that the tests of this package share. No webhook is on it: what it refuses is told by test/story.
var plane *controlplane.Plane

func TestMain(m *testing.M) {
	os.Exit(controlplane.RunTests(m, controlplane.Options{}, func(p *controlplane.Plane) { plane = p }))
}

// patience bounds every wait; nothing depends on how much of it is used.
const patience = time.Minute

// desk is a namespace of one test, and a kubeconfig that leads there.
type desk struct {
	*testing.T
	ctx        context.Context
	admin      client.WithWatch
	namespace  string
	kubeconfig string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, flightsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := client.NewWithWatch(plane.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	d := &desk{T: t, ctx: ctx, admin: admin, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := plane.WriteKubeconfig(d.kubeconfig, plane.Config); err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	if err := admin.Create(ctx, ns); err != nil {
		t.Fatal(err)
	}
	d.namespace = ns.Name
	return d
}

// call runs a command line against the control plane.
func (d *desk) call(args ...string) (code int, out, errs string) {
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	root := &cobra.Command{SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands(streams)...)
	root.SetArgs(append(args, "--kubeconfig="+d.kubeconfig, "--namespace="+d.namespace))
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(d.ctx)
	errs = stderr.String()
	if err != nil {
		errs += "error: " + err.Error()
	}
	return exit.Code(err), stdout.String(), errs
}

// ticket stores a ticket with a status.
func (d *desk) ticket(name string, edit func(*flightsv1.FlightTicketStatus)) *flightsv1.FlightTicket {
	d.Helper()
	ft := &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name, Annotations: map[string]string{"team": "sales"}},
		Spec:       flightsv1.FlightTicketSpec{From: "Mumbai", To: "London", Number: 2},
	}
	if err := d.admin.Create(d.ctx, ft); err != nil {
		d.Fatal(err)
	}
	if edit != nil {
		d.status(name, edit)
	}
	return d.read(name)
}

// status writes a status, as the controller would.
func (d *desk) status(name string, edit func(*flightsv1.FlightTicketStatus)) {
	d.Helper()
	ft := d.read(name)
	edit(&ft.Status)
	if err := d.admin.Status().Update(d.ctx, ft); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) read(name string) *flightsv1.FlightTicket {
	d.Helper()
	ft := &flightsv1.FlightTicket{}
	if err := d.admin.Get(d.ctx, client.ObjectKey{Namespace: d.namespace, Name: name}, ft); err != nil {
		d.Fatal(err)
	}
	return ft
}

// says fails unless a ticket has a value of an annotation, beside those of others.
func (d *desk) says(name, key, want string) {
	d.Helper()
	ft := d.read(name)
	if ft.Annotations[key] != want || ft.Annotations["team"] != "sales" {
		d.Errorf("%s says %v, want %s: %s", name, ft.Annotations, key, want)
	}
}

func identity() flightsv1.ProviderIdentity {
	return flightsv1.ProviderIdentity{Name: "main", UID: "u-1", Account: "acct-7"}
}

func order() flightsv1.Order {
	return flightsv1.Order{
		Origin: "BOM", Destination: "LON", Seats: 2, DepartureDate: "2027-03-14",
		Passengers: []flightsv1.Passenger{{GivenName: "Secret", FamilyName: "Traveller"}},
	}
}

func booked(s *flightsv1.FlightTicketStatus) {
	s.Booking = &flightsv1.BookingStatus{ID: "bk_1", Reference: "QX7", Provider: identity(), Order: order()}
}

// operating is a status with an open operation.
func operating(id string, kind flightsv1.OperationKind) func(*flightsv1.FlightTicketStatus) {
	return func(s *flightsv1.FlightTicketStatus) {
		asked := order()
		at := metav1.NewMicroTime(time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC))
		settles := metav1.NewMicroTime(at.Add(5 * time.Minute))
		s.Operation = &flightsv1.OperationStatus{
			ID: id, Kind: kind, Attempt: 1, Generation: 1, Provider: identity(), StartedAt: at, SendBy: at, SettlesAt: &settles,
			Outcome: "Unknown", ClientReference: "house/u-2/1", Owner: "house/team/trip", Order: &asked,
		}
		if kind != flightsv1.OperationBook {
			s.Operation.BookingID = "bk_1"
		}
	}
}
