package story

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// everything gives somebody all rights in the scene's namespace, as teams often have.
func everything(s *scene.Scene, user string) {
	s.Helper()
	s.Apply(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: everything}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: everything}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: everything}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + user + `}
`)
}

func TestAUserWithAllRightsInANamespaceCannotWriteAStatus(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	everything(s, "mallory")
	s.Apply(s.TicketManifest("trip"), "--as=mallory")
	before := s.Booked("trip", 2)
	forged := s.Do("", "get", "ticket", "trip", "-o", "json", "--as=mallory")
	forged = strings.ReplaceAll(forged, before.Status.Booking.Reference, "FORGED")
	bare := "apiVersion: flights.com/v1\nkind: FlightTicket\nmetadata: {name: trip}\nstatus: {state: Pending}\n"
	for _, c := range []struct {
		what, manifest string
		args           []string
	}{
		{"a patch", "", []string{"patch", "ticket", "trip", "--subresource=status", "--type=merge", "-p", `{"status":{"booking":null}}`}},
		{"a json patch", "", []string{"patch", "ticket", "trip", "--subresource=status", "--type=json", "-p", `[{"op":"remove","path":"/status/booking"}]`}},
		{"an update", forged, []string{"replace", "--subresource=status", "-f", "-"}},
		{"a server-side apply", bare, []string{"apply", "--server-side", "--force-conflicts", "--subresource=status", "-f", "-"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := s.In(t)
			s.Says(s.Refused(c.manifest, append(c.args, "--as=mallory")...),
				"only the flight-controller may write a status; edit the spec, the controller follows it")
		})
	}
	t.Run("a patch by the cluster's administrator", func(t *testing.T) {
		s := s.In(t)
		s.Says(s.Refused("", "patch", "ticket", "trip", "--subresource=status", "--type=merge", "-p", `{"status":{"booking":null}}`),
			"only the flight-controller may write a status")
	})
	t.Run("a status beside a spec is dropped", func(t *testing.T) {
		s := s.In(t)
		s.Do("", "patch", "ticket", "trip", "--type=merge", "-p", `{"status":{"booking":null,"state":"Pending"}}`, "--as=mallory")
	})
	after := s.Ticket("trip")
	s.Read(after)
	if diff := cmp.Diff(before.Status, after.Status); diff != "" {
		t.Errorf("the status was changed (-before +after):\n%s", diff)
	}
}

func TestAStatusInAManifestIsNotStored(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	everything(s, "mallory")
	manifest := s.TicketManifest("trip", "suspend: true") + "status: {state: Booked, observedGeneration: 7, attempts: 3}\n"
	var created flightsv1.FlightTicket
	answer := s.Do(manifest, "create", "-f", "-", "-o", "json", "--as=mallory")
	if err := json.Unmarshal([]byte(answer), &created); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(flightsv1.FlightTicketStatus{ObservedGeneration: -1}, created.Status); diff != "" {
		t.Errorf("the status of a new ticket (-want +got):\n%s", diff)
	}
}

func TestNobodyCanNameAnotherRequester(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	everything(s, "mallory")
	claim := func(text string) string {
		return strings.Replace(text, "metadata: {name: trip}",
			"metadata: {name: trip, annotations: {flights.com/requested-by: asha, flights.com/requested-by-groups: '[\"admins\"]'}}", 1)
	}
	requester := func() string {
		return s.Do("", "get", "ticket", "trip", "-o",
			`jsonpath={.metadata.annotations.flights\.com/requested-by} {.metadata.annotations.flights\.com/requested-by-groups}`)
	}
	const truth = `mallory ["system:authenticated"]`
	s.Do(claim(s.TicketManifest("trip", "suspend: true")), "create", "-f", "-", "--as=mallory")
	for _, c := range []struct {
		what, manifest string
		args           []string
	}{
		{"created", "", []string{"get", "ticket", "trip"}},
		{"annotated", "", []string{"annotate", "ticket", "trip", "--overwrite", "flights.com/requested-by=asha"}},
		{"with the annotation taken off", "", []string{"annotate", "ticket", "trip", "flights.com/requested-by-"}},
		{"patched", "", []string{"patch", "ticket", "trip", "--type=json", "-p", `[{"op":"remove","path":"/metadata/annotations"}]`}},
		{"replaced", claim(s.TicketManifest("trip", "suspend: true")), []string{"replace", "-f", "-"}},
		{"applied by server side", claim(s.TicketManifest("trip", "suspend: true")), []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := s.In(t)
			s.Do(c.manifest, append(c.args, "--as=mallory")...)
			if got := requester(); got != truth {
				t.Errorf("the requester is %s, want %s", got, truth)
			}
		})
	}
}

// RBAC must let the controller patch tickets, for its finalizer. What else it could do with that right, the guard stops.
func TestTheControllersAccountCannotChangeWhatUsersAskFor(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	s.Apply(s.TicketManifest("trip", "suspend: true"))
	enforce(s, "seats", "library: seats-per-ticket\nparameters: {max: 2}")
	const as = "--as=system:serviceaccount:flight-operator-system:flight-controller"
	for _, c := range []struct {
		what string
		args []string
		want string
	}{
		{"a spec", []string{"patch", "ticket", "trip", "--type=merge", "-p", `{"spec":{"number":5}}`}, "the flight-controller must not change a spec"},
		{"an annotation", []string{"annotate", "ticket", "trip", "flights.com/reconcile-requested-at=now"}, "the flight-controller must not change annotations or labels"},
		{"a decision", []string{"annotate", "ticket", "trip", "flights.com/adopt-booking=bk_1"}, "the flight-controller must not change annotations or labels"},
		{"a label", []string{"label", "ticket", "trip", "team=alpha"}, "the flight-controller must not change annotations or labels"},
		{"a provider's spec", []string{"patch", "bookingprovider", house.provider, "--type=merge", "-p", `{"spec":{"default":false}}`}, "the flight-controller must not change a spec"},
		{"a policy's spec", []string{"patch", "flightpolicy", "seats-" + s.Namespace, "--type=merge", "-p", `{"spec":{"enforcement":"Warn"}}`}, "forbidden"},
		{"the whole object", []string{"delete", "ticket", "trip"}, "forbidden"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := s.In(t)
			s.Says(s.Refused("", append(c.args, as)...), c.want)
		})
	}
}
