package replica

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
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

func TestAPublisherKeepsItsLeaseWhateverHappensToIt(t *testing.T) {
	before := goleak.IgnoreCurrent()
	c, err := client.New(plane.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	operator := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
	if err := c.Create(ctx, operator); err != nil {
		t.Fatal(err)
	}
	left := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operator.Name, Name: LeasePrefix + "a", Labels: map[string]string{"left": "behind"}}}
	if err := c.Create(ctx, left); err != nil {
		t.Fatal(err)
	}
	changes := make(chan struct{}, 1)
	synced := make(chan bool, 1)
	synced <- false
	p := NewPublisher(PublisherOptions{
		Client: c, Namespace: operator.Name, Replica: "a", PodUID: "pod-uid", Changes: changes,
		Report: func() Report { return Report{"k": {Generation: 7}} },
		Synced: func() bool { now := <-synced; synced <- now; return now },
	})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Start(running) }()

	if p.ReadyCheck(nil) == nil {
		t.Error("it is ready before it holds every policy")
	}
	<-synced
	synced <- true
	changes <- struct{}{}
	reported := func(ctx context.Context) error {
		var lease coordinationv1.Lease
		if err := c.Get(ctx, client.ObjectKeyFromObject(left), &lease); err != nil {
			return err
		}
		live := Live([]coordinationv1.Lease{lease}, time.Now())
		if len(live) != 1 || live[0].Report["k"].Generation != 7 || len(lease.OwnerReferences) != 1 {
			return fmt.Errorf("the lease is %+v", lease)
		}
		return p.ReadyCheck(nil)
	}
	eventually(t, "what an earlier process left is taken up", reported)

	if err := c.Delete(ctx, left); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a deleted lease comes back", func(ctx context.Context) error {
		select {
		case changes <- struct{}{}: // a failed write is tried again with the next change or renewal
		default:
		}
		return reported(ctx)
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(left), left); !apierrors.IsNotFound(err) {
		t.Errorf("the lease stays: %v", err)
	}
	if err := goleak.Find(before, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"), goleak.IgnoreAnyFunction("net/http/internal/http2.(*clientConnReadLoop).run")); err != nil {
		t.Error(err)
	}
}
