package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// team is a namespace with people whose rights on tickets differ: tenant has what edit gives, boss what flights-admin does,
// and there is one with each verb alone.
type team struct {
	t         *testing.T
	admin     client.Client
	namespace string
}

func newTeam(t *testing.T) *team {
	t.Helper()
	admin := newClient(t, plane.Config)
	m := &team{t: t, admin: admin, namespace: namespace(t, admin)}
	for _, file := range []string{"view", "edit", "admin"} {
		m.do("", "apply", "-f", filepath.Join(plane.Root(), "config/rbac/users", file+".yaml"))
	}
	bind := func(user, kind, role string) {
		m.create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, GenerateName: user + "-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	}
	for verb, user := range map[string]string{"adopt": "adopter", "resolve": "resolver", "retain": "retainer", "nothing": "tenant"} {
		bind(user, "ClusterRole", "flights-edit")
		bind(user, "ClusterRole", "flights-view")
		m.create(&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: verb},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"flights.com"}, Resources: []string{"flighttickets"}, Verbs: []string{verb}}},
		})
		bind(user, "Role", verb)
	}
	bind("boss", "ClusterRole", "flights-admin")
	return m
}

func (m *team) create(o client.Object) {
	m.t.Helper()
	if err := m.admin.Create(m.t.Context(), o); err != nil {
		m.t.Fatal(err)
	}
}

func (m *team) do(stdin string, args ...string) string {
	m.t.Helper()
	out, err := kubectl(m.t, stdin, args...)
	if err != nil {
		m.t.Fatalf("kubectl %q: %v: %s", args, err, out)
	}
	return out
}

// ticket stores a ticket that has a booking, or an open operation, or neither; and is being deleted, or not.
func (m *team) ticket(name string, edit func(*flightsv1.FlightTicketStatus), deleted bool) *flightsv1.FlightTicket {
	m.t.Helper()
	ft := newTicket(m.namespace, name)
	ctx := m.t.Context()
	if err := m.admin.Create(ctx, ft); err != nil {
		m.t.Fatal(err)
	}
	if edit != nil {
		edit(&ft.Status)
		if err := m.admin.Status().Update(ctx, ft); err != nil {
			m.t.Fatal(err)
		}
	}
	if deleted {
		if err := m.admin.Delete(ctx, ft); err != nil {
			m.t.Fatal(err)
		}
	}
	m.t.Cleanup(func() { m.free(context.Background(), ft) })
	return ft
}

// free lets a ticket go, as the controller would.
func (m *team) free(ctx context.Context, ft *flightsv1.FlightTicket) {
	_ = m.admin.Delete(ctx, ft.DeepCopy()) // it may be going already
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(m.admin.Patch(ctx, ft.DeepCopy(), patch)); err != nil {
		m.t.Errorf("free %s: %v", ft.Name, err)
	}
}

func booked(s *flightsv1.FlightTicketStatus) {
	s.Booking = &flightsv1.BookingStatus{ID: "bk_1", Provider: flightsv1.ProviderIdentity{Name: "main", UID: "u", Account: "a"}, Order: anOrder()}
}

func unknown(s *flightsv1.FlightTicketStatus) {
	order := anOrder()
	s.Operation = &flightsv1.OperationStatus{
		ID: "op1", Kind: flightsv1.OperationBook, Attempt: 1, Generation: 1, Order: &order, Outcome: "Unknown",
		Provider:  flightsv1.ProviderIdentity{Name: "main", UID: "u", Account: "a"},
		StartedAt: metav1.NowMicro(), SendBy: metav1.NowMicro(),
	}
}

func anOrder() flightsv1.Order { return flightsv1.Order{Origin: "BOM", Destination: "LON", Seats: 2} }

// wayOfDeciding is a way in which a person sets an annotation on a ticket, and what comes back.
type wayOfDeciding struct {
	name string
	set  func(m *team, user, ticket, key, value string) error
}

