package flightpolicy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/controlplane"
	"github.com/flight-operator/flight-operator/internal/replica"
)

// plane is the control plane that the tests of this package share.
var plane *controlplane.Plane

func TestMain(m *testing.M) {
	os.Exit(controlplane.RunTests(m, controlplane.Options{}, func(p *controlplane.Plane) { plane = p }))
}

const operatorNamespace = "flight-operator-system"

// startController runs the reconciler until the test ends and returns a client that reads from no cache.
func startController(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), flightsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(plane.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // one manager a test
		Cache:      cache.Options{ByObject: CacheByObject(operatorNamespace)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := New(mgr.GetClient(), mgr.GetAPIReader(), operatorNamespace, clock.RealClock{}, none{}).SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(plane.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// publish runs a replica's publisher until stop is called.
func publish(t *testing.T, c client.Client, name string, changes <-chan struct{}, report func() replica.Report) (stop func()) {
	t.Helper()
	p := replica.NewPublisher(replica.PublisherOptions{
		Client: c, Namespace: operatorNamespace, Replica: name, Report: report, Synced: func() bool { return true }, Changes: changes,
		CaughtUp: func(context.Context) error { return nil }, Clock: clock.RealClock{},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func becomes(t *testing.T, c client.Client, p *flightsv1.FlightPolicy, reason string, replicas, serving int32) {
	t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return false, err
		}
		ready := meta.FindStatusCondition(p.Status.Conditions, flightsv1.ConditionReady)
		last = fmt.Sprintf("%+v", p.Status)
		return ready != nil && ready.Reason == reason && p.Status.Replicas == replicas && p.Status.ReplicasServing == serving &&
			p.Status.ObservedGeneration == p.Generation, nil
	})
	if err != nil {
		t.Fatalf("the policy doesn't become %s with %d of %d: %s (%v)", reason, serving, replicas, last, err)
	}
}

func TestThePolicyFollowsItsReplicas(t *testing.T) {
	c := startController(t)
	ctx := t.Context()
	if err := client.IgnoreAlreadyExists(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}})); err != nil {
		t.Fatal(err)
	}
	p := &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "followed-"}, Spec: flightsv1.FlightPolicySpec{Rego: "package p\ndeny contains \"no\" if false\n"},
	}
	if err := c.Create(ctx, p); err != nil {
		t.Fatal(err)
	}
	becomes(t, c, p, flightsv1.ReasonNoReplicas, 0, 0)

	key := replica.KeyOf(p.UID)
	held := make(chan replica.Policy, 1)
	held <- replica.Policy{Generation: 1, Digest: "a"}
	changes := make(chan struct{}, 1)
	current := func() replica.Report {
		now := <-held
		held <- now
		return replica.Report{key: now}
	}
	stopFirst := publish(t, c, "first", nil, func() replica.Report { return replica.Report{key: {Generation: 1, Digest: "a"}} })
	stopSecond := publish(t, c, "second", changes, current)
	becomes(t, c, p, flightsv1.ReasonServing, 2, 2)

	p.Spec.Rego += "# edited\n"
	if err := c.Update(ctx, p); err != nil {
		t.Fatal(err)
	}
	becomes(t, c, p, flightsv1.ReasonRollingOut, 2, 0)
	<-held
	held <- replica.Policy{Generation: 1, Digest: "a", FailedGeneration: 2, Error: "spec.rego:2:1: no"}
	changes <- struct{}{} // at once, and not with the next renewal
	becomes(t, c, p, flightsv1.ReasonCompileFailed, 2, 0)
	stopSecond() // deletes its Lease
	becomes(t, c, p, flightsv1.ReasonRollingOut, 1, 0)
	stopFirst()
	becomes(t, c, p, flightsv1.ReasonNoReplicas, 0, 0)
}

