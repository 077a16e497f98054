package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flight-operator/flight-operator/internal/controlplane"
)

// plane is the control plane that the tests of this package share.
var plane *controlplane.Plane

func TestMain(m *testing.M) {
	os.Exit(controlplane.RunTests(m, controlplane.Options{CRDs: []string{}}, func(p *controlplane.Plane) { plane = p }))
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = holds(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

// leftBehind is a namespace with the Lease of an earlier process of the replica "a".
func leftBehind(t *testing.T, c client.Client) *coordinationv1.Lease {
	t.Helper()
	operator := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
	if err := c.Create(t.Context(), operator); err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: operator.Name, Name: LeasePrefix + "a", Labels: map[string]string{"left": "behind"},
	}}
	if err := c.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	return lease
}

// idleConnections are those that the client keeps for later.
func idleConnections() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("net/http/internal/http2.(*clientConnReadLoop).run"),
	}
}

func TestAPublisherKeepsItsLeaseWhateverHappensToIt(t *testing.T) {
	before := goleak.IgnoreCurrent()
	c, err := client.New(plane.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lease := leftBehind(t, c)
	changes := make(chan struct{}, 1)
	var synced atomic.Bool
	p := NewPublisher(PublisherOptions{
		Client: c, Namespace: lease.Namespace, Replica: "a", PodUID: "pod-uid", Changes: changes, Synced: synced.Load,
		Report:   func() Report { return Report{"k": {Generation: 7}} },
		CaughtUp: func(context.Context) error { return nil }, Clock: clock.RealClock{},
	})
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Start(running) }()

	if p.ReadyCheck(nil) == nil {
		t.Error("it is ready before it holds every policy")
	}
	synced.Store(true)
	reported := func(ctx context.Context) error {
		select {
		case changes <- struct{}{}: // a write that failed is tried again with the next change or renewal
		default:
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		live := NewObserver().Live([]coordinationv1.Lease{*lease}, time.Now())
		if len(live) != 1 || live[0].Report["k"].Generation != 7 || len(lease.OwnerReferences) != 1 {
			return fmt.Errorf("the lease is %+v", lease)
		}
		return p.ReadyCheck(nil)
	}
	eventually(t, "what an earlier process left is taken up", reported)
	if err := c.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a deleted lease comes back", reported)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); !apierrors.IsNotFound(err) {
		t.Errorf("the lease stays: %v", err)
	}
	if err := goleak.Find(append(idleConnections(), before)...); err != nil {
		t.Error(err)
	}
}

// From Ready on every live replica enforces: one that nobody may count on refuses to decide.
func TestAReplicaDecidesOnlyWhileItIsCountedAndHasCaughtUp(t *testing.T) {
	c, err := client.New(plane.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	operator := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
	if err := c.Create(t.Context(), operator); err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakePassiveClock(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operator.Name, Name: LeasePrefix + "a"}}
	behind := errors.New("a policy is missing")
	p := NewPublisher(PublisherOptions{
		Client: c, Namespace: operator.Name, Replica: "a", Clock: now, Report: func() Report { return nil },
		CaughtUp: func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
				return fmt.Errorf("asked before the lease is stored: %w", err)
			}
			return behind
		},
	})
	deciding := func(when string, want bool) {
		t.Helper()
		if got := p.Serving(); got != want || (p.ReadyCheck(nil) == nil) != want {
			t.Errorf("%s it decides: %t", when, got)
		}
	}
	publish := func(want error) {
		t.Helper()
		if err := p.publish(t.Context()); !errors.Is(err, want) {
			t.Errorf("publish: %v", err)
		}
	}
	publish(behind)
	deciding("while a policy is missing", false)
	behind = nil
	publish(nil)
	deciding("with everything", true)
	behind = errors.New("not asked while the lease stands")
	now.SetTime(now.Now().Add(leaseDuration - time.Millisecond))
	deciding("just before its lease may be counted as expired", true)
	publish(nil)
	now.SetTime(now.Now().Add(leaseDuration))
	deciding("when its lease may be counted as expired", false)
	publish(behind)
	deciding("after a gap in which others may have called a policy served", false)
	behind = nil
	publish(nil)
	behind = errors.New("asked again with a new lease")
	if err := c.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	publish(behind)
	deciding("with another lease than the one it caught up under", false)
	behind = nil
	publish(nil)
	if err := p.withdraw(t.Context()); err != nil {
		t.Error(err)
	}
	deciding("once it has withdrawn", false)
}
