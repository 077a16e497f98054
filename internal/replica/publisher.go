package replica

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// The rhythm of a replica's Lease.
const (
	renewEvery    = 5 * time.Second
	leaseDuration = 15 * time.Second
	callTimeout   = 5 * time.Second
)

// PublisherOptions say what a Publisher publishes and where.
type PublisherOptions struct {
	// Client reads and writes Leases. It must not read them from a cache: a cache would need list and watch.
	Client client.Client
	// Namespace is the operator's own, Replica this process's name in it.
	Namespace, Replica string
	// PodUID is the UID of the pod of the same name that this process runs in. Its Lease is then collected with the
	// pod when the process had no time to delete it. Empty where there are no pods.
	PodUID types.UID
	// Report tells what this replica holds. It is not asked before Synced.
	Report func() Report
	// Synced says whether the replica holds every policy that existed at its start; until then it has no Lease, so
	// that a replica which starts doesn't make policies look less than served.
	Synced func() bool
	// Changes gets a value when Synced or Report may have changed.
	Changes <-chan struct{}
}

// Publisher keeps the Lease of this replica. It is the only writer of it. Add it to the manager as a Runnable.
type Publisher struct {
	o         PublisherOptions
	lease     *coordinationv1.Lease // as last stored; nil when unknown
	published atomic.Bool
}

var (
	_ manager.Runnable               = (*Publisher)(nil)
	_ manager.LeaderElectionRunnable = (*Publisher)(nil)
)

// NewPublisher returns a publisher that does nothing until it is started.
func NewPublisher(o PublisherOptions) *Publisher { return &Publisher{o: o} }

// NeedLeaderElection is false: every replica reports.
func (p *Publisher) NeedLeaderElection() bool { return false }

// ReadyCheck is a readiness check that holds until the first report is stored. A replica that serves must be known,
// or a policy that it lacks would be called served by all.
func (p *Publisher) ReadyCheck(*http.Request) error {
	if !p.published.Load() {
		return errors.New("the report of this replica is not stored yet")
	}
	return nil
}

// Start publishes until the context ends, then deletes the Lease. Failures are logged and tried again: they leave the
// Lease to expire and stop no admission.
func (p *Publisher) Start(ctx context.Context) error {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		if p.o.Synced() {
			if err := p.publish(ctx); err != nil {
				log.FromContext(ctx).Error(err, "could not store the report of this replica", "lease", p.name())
			}
		}
		select {
		case <-ctx.Done():
			if err := p.withdraw(context.WithoutCancel(ctx)); err != nil {
				log.FromContext(ctx).Error(err, "could not delete the report of this replica; it expires by itself", "lease", p.name())
			}
			return nil
		case <-p.o.Changes:
		case <-ticker.C:
		}
	}
}

func (p *Publisher) name() string { return LeasePrefix + p.o.Replica }

// publish stores the report and renews the Lease, once. A stop doesn't cut it short: a write whose end nobody knows
// would leave a Lease behind.
func (p *Publisher) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	text, err := Encode(p.o.Report())
	if err != nil {
		// The replica lives and decides all the same; that nobody calls its policies served is the lesser harm.
		log.FromContext(ctx).Error(err, "this replica reports no policy", "lease", p.name())
		text = "{}"
	}
	if p.lease == nil {
		if err := p.adopt(ctx); err != nil {
			return err
		}
	}
	next := p.fill(p.lease.DeepCopy(), text)
	if next.ResourceVersion == "" {
		err = p.o.Client.Create(ctx, next)
	} else {
		err = p.o.Client.Update(ctx, next)
	}
	if err != nil {
		p.lease = nil // look again: it was deleted, or an earlier process of this name wrote late
		return fmt.Errorf("store lease %s: %w", p.name(), err)
	}
	p.lease = next
	p.published.Store(true)
	return nil
}

// adopt takes up the Lease that an earlier process of this name left, or begins a new one.
func (p *Publisher) adopt(ctx context.Context) error {
	var lease coordinationv1.Lease
	err := p.o.Client.Get(ctx, types.NamespacedName{Namespace: p.o.Namespace, Name: p.name()}, &lease)
	if apierrors.IsNotFound(err) {
		p.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: p.o.Namespace, Name: p.name()}}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read lease %s: %w", p.name(), err)
	}
	p.lease = &lease
	return nil
}

func (p *Publisher) fill(lease *coordinationv1.Lease, report string) *coordinationv1.Lease {
	now := metav1.NowMicro()
	lease.Labels = map[string]string{Label: LabelValue}
	lease.Annotations = map[string]string{PoliciesAnnotation: report}
	lease.OwnerReferences = nil
	if p.o.PodUID != "" {
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.o.Replica, UID: p.o.PodUID}}
	}
	if lease.Spec.AcquireTime == nil {
		lease.Spec.AcquireTime = &now
	}
	lease.Spec.HolderIdentity = ptr.To(p.o.Replica)
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(leaseDuration / time.Second))
	lease.Spec.RenewTime = &now
	return lease
}

// withdraw deletes the Lease that this process wrote, and no other's.
func (p *Publisher) withdraw(ctx context.Context) error {
	if p.lease == nil || p.lease.UID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := p.o.Client.Delete(ctx, p.lease, client.Preconditions{UID: &p.lease.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete lease %s: %w", p.name(), err)
	}
	return nil
}