func waysOfDeciding() []wayOfDeciding {
	merge := func(m *team, user, ticket, key, value string, options ...client.PatchOption) error {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
		return m.as(user).Patch(m.t.Context(), newTicket(m.namespace, ticket), client.RawPatch(types.MergePatchType, []byte(patch)), options...)
	}
	return []wayOfDeciding{
		{"a patch", func(m *team, user, ticket, key, value string) error { return merge(m, user, ticket, key, value) }},
		{"a dry run", func(m *team, user, ticket, key, value string) error {
			return merge(m, user, ticket, key, value, client.DryRunAll)
		}},
		{"a server-side apply", func(m *team, user, ticket, key, value string) error {
			text := fmt.Sprintf(`{"apiVersion":"flights.com/v1","kind":"FlightTicket","metadata":{"name":%q,"annotations":{%q:%q}},`+
				`"spec":{"from":"Mumbai","to":"London","number":2}}`, ticket, key, value)
			return m.as(user).Patch(m.t.Context(), newTicket(m.namespace, ticket), client.RawPatch(types.ApplyPatchType, []byte(text)),
				client.ForceOwnership, client.FieldOwner(user))
		}},
		{"an update of the whole", func(m *team, user, ticket, key, value string) error {
			ft := newTicket(m.namespace, ticket)
			if err := m.admin.Get(m.t.Context(), client.ObjectKeyFromObject(ft), ft); err != nil {
				return err
			}
			ft.Annotations[key] = value
			ft.Annotations[flightsv1.DecidedByAnnotation] = "root"
			return m.as(user).Update(m.t.Context(), ft)
		}},
	}
}

// as is a client of one of the team.
func (m *team) as(user string) client.Client {
	m.t.Helper()
	config := rest.CopyConfig(plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return newClient(m.t, config)
}

func TestOnlyWhoHasTheVerbDecidesHoweverItIsSaid(t *testing.T) {
	startWebhook(t)
	m := newTeam(t)
	for _, c := range []struct {
		verb, key, value string
		has, lacks       string // users with one of the verbs
		status           func(*flightsv1.FlightTicketStatus)
		deleted          bool
	}{
		{"adopt", flightsv1.AdoptBookingAnnotation, "bk_9", "adopter", "retainer", nil, false},
		{"resolve", flightsv1.ResolveOperationAnnotation, "op1 done bk_9", "resolver", "adopter", unknown, false},
		{"resolve", flightsv1.ResolveOperationAnnotation, "op1 not-done", "resolver", "adopter", unknown, true},
		{"retain", flightsv1.RetainBookingAnnotation, "bk_1", "retainer", "resolver", booked, false},
		{"retain", flightsv1.RetainBookingAnnotation, "bk_1", "retainer", "resolver", booked, true},
	} {
		for _, way := range waysOfDeciding() {
			what := fmt.Sprintf("%s by %s", c.verb, way.name)
			if c.deleted {
				what += " on a ticket that is being deleted"
			}
			t.Run(what, func(t *testing.T) {
				m := &team{t: t, admin: m.admin, namespace: m.namespace}
				ft := m.ticket(strings.ReplaceAll(strings.ToLower(what), " ", "-"), c.status, c.deleted)
				for _, user := range []string{"tenant", c.lacks} {
					err := way.set(m, user, ft.Name, c.key, c.value)
					if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("user %q lacks the verb %s on FlightTicket %s", user, c.verb, ft.Name)) {
						t.Errorf("%s is let through, or told something else: %v", user, err)
					}
				}
				m.stands(ft, c.key, "", "")
				for _, user := range []string{c.has, "boss"} {
					if err := way.set(m, user, ft.Name, c.key, c.value); err != nil {
						t.Errorf("%s is refused: %v", user, err)
					}
				}
				if way.name == "a dry run" {
					m.stands(ft, c.key, "", "")
				} else {
					m.stands(ft, c.key, c.value, c.has) // the same again by boss decides nothing
				}
			})
		}
	}
}

// stands checks what a ticket says of a decision and who made it.
func (m *team) stands(ft *flightsv1.FlightTicket, key, value, by string) {
	m.t.Helper()
	var now flightsv1.FlightTicket
	if err := m.admin.Get(m.t.Context(), client.ObjectKeyFromObject(ft), &now); err != nil {
		m.t.Fatal(err)
	}
	if now.Annotations[key] != value || now.Annotations[flightsv1.DecidedByAnnotation] != by {
		m.t.Errorf("the ticket says %v", now.Annotations)
	}
}

func TestKubectlAnnotateIsToldWhichVerbIsMissing(t *testing.T) {
	startWebhook(t)
	m := newTeam(t)
	ft := m.ticket("trip", booked, true)
	args := []string{"annotate", "ticket", ft.Name, "--overwrite", flightsv1.RetainBookingAnnotation + "=bk_1", "-n", m.namespace}
	out, err := kubectl(t, "", append(args, "--as=tenant")...)
	for _, part := range []string{
		`user "tenant" lacks the verb retain on FlightTicket trip in namespace ` + m.namespace,
		`{apiGroups: ["flights.com"], resources: ["flighttickets"], verbs: ["retain"]}`,
	} {
		if err == nil || !strings.Contains(out, part) {
			t.Errorf("%v: %s", err, out)
		}
	}
	m.do("", append(args, "--as=retainer")...)
	m.stands(ft, flightsv1.RetainBookingAnnotation, "bk_1", "retainer")
	m.do("", "annotate", "ticket", ft.Name, flightsv1.RetainBookingAnnotation+"-", "-n", m.namespace, "--as=tenant")
	m.stands(ft, flightsv1.RetainBookingAnnotation, "", "retainer")
}

