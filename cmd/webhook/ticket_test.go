package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

func newTicket(namespace, name string) *flightsv1.FlightTicket {
	return &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       flightsv1.FlightTicketSpec{From: "Mumbai", To: "London", Number: 2},
	}
}

const manifest = `apiVersion: flights.com/v1
kind: FlightTicket
metadata:
  name: my-flight-ticket
spec:
  from: "Mumbai"
  to: "London"
  number: 2
`

// person is somebody with every right in the cluster: what the webhooks guard, RBAC can't.
func person(t *testing.T, name string) client.Client {
	t.Helper()
	config, err := plane.AddUser(name, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, config)
}

func TestTicketsAreNormalisedAndGuardedByTheAPIServer(t *testing.T) {
	startWebhook(t)
	asha, mallory := person(t, "asha"), person(t, "mallory")
	ns := namespace(t, asha)
	ctx := t.Context()

	dry := newTicket(ns, "t1")
	if err := asha.Create(ctx, dry, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	spoofed := newTicket(ns, "t1")
	spoofed.Annotations = map[string]string{flightsv1.RequestedByAnnotation: "root"}
	if err := asha.Create(ctx, spoofed); err != nil {
		t.Fatal(err)
	}
	stored := get(t, asha, ns)
	checkNormalised(t, stored)
	if diff := cmp.Diff(dry.Annotations, stored.Annotations); diff != "" {
		t.Errorf("a dry run differs (-dry run +stored):\n%s", diff)
	}

	t.Run("a replace that drops everything and claims another requester", func(t *testing.T) {
		bare := newTicket(ns, "t1")
		bare.ResourceVersion = stored.ResourceVersion
		bare.Annotations = map[string]string{flightsv1.RequestedByAnnotation: "mallory"}
		if err := mallory.Update(ctx, bare); err != nil {
			t.Fatal(err)
		}
		after := get(t, asha, ns)
		checkNormalised(t, after)
		if after.Generation != stored.Generation {
			t.Errorf("the ticket changed: %+v", after.ObjectMeta)
		}
	})
	t.Run("a change of place moves the label", func(t *testing.T) {
		changed := get(t, asha, ns)
		changed.Spec.To = "CDG"
		if err := mallory.Update(ctx, changed); err != nil {
			t.Fatal(err)
		}
		if got := get(t, asha, ns); got.Labels[flightsv1.DestinationLabel] != "CDG" || got.Annotations[flightsv1.RequestedByAnnotation] != "asha" {
			t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
		}
	})
	t.Run("a ticket that is being deleted keeps its spec and gives up its finalizer", func(t *testing.T) {
		going := get(t, asha, ns)
		if err := asha.Delete(ctx, going); err != nil {
			t.Fatal(err)
		}
		going = get(t, asha, ns)
		changed := going.DeepCopy()
		changed.Spec.Number = 1
		if err := asha.Update(ctx, changed); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "being deleted") {
			t.Errorf("a change of spec ends with %v", err)
		}
		release(t, asha, going)
	})
}

func get(t *testing.T, c client.Client, namespace string) *flightsv1.FlightTicket {
	t.Helper()
	var ft flightsv1.FlightTicket
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "t1"}, &ft); err != nil {
		t.Fatal(err)
	}
	return &ft
}

func checkNormalised(t *testing.T, ft *flightsv1.FlightTicket) {
	t.Helper()
	want := map[string]string{flightsv1.OriginLabel: "BOM", flightsv1.DestinationLabel: "LON"}
	if diff := cmp.Diff(want, ft.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if by := ft.Annotations[flightsv1.RequestedByAnnotation]; by != "asha" {
		t.Errorf("requested by %q", by)
	}
	if groups := ft.Annotations[flightsv1.RequestedByGroupsAnnotation]; groups != `["system:authenticated","system:masters"]` {
		t.Errorf("groups are %s", groups)
	}
	if !slices.Equal(ft.Finalizers, []string{flightsv1.BookingFinalizer}) {
		t.Errorf("finalizers are %v", ft.Finalizers)
	}
	if ft.Status.ObservedGeneration != -1 {
		t.Errorf("observed generation is %d", ft.Status.ObservedGeneration)
	}
}

// release takes the finalizer off a ticket that is being deleted, as the controller would.
func release(t *testing.T, c client.Client, ft *flightsv1.FlightTicket) {
	t.Helper()
	free := ft.DeepCopy()
	free.Finalizers = nil
	if err := c.Update(t.Context(), free); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(ft), ft); !apierrors.IsNotFound(err) {
		t.Errorf("the ticket is still there: %v", err)
	}
}

