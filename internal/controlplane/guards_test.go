package controlplane_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/flight-operator/flight-operator/api/v1"
)

const operatorNamespace = "flight-operator-system"

// applyGuard installs the rights of both programs, and a guard until the test ends.
func applyGuard(t *testing.T, file string) {
	t.Helper()
	path := func(file string) string { return filepath.Join(plane.Root(), "config", file) }
	out, err := plane.Kubectl(t.Context(), "apply", "-f", path("default/namespace.yaml"), "-f", path("rbac/service-accounts.yaml"),
		"-f", path("rbac/controller/role.yaml"), "-f", path("rbac/webhook/role.yaml"), "-f", path("rbac/bindings.yaml"), "-f", path(file))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := plane.Kubectl(context.Background(), "delete", "-f", path(file)); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// as is a client of one of our accounts.
func as(t *testing.T, account string) client.Client {
	t.Helper()
	config, err := plane.ServiceAccountConfig(t.Context(), operatorNamespace, account)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, config)
}

// refused waits until a request is refused with a text: a guard is in force a moment after it is stored.
func refused(t *testing.T, text string, request func(context.Context) error) {
	t.Helper()
	eventually(t, "a refusal with "+text, func(ctx context.Context) (bool, error) {
		err := request(ctx)
		return err != nil && strings.Contains(err.Error(), text), nil
	})
}

// tenant has all rights in one namespace.
func tenant(t *testing.T, admin client.Client, namespace string) *rest.Config {
	t.Helper()
	config, err := plane.AddUser("mallory")
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "everything"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "everything"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "everything"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}},
	}
	if err := errors.Join(admin.Create(t.Context(), role), admin.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
	return config
}

// patched applies a merge patch as a try, which is checked as if it were stored.
func patched(c client.Client, o client.Object, patch string) func(context.Context) error {
	return func(ctx context.Context) error {
		return c.Patch(ctx, o.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(patch)), client.DryRunAll)
	}
}

func heldTicket(t *testing.T, admin client.Client) *v1.FlightTicket {
	t.Helper()
	ticket := &v1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: newNamespace(t, admin), Name: "trip", Finalizers: []string{"example.com/other", v1.BookingFinalizer},
			Annotations: map[string]string{v1.RequestedByAnnotation: "asha", v1.RequestedByGroupsAnnotation: "[]"},
		},
		Spec: v1.FlightTicketSpec{From: "Mumbai", To: "London"},
	}
	if err := admin.Create(t.Context(), ticket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := admin.Patch(context.Background(), ticket, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		if err := errors.Join(client.IgnoreNotFound(err), client.IgnoreNotFound(admin.Delete(context.Background(), ticket))); err != nil {
			t.Error(err)
		}
	})
	return ticket
}

func TestATicketThatIsBeingDeletedKeepsItsFinalizerAndRequester(t *testing.T) {
	admin := newClient(t, plane.Config)
	ticket := heldTicket(t, admin)
	mallory := newClient(t, tenant(t, admin, ticket.Namespace))
	applyGuard(t, "guard/finalizer.yaml")
	if err := admin.Delete(t.Context(), ticket); err != nil {
		t.Fatal(err)
	}
	const stripped = `{"metadata":{"finalizers":["example.com/other"]}}`
	refused(t, "ask a cluster admin", patched(mallory, ticket, stripped))
	refused(t, "ask a cluster admin", patched(mallory, ticket, `{"metadata":{"finalizers":null}}`))
	for what, patch := range map[string]string{
		"another requester": `{"metadata":{"annotations":{"flights.com/requested-by":"root"}}}`,
		"no requester":      `{"metadata":{"annotations":null}}`,
		"other groups":      `{"metadata":{"annotations":{"flights.com/requested-by-groups":null}}}`,
	} {
		if err := patched(mallory, ticket, patch)(t.Context()); err == nil || !strings.Contains(err.Error(), "who requested a ticket can't be changed") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for who, try := range map[string]func(context.Context) error{
		"somebody who takes another's finalizer off": patched(mallory, ticket, `{"metadata":{"finalizers":["flights.com/booking"]}}`),
		"the controller":  patched(as(t, "flight-controller"), ticket, stripped),
		"a cluster admin": patched(admin, ticket, stripped),
	} {
		if err := try(t.Context()); err != nil {
			t.Errorf("%s is refused: %v", who, err)
		}
	}
}

func TestTheControllerTouchesNoOwnersAndNoFinalizersOfOthers(t *testing.T) {
	admin := newClient(t, plane.Config)
	ticket := heldTicket(t, admin)
	applyGuard(t, "guard/controller.yaml")
	controller := as(t, "flight-controller")
	const text = "must not change owners or the finalizers of others"
	refused(t, text, patched(controller, ticket, `{"metadata":{"finalizers":["flights.com/booking"]}}`))
	for what, patch := range map[string]string{
		"a finalizer of its own making": `{"metadata":{"finalizers":["example.com/other","flights.com/booking","example.com/more"]}}`,
		"an owner":                      `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"1"}]}}`,
	} {
		if err := patched(controller, ticket, patch)(t.Context()); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := patched(controller, ticket, `{"metadata":{"finalizers":["example.com/other"]}}`)(t.Context()); err != nil {
		t.Errorf("its own finalizer: %v", err)
	}
}

func TestTheWebhookWritesNoLeaseButItsOwn(t *testing.T) {
	applyGuard(t, "guard/webhook.yaml")
	admin, webhook := newClient(t, plane.Config), as(t, "flight-webhook")
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name}}
	}
	election := lease("flight-controller")
	if err := admin.Create(t.Context(), election); err != nil {
		t.Fatal(err)
	}
	const text = "must not write the Leases of others"
	refused(t, text, func(ctx context.Context) error { return webhook.Create(ctx, lease("another"), client.DryRunAll) })
	refused(t, text, func(ctx context.Context) error { return webhook.Update(ctx, election.DeepCopy(), client.DryRunAll) })
	refused(t, text, func(ctx context.Context) error { return webhook.Delete(ctx, election.DeepCopy(), client.DryRunAll) })
	own := lease("flight-webhook-a")
	if err := webhook.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(webhook.Update(t.Context(), own), webhook.Delete(t.Context(), own)); err != nil {
		t.Error(err)
	}
}
