package flightticket

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// afterLongPass is the pause after a pass that was broken off.
	afterLongPass = 5 * time.Minute
	// afterConflict is the pause after somebody else wrote the ticket: time for the cache to see it.
	afterConflict = 500 * time.Millisecond
)

// Reconciler books, changes and cancels what tickets ask for.
type Reconciler struct {
	Options
	memory *memory
	// seed is that of the digests in memory.
	seed maphash.Seed
	// policies counts how often the policies have changed.
	policies atomic.Int64
	// adopting holds one token while a ticket takes a booking over: two that do so at once could take the same one.
	adopting chan struct{}
}

// New returns a Reconciler. The error names what the options lack: without quotas nothing would hold them, and nobody would
// notice.
func New(o Options) (*Reconciler, error) {
	if o.Quotas == nil {
		return nil, errors.New("make the ticket controller: the options lack Quotas")
	}
	return &Reconciler{Options: o, memory: newMemory(), seed: maphash.MakeSeed(), adopting: make(chan struct{}, 1)}, nil
}

// Reconcile makes one pass over a ticket: it looks, does one thing, and looks again, until there is nothing left to do
// or something to wait for. A ticket that waits is left alone until its time has come or something that concerns it has
// changed.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ticket, err := r.read(ctx, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.memory.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	p, err := r.observe(ctx, ticket)
	if err != nil {
		return ctrl.Result{}, err
	}
	if still := r.memory.due(p.key(), digest(r.seed, p.facts()), p.o.Now); still > 0 {
		return ctrl.Result{RequeueAfter: still}, nil
	}
	p.recall()
	defer p.leave()
	return r.pursue(booking.WithPriority(ctx, p.priority()), p)
}

// pursue takes step after step until the pass is over.
func (r *Reconciler) pursue(ctx context.Context, p *pass) (ctrl.Result, error) {
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
		p.o.Waits = p.o.Waits.After(step, p.o.Now)
		if over {
			return p.rest(step), nil
		}
	}
	return ctrl.Result{RequeueAfter: afterLongPass}, nil
}

// act does the one thing that a step asks for, and says whether the pass is over.
func (p *pass) act(ctx context.Context, step lifecycle.Step) (over bool, err error) {
	switch step.Action {
	case lifecycle.AddFinalizer:
		return false, p.setFinalizer(ctx, true)
	case lifecycle.LookupOwner, lifecycle.Find, lifecycle.ReadBooking, lifecycle.Quote:
		p.hear(ctx, step)
		return false, nil
	case lifecycle.CheckHolders:
		return false, p.checkHolders(ctx)
	case lifecycle.Gate:
		p.o.Heard.Verdict = p.gate(ctx, step.Operation)
		return false, nil
	case lifecycle.CheckQuotas:
		p.o.Heard.Quotas = p.bookable(ctx, nil)
		return false, nil
	case lifecycle.HoldQuotas:
		p.o.Heard.Hold = p.bookable(ctx, &p.o.Heard.Offer.Offer)
		return false, nil
	case lifecycle.Depart:
		p.o.Heard.Departure = p.departed(ctx)
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
		p.r.memory.settle(p.key())
		return true, nil
	case lifecycle.Nothing:
		p.r.memory.settle(p.key())
		return true, p.write(ctx, step)
	case lifecycle.Wait:
		return true, p.write(ctx, step)
	default:
		return true, fmt.Errorf("carry out step: no way is known to do %q", step.Action)
	}
}

// begin writes an operation down. Only then may it be sent.
func (p *pass) begin(ctx context.Context, step lifecycle.Step) error {
	if op := step.Status.Operation; op.Kind == flightsv1.OperationBook {
		if err := p.checkProvider(ctx, op.Provider); err != nil {
			return err
		}
	}
	at := p.o.Now
	if err := p.write(ctx, step); err != nil {
		return err
	}
	p.r.memory.wroteOperation(p.key(), p.ticket.Status.Operation.ID, at)
	p.o.Heard, p.o.Fresh = lifecycle.Heard{}, true
	p.o.NewID = p.r.NewID()
	return nil
}

// checkProvider looks once more, past the cache, before a ticket binds itself to a provider: one that is being deleted
// has been asked for its users already. What it finds changed is a conflict, which ends the pass.
func (p *pass) checkProvider(ctx context.Context, bound flightsv1.ProviderIdentity) error {
	provider := &flightsv1.BookingProvider{}
	if err := p.r.Live.Get(ctx, client.ObjectKey{Name: bound.Name}, provider); err != nil {
		return fmt.Errorf("read provider %s: %w", bound.Name, err)
	}
	same := provider.UID == bound.UID && provider.Generation == p.o.Provider.Generation
	if same && provider.DeletionTimestamp.IsZero() {
		return nil
	}
	resource := flightsv1.GroupVersion.WithResource("bookingproviders").GroupResource()
	return apierrors.NewConflict(resource, provider.Name, errors.New("the provider was changed meanwhile"))
}

// end writes down how an operation went, or a booking that was found or taken over.
func (p *pass) end(ctx context.Context, step lifecycle.Step) error {
	was, is := p.ticket.Status, step.Status
	if was.Booking == nil && was.Operation == nil && is.Booking != nil && !p.o.Ticket.Deleting {
		if err := p.checkProvider(ctx, is.Booking.Provider); err != nil {
			return err
		}
	}
	if err := p.write(ctx, step); err != nil {
		return err
	}
	p.r.memory.settle(p.key())
	if is.Booking != nil {
		p.r.memory.lookedAt(p.key(), p.o.Now)
	}
	p.o.Heard, p.o.Fresh = lifecycle.Heard{}, false
	return nil
}

// leave ends a pass: room that was not used is given back, and what was heard before the limiter or a quota stopped it is
// kept.
func (p *pass) leave() {
	if p.permit != nil {
		p.permit.Release()
	}
	if p.adopting {
		<-p.r.adopting
	}
	if (p.limited || p.waits) && p.ticket.Status.Operation == nil {
		p.r.memory.keep(p.key(), answers{
			wish: digest(p.r.seed, p.wish()), status: p.ticket.Status, of: p.o.Provider, heard: p.o.Heard,
		})
	}
}

// rest says when a ticket is looked at again.
func (p *pass) rest(step lifecycle.Step) ctrl.Result {
	p.waits = step.Keeps()
	wait := rest{facts: digest(p.r.seed, p.facts()), wish: digest(p.r.seed, p.wish()), waits: p.o.Waits}
	wait.quotas, wait.woken = p.waits, p.woken
	after := step.After
	switch {
	case step.Action == lifecycle.Nothing, step.Action == lifecycle.RemoveFinalizer:
		after = 0
	case step.Cause != lifecycle.CauseLook: // the time of a look is spread already
		after = spread(after)
	}
	if after > 0 {
		wait.due = p.o.Now.Add(after)
	}
	p.r.memory.rests(p.key(), wait)
	return ctrl.Result{RequeueAfter: after}
}

// spread keeps tickets that began to wait together from coming back together.
func spread(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/5+1))
}