func TestKubectlWorksWithTicketsAsWithAnythingElse(t *testing.T) {
	startWebhook(t)
	c := newClient(t, plane.Config)
	ns := namespace(t, c)
	steps := []struct {
		does string
		args []string
		want string
	}{
		{"a dry run", []string{"apply", "--dry-run=server"}, "created (server dry run)"},
		{"a first apply", []string{"apply"}, "my-flight-ticket created"},
		{"the same again", []string{"apply"}, "my-flight-ticket unchanged"},
		{"a diff of what is there", []string{"diff"}, ""},
		{"a server-side apply", []string{"apply", "--server-side", "--force-conflicts"}, "serverside-applied"},
		{"a server-side apply again", []string{"apply", "--server-side"}, "serverside-applied"},
		{"a diff after that", []string{"diff", "--server-side"}, ""},
		{"a replace", []string{"replace"}, "my-flight-ticket replaced"},
	}
	for _, s := range steps {
		out, err := kubectl(t, manifest, append(s.args, "-n", ns, "-f", "-")...)
		if err != nil || !strings.Contains(out, s.want) || s.want == "" && out != "" {
			t.Errorf("%s: %v: %s", s.does, err, out)
		}
	}
	var ft flightsv1.FlightTicket
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "my-flight-ticket"}, &ft); err != nil {
		t.Fatal(err)
	}
	if ft.Generation != 1 || !slices.Contains(ft.Finalizers, flightsv1.BookingFinalizer) || ft.Annotations[flightsv1.RequestedByAnnotation] == "" {
		t.Errorf("after all that the ticket is %+v", ft.ObjectMeta)
	}
}

func TestRefusalsReadAsAPersonSeesThem(t *testing.T) {
	w := startWebhook(t)
	c := newClient(t, plane.Config)
	ns := namespace(t, c)
	putPolicy(t, c, w, policyOf("few-seats", ns, flightsv1.EnforcementEnforce, fewSeats))
	putPolicy(t, c, w, policyOf("no-london", ns, flightsv1.EnforcementEnforce, noLondon))
	with := func(old, now string) string { return strings.Replace(manifest, old, now, 1) }
	var story strings.Builder
	for _, s := range []struct{ what, text string }{
		{"A ticket that two policies refuse", manifest},
		{"Two names of one place", with(`"London"`, `"Bombay"`)},
		{"A place that means several", with(`"Mumbai"`, `"San Jose"`)},
		{"A place that nobody knows", with(`"London"`, `"Lodnon"`)},
		{"No seat", with("number: 2", "number: 0")},
		{"Six seats", with("number: 2", "number: 6")},
		{"An empty spec", "apiVersion: flights.com/v1\nkind: FlightTicket\nmetadata:\n  name: my-flight-ticket\nspec: {}\n"},
		{"A policy with a typing error", "apiVersion: flights.com/v1\nkind: FlightPolicy\nmetadata:\n  name: typo\nspec:\n  rego: |\n    package typo\n    deny contains \"no\" if input.ticket.spec.fom == \"x\"\n"},
		{"An http endpoint", "apiVersion: flights.com/v1\nkind: BookingProvider\nmetadata:\n  name: plain\nspec:\n  endpoint: http://flights.example.com\n  credentialsSecretRef: {key: token}\n"},
		{"A private endpoint", "apiVersion: flights.com/v1\nkind: BookingProvider\nmetadata:\n  name: inside\nspec:\n  endpoint: https://10.0.0.1\n  credentialsSecretRef: {key: token}\n"},
	} {
		out, err := kubectl(t, s.text, "create", "-n", ns, "-f", "-")
		if err == nil {
			t.Errorf("%s is accepted", s.what)
		}
		story.WriteString("# " + s.what + "\n" + out + "\n")
	}
	golden(t, "refusals.golden", story.String())
	if log := w.logged(); strings.Contains(log, `"spec"`) || !strings.Contains(log, `"denied":"few-seats,no-london"`) || !strings.Contains(log, `"requestID"`) {
		t.Errorf("the log holds a spec, or lacks a decision:\n%s", log)
	}
}

// golden compares a text with testdata; UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; UPDATE_GOLDEN=1 writes it):\n%s", path, diff)
	}
}

// deleteAfter removes a policy or provider after a test: it concerns the whole cluster.
func deleteAfter(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Delete(context.Background(), o)); err != nil {
			t.Error(err)
		}
	})
}