func TestAReplicaThatDiesIsNoticedWhenItsLeaseExpires(t *testing.T) {
	c := startController(t)
	ctx := t.Context()
	if err := client.IgnoreAlreadyExists(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}})); err != nil {
		t.Fatal(err)
	}
	p := &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "left-alone-"}, Spec: flightsv1.FlightPolicySpec{Rego: "package p\ndeny contains \"no\" if false\n"},
	}
	if err := c.Create(ctx, p); err != nil {
		t.Fatal(err)
	}
	text, err := replica.Encode(replica.Report{replica.KeyOf(p.UID): {Generation: 1, Digest: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	duration, now := int32(5), metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: operatorNamespace, GenerateName: replica.LeasePrefix + "dead-",
			Labels: map[string]string{replica.Label: replica.LabelValue}, Annotations: map[string]string{replica.PoliciesAnnotation: text},
		},
		Spec: coordinationv1.LeaseSpec{RenewTime: &now, LeaseDurationSeconds: &duration},
	}
	if err := c.Create(ctx, lease); err != nil {
		t.Fatal(err)
	}
	becomes(t, c, p, flightsv1.ReasonServing, 1, 1)
	becomes(t, c, p, flightsv1.ReasonNoReplicas, 0, 0)
}

// none is no quota that waits.
type none struct{}

func (none) Waiting([]flightsv1.FlightPolicy) map[types.UID]string { return nil }
func (none) Uncounted(types.UID) string                            { return "" }
func (none) Changes() <-chan struct{}                              { return nil }

// lagging is a cache that hasn't heard of the newest replica.
type lagging struct {
	client.Client
	unknown string
}

func (l lagging) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	err := l.Client.List(ctx, into, options...)
	if leases, is := into.(*coordinationv1.LeaseList); is {
		leases.Items = slices.DeleteFunc(leases.Items, func(one coordinationv1.Lease) bool { return one.Name == l.unknown })
	}
	return err
}

func TestAPolicyIsNotCalledServedBeforeAReplicaThatHasJustBegun(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), flightsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(plane.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	operator := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
	p := &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "lagging-"}, Spec: flightsv1.FlightPolicySpec{Rego: "package p\ndeny contains \"no\" if false\n"},
	}
	if err := errors.Join(c.Create(t.Context(), operator), c.Create(t.Context(), p)); err != nil {
		t.Fatal(err)
	}
	text, err := replica.Encode(replica.Report{replica.KeyOf(p.UID): {Generation: 1, Digest: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, report := range map[string]string{"old": text, "new": "{}"} {
		now := metav1.NowMicro()
		if err := c.Create(t.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: operator.Name, Name: replica.LeasePrefix + name,
				Labels: map[string]string{replica.Label: replica.LabelValue}, Annotations: map[string]string{replica.PoliciesAnnotation: report},
			},
			Spec: coordinationv1.LeaseSpec{RenewTime: &now, LeaseDurationSeconds: ptr.To[int32](15)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	r := New(lagging{c, replica.LeasePrefix + "new"}, c, operator.Name, clock.RealClock{}, none{})
	if _, err := r.Reconcile(t.Context(), everything()); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	if p.Status.Replicas != 2 || p.Status.ReplicasServing != 1 || meta.IsStatusConditionTrue(p.Status.Conditions, flightsv1.ConditionReady) {
		t.Errorf("the status is %+v", p.Status)
	}
}

// overtaken is a client before whose writes somebody else writes or deletes a policy.
type overtaken struct {
	client.Client
	by func(context.Context, *flightsv1.FlightPolicy) error
	p  *flightsv1.FlightPolicy
}

func (o overtaken) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	err := o.Client.List(ctx, into, options...)
	if _, is := into.(*flightsv1.FlightPolicyList); is && err == nil {
		return o.by(ctx, o.p.DeepCopy())
	}
	return err
}

func TestAPolicyThatSomebodyElseChangesMeanwhileIsLookedAtAgainWithoutAnError(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), flightsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(plane.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for name, by := range map[string]func(context.Context, *flightsv1.FlightPolicy) error{
		"changed": func(ctx context.Context, p *flightsv1.FlightPolicy) error {
			return c.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"meanwhile"}}}`)))
		},
		"deleted": func(ctx context.Context, p *flightsv1.FlightPolicy) error { return c.Delete(ctx, p) },
	} {
		t.Run(name, func(t *testing.T) {
			p := &flightsv1.FlightPolicy{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "overtaken-"},
				Spec:       flightsv1.FlightPolicySpec{Rego: "package p\ndeny contains \"no\" if false\n"},
			}
			if err := c.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			result, err := New(overtaken{c, by, p}, c, "nowhere", clock.RealClock{}, none{}).Reconcile(t.Context(), everything())
			if err != nil || result.RequeueAfter != afterConflict {
				t.Errorf("got %+v, %v, want another look in %s", result, err, afterConflict)
			}
		})
	}
}
