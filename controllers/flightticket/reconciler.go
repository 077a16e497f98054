package flightticket

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
)

const (
	// maxSteps is more than any pass needs. A pass that takes more is broken off and begins anew after a while.
	maxSteps = 25
	// firstBackoff and slowestBackoff bound the pauses of a ticket that waits longer each time.
	firstBackoff   = time.Second
	slowestBackoff = 5 * time.Minute
	// afterConflict is the pause after somebody else wrote the ticket: time for the cache to see it.
	afterConflict = 500 * time.Millisecond
)

// Reconciler books, changes and cancels what tickets ask for.
type Reconciler struct {
	Options
	memory  *memory
	backoff workqueue.TypedRateLimiter[ctrl.Request]
}

// New returns a Reconciler.
func New(o Options) *Reconciler {
	return &Reconciler{
		Options: o, memory: newMemory(),
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstBackoff, slowestBackoff),
	}
}

// Reconcile makes one pass over a ticket: it looks, does one thing, and looks again, until there is nothing left to do
// or something to wait for.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ticket, err := r.read(ctx, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.backoff.Forget(req)
		r.memory.drop(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	p, err := r.observe(ctx, ticket)
	if err != nil {
		return ctrl.Result{}, err
	}
	defer p.leave()
	return r.pursue(booking.WithPriority(ctx, p.priority()), req, p)
}

// pursue takes step after step until the pass is over.
func (r *Reconciler) pursue(ctx context.Context, req ctrl.Request, p *pass) (ctrl.Result, error) {
	for range maxSteps {
		if ctx.Err() != nil && p.o.Heard.Sent == nil {
			return ctrl.Result{}, nil // shutting down; the next leader goes on from what is written
		}
		p.tick()
		step := lifecycle.Next(p.o)
		log.FromContext(ctx).V(1).Info("next step", "action", step.Action, "uid", p.ticket.UID)
		over, err := p.act(ctx, step)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			log.FromContext(ctx).V(1).Info("somebody else wrote or deleted meanwhile; looks again", "cause", err.Error())
			return ctrl.Result{RequeueAfter: afterConflict}, nil
		}
		if err != nil {
			return ctrl.Result{}, err
		}
		if over {
			return r.rest(req, step), nil
		}
	}
	return ctrl.Result{RequeueAfter: r.backoff.When(req)}, nil
}

// act does the one thing that a step asks for, and says whether the pass is over.
func (p *pass) act(ctx context.Context, step lifecycle.Step) (over bool, err error) {
	switch step.Action {
	case lifecycle.AddFinalizer:
		return false, p.setFinalizer(ctx, true)
	case lifecycle.LookupOwner, lifecycle.Find, lifecycle.ReadBooking, lifecycle.Quote:
		p.hear(ctx, step)
		return false, nil
	case lifecycle.Gate:
		p.o.Heard.Verdict = p.gate(ctx, step.Operation)
		return false, nil
	case lifecycle.Admit:
		p.admit(ctx)
		return false, nil
	case lifecycle.Send:
		p.send(ctx)
		return false, nil
	case lifecycle.StartOperation:
		return false, p.begin(ctx, step)
	case lifecycle.Record:
		return false, p.end(ctx, step)
	case lifecycle.CloseOperation:
		return true, p.end(ctx, step)
	case lifecycle.RemoveFinalizer:
		if err := p.setFinalizer(ctx, false); err != nil {
			return true, err
		}
		p.told(step)
		p.r.memory.drop(p.key())
		return true, nil
	case lifecycle.Nothing:
		p.r.memory.drop(p.key())
		return true, p.write(ctx, step)
	case lifecycle.Wait:
		return true, p.write(ctx, step)
	default:
		return true, fmt.Errorf("carry out step: no way is known to do %q", step.Action)
	}
}

// begin writes an operation down. Only then may it be sent.
func (p *pass) begin(ctx context.Context, step lifecycle.Step) error {
	if err := p.checkProvider(ctx, step.Status.Operation); err != nil {
		return err
	}
	at := p.o.Now
	if err := p.write(ctx, step); err != nil {
		return err
	}
	p.r.memory.written(p.key(), p.ticket.Status.Operation.ID, at)
	p.o.Heard, p.o.Fresh = lifecycle.Heard{}, true
	p.o.NewID = p.r.NewID()
	return nil
}

// checkProvider looks once more, past the cache, before a ticket binds itself to a provider: one that is being deleted
// has been asked for its users already. What it finds changed is a conflict, which ends the pass.
func (p *pass) checkProvider(ctx context.Context, op *flightsv1.OperationStatus) error {
	if op.Kind != flightsv1.OperationBook {
		return nil
	}
	provider := &flightsv1.BookingProvider{}
	if err := p.r.Live.Get(ctx, client.ObjectKey{Name: op.Provider.Name}, provider); err != nil {
		return fmt.Errorf("read provider %s: %w", op.Provider.Name, err)
	}
	same := provider.UID == op.Provider.UID && provider.Generation == p.o.Provider.Generation
	if same && provider.DeletionTimestamp.IsZero() {
		return nil
	}
	resource := flightsv1.GroupVersion.WithResource("bookingproviders").GroupResource()
	return apierrors.NewConflict(resource, provider.Name, errors.New("the provider was changed meanwhile"))
}

// end writes down how an operation went.
func (p *pass) end(ctx context.Context, step lifecycle.Step) error {
	if err := p.write(ctx, step); err != nil {
		return err
	}
	p.r.memory.drop(p.key())
	p.o.Heard, p.o.Fresh = lifecycle.Heard{}, false
	return nil
}

// leave ends a pass: room that was not used is given back, and what was heard before the limiter stopped it is kept.
func (p *pass) leave() {
	if p.permit != nil {
		p.permit.Release()
	}
	if p.limited && p.ticket.Status.Operation == nil {
		p.r.memory.keep(p.key(), answers{
			version: p.ticket.ResourceVersion, of: p.o.Provider, at: p.o.Now, heard: p.o.Heard,
		})
	}
}

// rest says when a ticket is looked at again.
func (r *Reconciler) rest(req ctrl.Request, step lifecycle.Step) ctrl.Result {
	switch {
	case step.Action == lifecycle.Nothing, step.Action == lifecycle.RemoveFinalizer:
		r.backoff.Forget(req)
		return ctrl.Result{}
	case step.Action == lifecycle.Wait && step.After >= r.Recheck:
		return ctrl.Result{RequeueAfter: spread(step.After)}
	case step.Action == lifecycle.Wait && step.After > 0:
		return ctrl.Result{RequeueAfter: step.After}
	default:
		return ctrl.Result{RequeueAfter: r.backoff.When(req)}
	}
}

// spread keeps tickets that began to wait together from coming back together.
func spread(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/5+1))
}
