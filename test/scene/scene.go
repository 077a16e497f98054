package scene

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

const (
	// SystemNamespace is where the operator lives.
	SystemNamespace = "flight-operator-system"
	// SecretName is the Secret that the controller may read.
	SecretName = "flight-operator-credentials"
	// Canary is a part of every token of these tests. It must be found nowhere but in the Secret.
	Canary = "canary-7rW4"
	// Account is whom the tokens of a scene belong to.
	Account = "acct-7"
	// usualPatience is far above what any test needs that doesn't ask for more, so that a busy machine fails none.
	usualPatience = 2 * time.Minute
)

// Stage is the running installation that scenes are set in.
type Stage struct {
	// Config is an administrator's; Client is made of it by NewClient.
	Config *rest.Config
	Client client.WithWatch
	// Kubectl prepares kubectl as that administrator.
	Kubectl func(ctx context.Context, args ...string) *exec.Cmd
	// Patience bounds what one test may take; zero means two minutes.
	Patience time.Duration
}

func (s Stage) patience() time.Duration { return cmp.Or(s.Patience, usualPatience) }

// NewClient returns a client that knows our kinds and the built-in ones.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	if err := flightsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make the administrator's client: %w", err)
	}
	return c, nil
}

// Scene is what one test has to itself. Its methods end the test when something can't be done.
type Scene struct {
	*testing.T
	Stage
	// Context ends with the test, or when its patience does.
	Context context.Context
	// Namespace is the test's own.
	Namespace string
	// Simulator is the booking API behind Provider; both are nil in a scene of New.
	Simulator *simulator.Simulator
	Provider  *flightsv1.BookingProvider

	server *server
}

// New returns a scene with a namespace and without a booking API.
func New(t *testing.T, stage Stage) *Scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stage.patience())
	t.Cleanup(cancel)
	s := &Scene{T: t, Stage: stage, Context: ctx}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	if err := s.Client.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	s.Namespace = namespace.Name
	t.Cleanup(func() { s.remove(namespace) })
	return s
}

// In returns the same scene for a subtest.
func (s *Scene) In(t *testing.T) *Scene {
	same := *s
	same.T = t
	return &same
}

// remove deletes an object after the test, whose own context is over by then. What is left to do for it, the
// installation does.
func (s *Scene) remove(o client.Object) {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience())
	defer cancel()
	if err := client.IgnoreNotFound(s.Client.Delete(ctx, o)); err != nil {
		s.Errorf("clean up: %v", err)
	}
}

// Remove deletes an object during the test.
func (s *Scene) Remove(o client.Object) {
	s.Helper()
	if err := s.Client.Delete(s.Context, o); err != nil {
		s.Fatal(err)
	}
}

// Patch merges a change into an object.
func (s *Scene) Patch(o client.Object, patch string) {
	s.Helper()
	if err := s.Client.Patch(s.Context, o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		s.Fatal(err)
	}
}

// Read refreshes an object.
func (s *Scene) Read(o client.Object) {
	s.Helper()
	if err := s.Client.Get(s.Context, client.ObjectKeyFromObject(o), o); err != nil {
		s.Fatal(err)
	}
}
