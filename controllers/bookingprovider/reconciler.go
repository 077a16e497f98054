package bookingprovider

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

const (
	// firstRetry and slowestRetry bound the pauses between looks at a provider that doesn't answer.
	firstRetry   = time.Second
	slowestRetry = 30 * time.Second
	// refusedRetry is the pause after a refused or missing credential. A changed Secret is seen at once.
	refusedRetry = 5 * time.Minute
	// inUseRetry is the pause of a provider that is being deleted while tickets use it.
	inUseRetry = 5 * time.Second
	// quietTime is how long a provider that is being deleted stays, though no ticket uses it: one may be about to, and
	// the cache may not show it yet.
	quietTime = 4 * time.Second
	// callTime bounds one look at a provider.
	callTime = 30 * time.Second
)

// Options are what a Reconciler is made with. All are required.
type Options struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Events tells admins what has happened.
	Events events.EventRecorder
	// Registry is filled, Secrets are read. Namespace is the operator's own.
	Registry  *Registry
	Secrets   *Secrets
	Namespace string
	// Poll is how often a provider that is well is looked at.
	Poll time.Duration
	// UserAgent is sent to booking APIs.
	UserAgent string
	Clock     func() time.Time
	Metrics   *Metrics
}

// Reconciler keeps connections to booking APIs, and the conditions that speak of them.
type Reconciler struct {
	Options
	backoff workqueue.TypedRateLimiter[ctrl.Request]
	// told holds, by provider, the reason of the condition Ready that this process wrote last.
	told sync.Map
}

// New returns a Reconciler.
func New(o Options) *Reconciler {
	return &Reconciler{
		Options: o,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, slowestRetry),
	}
}

// Reconcile looks at one provider.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := &flightsv1.BookingProvider{}
	err := r.Client.Get(ctx, req.NamespacedName, p)
	if apierrors.IsNotFound(err) {
		r.Registry.drop(req.Name)
		r.backoff.Forget(req)
		r.told.Delete(req.Name)
		return ctrl.Result{}, r.retireSecrets(ctx)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read provider: %w", err)
	}
	stays, gone, err := r.finalizer(ctx, p)
	if gone || err != nil {
		return conflictLater(ctx, err)
	}
	found, asked, err := r.look(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	if asked || stays != "" {
		if err := r.tell(ctx, p, found, stays); err != nil {
			return conflictLater(ctx, err)
		}
	}
	if err := r.retireSecrets(ctx); err != nil {
		return ctrl.Result{}, err
	}
	return r.rest(req, p, found), nil
}

// retireSecrets ends the watches of Secrets that no provider names any more.
func (r *Reconciler) retireSecrets(ctx context.Context) error {
	var all flightsv1.BookingProviderList
	if err := r.Client.List(ctx, &all); err != nil {
		return fmt.Errorf("list providers: %w", err)
	}
	named := map[string]bool{}
	for i := range all.Items {
		named[all.Items[i].Spec.CredentialsSecretRef.Name] = true
	}
	r.Secrets.retire(named)
	return nil
}

// conflictLater ends a pass that somebody else's write or deletion overtook: it is nobody's fault, and no error.
func conflictLater(ctx context.Context, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		log.FromContext(ctx).V(1).Info("somebody else wrote or deleted meanwhile; looks again", "cause", err.Error())
		return ctrl.Result{RequeueAfter: firstRetry}, nil
	}
	return ctrl.Result{}, err
}

// look reads the credential and asks the provider, unless all is as it was a moment ago. Asked is false then.
func (r *Reconciler) look(ctx context.Context, p *flightsv1.BookingProvider) (f finding, asked bool, err error) {
	token, f, err := r.token(ctx, p)
	if err != nil {
		return f, false, err
	}
	if f.reason != "" {
		r.Registry.lapse(p.Name)
		return f, true, nil
	}
	c, f := r.connect(p, token)
	if f.reason != "" {
		r.Registry.lapse(p.Name)
		return f, true, nil
	}
	if c.usable && r.Clock().Sub(c.checked) < r.Poll {
		return finding{reason: flightsv1.ReasonProviderReady, message: "books with account " + c.account}, true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	c, f = r.ask(ctx, p, c)
	if f.limited {
		return f, false, nil
	}
	c.checked = r.Clock()
	r.Registry.put(p.Name, c)
	return f, true, nil
}

// rest says when a provider is looked at again.
func (r *Reconciler) rest(req ctrl.Request, p *flightsv1.BookingProvider, f finding) ctrl.Result {
	after := r.pause(req, f)
	if !p.DeletionTimestamp.IsZero() {
		after = min(after, inUseRetry)
	}
	return ctrl.Result{RequeueAfter: after}
}

func (r *Reconciler) pause(req ctrl.Request, f finding) time.Duration {
	switch {
	case f.good():
		r.backoff.Forget(req)
		return r.Poll + time.Duration(rand.Int64N(int64(r.Poll)/5+1))
	case f.limited, f.reason == flightsv1.ReasonUnreachable, f.reason == flightsv1.ReasonEndpointForbidden:
		return r.backoff.When(req)
	case f.reason == flightsv1.ReasonSecretForbidden:
		return slowestRetry // no watch tells when the right is given
	default:
		return refusedRetry
	}
}

// finalizer keeps our finalizer on a provider while it is there, and takes it off when it is deleted and no ticket
// uses it any more. Stays says why it is still there though it is being deleted; empty if it isn't. Gone says that nothing
// else is to be done.
func (r *Reconciler) finalizer(ctx context.Context, p *flightsv1.BookingProvider) (stays string, gone bool, err error) {
	has := controllerutil.ContainsFinalizer(p, flightsv1.ProviderInUseFinalizer)
	if p.DeletionTimestamp.IsZero() {
		if has {
			return "", false, nil
		}
		return "", false, r.setFinalizer(ctx, p, true)
	}
	if !has {
		return "", true, nil
	}
	users, err := r.users(ctx, p.Name)
	if err != nil {
		return "", false, err
	}
	if len(users) > 0 || r.Registry.goingFor(p.UID, r.Clock()) < quietTime {
		return staying(users), false, nil
	}
	if err := r.setFinalizer(ctx, p, false); err != nil {
		return "", true, err
	}
	r.Registry.went(p.UID)
	return "", true, nil
}

func (r *Reconciler) setFinalizer(ctx context.Context, p *flightsv1.BookingProvider, on bool) error {
	before := p.DeepCopy()
	if on {
		controllerutil.AddFinalizer(p, flightsv1.ProviderInUseFinalizer)
	} else {
		controllerutil.RemoveFinalizer(p, flightsv1.ProviderInUseFinalizer)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, p, patch); err != nil {
		return fmt.Errorf("set finalizer of provider: %w", err)
	}
	return nil
}
