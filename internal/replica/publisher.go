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
	"k8s.io/utils/clock"
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
	// CaughtUp asks the API server, and no cache, for the policies as they stand now; it fails while the replica lacks
	// one. It is asked when a Lease begins or begins again, after that Lease is stored: a policy that is changed later
	// finds the Lease, and waits for this replica before it is called served.
	CaughtUp func(context.Context) error
	// Clock is this process's own; no other clock is compared with it.
	Clock clock.PassiveClock
	// Changes gets a value when Synced or Report may have changed.
	Changes <-chan struct{}
}

// Publisher keeps the Lease of this replica. It is the only writer of it. Add it to the manager as a Runnable.
type Publisher struct {
	o     PublisherOptions
	lease *coordinationv1.Lease // as last stored; nil when unknown
	until atomic.Pointer[time.Time]
}

var (
	_ manager.Runnable               = (*Publisher)(nil)
	_ manager.LeaderElectionRunnable = (*Publisher)(nil)
)

// NewPublisher returns a publisher that does nothing until it is started.
func NewPublisher(o PublisherOptions) *Publisher { return &Publisher{o: o} }

// NeedLeaderElection is false: every replica reports.
func (p *Publisher) NeedLeaderElection() bool { return false }

// Serving says whether this replica may decide. It may not while its Lease isn't known to stand: others then count it as
// gone, and call policies served by all that it may lack. So a replica that is cut off from the API server, or stopped,
// refuses rather than decides on policies of yesterday.
func (p *Publisher) Serving() bool {
	until, now := p.until.Load(), p.o.Clock.Now()
	// By both clocks: the monotonic one stands still while a machine sleeps, and the other may be set.
	return until != nil && now.Before(*until) && now.Round(0).Before(until.Round(0))
}

// ReadyCheck is Serving as a readiness check.
func (p *Publisher) ReadyCheck(*http.Request) error {
	if !p.Serving() {
		return errors.New("the report of this replica is not stored, or it lacks policies that are")
	}
	return nil
}

// Start publishes until the context ends, then deletes the Lease. Failures are logged and tried again; while they last
// the Lease stands, and then Serving ends.
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
	start := p.o.Clock.Now()
	text, err := Encode(p.o.Report())
	if err != nil {
		// It decides all the same, on all its policies; that nobody calls them served is the lesser harm.
		log.FromContext(ctx).Error(err, "this replica reports no policy", "lease", p.name())
		text = "{}"
	}
	err = p.store(ctx, text)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = p.store(ctx, text) // it was deleted, or an earlier write of this name came late
	}
	if err != nil {
		return fmt.Errorf("store lease %s: %w", p.name(), err)
	}
	return p.serveFrom(ctx, start)
}

// store writes the Lease once. After a failure the next call looks first at what is there.
func (p *Publisher) store(ctx context.Context, report string) error {
	if p.lease == nil {
		if err := p.adopt(ctx); err != nil {
			return err
		}
	}
	next := p.fill(p.lease.DeepCopy(), report)
	p.lease = nil
	var err error
	if next.ResourceVersion == "" {
		p.until.Store(nil) // without a Lease this replica is counted as gone
		err = p.o.Client.Create(ctx, next)
	} else {
		err = p.o.Client.Update(ctx, next)
	}
	if err == nil {
		p.lease = next
	}
	return err
}

// serveFrom lets the replica decide for as long as a Lease lasts that was renewed after start. One that isn't deciding
// must catch up first, with its Lease in place.
func (p *Publisher) serveFrom(ctx context.Context, start time.Time) error {
	if !p.Serving() {
		if err := p.o.CaughtUp(ctx); err != nil {
			return fmt.Errorf("catch up with the policies: %w", err)
		}
	}
	until := start.Add(leaseDuration)
	p.until.Store(&until)
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
	p.until.Store(nil)
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