func TestATicketThatAdoptsAtItsCreationTakesTheVerbToo(t *testing.T) {
	startWebhook(t)
	m := newTeam(t)
	text := strings.Replace(manifest, "  name: my-flight-ticket\n", "  name: my-flight-ticket\n  annotations: {flights.com/adopt-booking: bk_9, flights.com/decided-by: root}\n", 1)
	for _, way := range [][]string{{"create", "-f", "-"}, {"apply", "--server-side", "-f", "-"}, {"create", "--dry-run=server", "-f", "-"}} {
		if out, err := kubectl(t, text, append(way, "-n", m.namespace, "--as=tenant")...); err == nil || !strings.Contains(out, "lacks the verb adopt") {
			t.Errorf("%v: %v: %s", way, err, out)
		}
	}
	m.do(text, "create", "-f", "-", "-n", m.namespace, "--as=adopter")
	m.stands(newTicket(m.namespace, "my-flight-ticket"), flightsv1.AdoptBookingAnnotation, "bk_9", "adopter")
	m.free(t.Context(), newTicket(m.namespace, "my-flight-ticket"))
}

func TestARightOfAGroupCountsAndOneOfAnotherNamespaceDoesNot(t *testing.T) {
	startWebhook(t)
	m := newTeam(t)
	m.do("", "create", "rolebinding", "desk", "--role=retain", "--group=desk", "-n", m.namespace)
	other := namespace(t, m.admin)
	m.do("", "create", "rolebinding", "boss", "--clusterrole=flights-admin", "--user=tenant", "-n", other)
	ft := m.ticket("trip", booked, true)
	args := []string{"annotate", "ticket", ft.Name, flightsv1.RetainBookingAnnotation + "=bk_1", "-n", m.namespace, "--as=tenant"}
	if out, err := kubectl(t, "", args...); err == nil || !strings.Contains(out, "lacks the verb retain") {
		t.Errorf("a right in another namespace is enough: %v: %s", err, out)
	}
	m.do("", append(args, "--as-group=desk")...)
	m.stands(ft, flightsv1.RetainBookingAnnotation, "bk_1", "tenant")
}

// What goes on without the webhook: a finalizer, and what is no decision. A decision never does.
func TestWithoutTheWebhookFinalizersGoAndNothingIsDecided(t *testing.T) {
	w := startWebhook(t)
	m := newTeam(t)
	ft := m.ticket("trip", booked, true)
	w.stop()
	patch := func(text string) error {
		return m.admin.Patch(t.Context(), ft.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	for what, annotations := range map[string]string{
		"a retention":         `{"flights.com/retain-booking":"bk_1"}`,
		"a resolution":        `{"flights.com/resolve-operation":"op1 done"}`,
		"an adoption":         `{"flights.com/adopt-booking":"bk_1"}`,
		"who decided":         `{"flights.com/decided-by":"root"}`,
		"who requested":       `{"flights.com/requested-by":"root"}`,
		"the groups of those": `{"flights.com/requested-by-groups":"[\"system:masters\"]"}`,
		"no annotation left":  `null`,
	} {
		if err := patch(`{"metadata":{"annotations":` + annotations + `}}`); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			t.Errorf("%s is let through: %v", what, err)
		}
	}
	if err := patch(`{"metadata":{"annotations":{"flights.com/reconcile-requested-at":"now"},"labels":{"a":"b"}}}`); err != nil {
		t.Errorf("another look can't be asked for: %v", err)
	}
	if err := patch(`{"metadata":{"finalizers":null}}`); err != nil {
		t.Errorf("the finalizer stays: %v", err)
	}
}

// A ticket from before the webhooks has no annotations at all.
func TestTheFinalizerOfATicketWithoutAnnotationsGoesWithoutTheWebhook(t *testing.T) {
	admin := newClient(t, plane.Config)
	ft := newTicket(namespace(t, admin), "trip")
	ft.Finalizers = []string{flightsv1.BookingFinalizer}
	if err := admin.Create(t.Context(), ft); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), ft); err != nil {
		t.Fatal(err)
	}
	startWebhook(t).stop()
	patch := func(text string) error {
		return admin.Patch(t.Context(), ft.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	if err := patch(`{"metadata":{"annotations":{"flights.com/retain-booking":"bk_1"}}}`); err == nil {
		t.Error("a decision is let through")
	}
	if err := patch(`{"metadata":{"finalizers":null}}`); err != nil {
		t.Errorf("the finalizer stays: %v", err)
	}
}
