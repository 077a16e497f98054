package controlplane_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/controlplane"
)

// plane is shared by the tests of this package, which keep apart by namespace.
var plane *controlplane.Plane

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // else controller-runtime prints a stack about it
	options := controlplane.Options{ControllerManager: true, Audit: true}
	os.Exit(controlplane.RunTests(m, options, func(p *controlplane.Plane) { plane = p }))
}

// patience bounds every wait of these tests; it is far above what any of them needs.
const patience = 60 * time.Second

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newNamespace(t *testing.T, c client.Client) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

func TestTheAPIServerTellsTheVersionItWasBuiltFrom(t *testing.T) {
	programs, err := controlplane.Programs(t.Context(), os.Stderr, controlplane.APIServer)
	if err != nil {
		t.Fatal(err)
	}
	said, err := discovery.NewDiscoveryClientForConfigOrDie(plane.Config).ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(said.GitVersion, "v1.") {
		t.Errorf("the server calls itself %q", said.GitVersion)
	}
	if path := programs[controlplane.APIServer]; os.Getenv("KUBEBUILDER_ASSETS") == "" && !strings.Contains(path, "-"+said.GitVersion+"-") {
		t.Errorf("the server calls itself %s, but was built as %s", said.GitVersion, path)
	}
}

func TestANewTicketIsDefaultedAndCountsAsUnobserved(t *testing.T) {
	c := newClient(t, plane.Config)
	ticket := &v1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{Name: "my-flight-ticket", Namespace: newNamespace(t, c)},
		Spec:       v1.FlightTicketSpec{From: "Mumbai", To: "London", Number: 2},
	}
	if err := c.Create(t.Context(), ticket); err != nil {
		t.Fatal(err)
	}
	if got := ticket.Status.ObservedGeneration; got != -1 {
		t.Errorf("a new ticket has status.observedGeneration %d, want -1: else tools call it ready", got)
	}
	if got := ticket.Spec.DeletionPolicy; got != v1.DeletionPolicyCancel {
		t.Errorf("a new ticket has deletionPolicy %q, want Cancel", got)
	}
}

func TestADeletedNamespaceEnds(t *testing.T) {
	c := newClient(t, plane.Config)
	name := newNamespace(t, c)
	ticket := &v1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{Name: "in-the-way", Namespace: name},
		Spec:       v1.FlightTicketSpec{From: "Mumbai", To: "London"},
	}
	if err := c.Create(t.Context(), ticket); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace to go", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func TestAServiceAccountHasItsOwnRightsAndNoMore(t *testing.T) {
	admin := newClient(t, plane.Config)
	namespace := newNamespace(t, admin)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "reader"}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{"flighttickets"}, Verbs: []string{"list"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "reader"}},
		},
	} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	reader := newClient(t, viaKubeconfig(t, namespace, "reader"))
	// The authorizer learns of a binding from a watch, a moment after its create was answered.
	eventually(t, "the reader's right to list tickets", func(ctx context.Context) (bool, error) {
		err := reader.List(ctx, &v1.FlightTicketList{}, client.InNamespace(namespace))
		return err == nil, ignoreForbidden(err)
	})
	if err := reader.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets gave %v, want Forbidden", err)
	}
	if !audited(t, "system:serviceaccount:"+namespace+":reader", "list", "secrets", "forbid") {
		t.Errorf("the audit log tells nothing of the refused list of Secrets")
	}
}

// viaKubeconfig takes a ServiceAccount's configuration the way that a program does: through a file.
func viaKubeconfig(t *testing.T, namespace, name string) *rest.Config {
	t.Helper()
	config, err := plane.ServiceAccountConfig(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := plane.WriteKubeconfig(path, config); err != nil {
		t.Fatal(err)
	}
	loaded, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// audited looks for a request in the audit log, which the API server writes before it answers.
func audited(t *testing.T, user, verb, resource, decision string) bool {
	t.Helper()
	file, err := os.Open(plane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() // it was only read
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb        string
			User        struct{ Username string }
			ObjectRef   struct{ Resource string }
			Annotations map[string]string
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		if event.User.Username == user && event.Verb == verb && event.ObjectRef.Resource == resource &&
			event.Annotations["authorization.k8s.io/decision"] == decision {
			return true
		}
	}
	return false
}

func TestKubectlIsTheAdministratorOfThisPlaneWhateverKUBECONFIGSays(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "of-a-person"))
	out, err := plane.Kubectl(t.Context(), "auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "system:masters") {
		t.Errorf("kubectl acts as groups %s", out)
	}
	if _, err := plane.Kubectl(t.Context(), "get", "flighttickets", "no-such-ticket"); err == nil || !strings.Contains(err.Error(), "NotFound") {
		t.Errorf("the error %v lacks what kubectl said", err)
	}
}

func eventually(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, done); err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
