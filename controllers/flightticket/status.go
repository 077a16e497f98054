package flightticket

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
)

// outcomeTime is how long an outcome that was heard is tried to be stored, also while the process shuts down.
const outcomeTime = 20 * time.Second

// write stores the step's status if it differs, tells its event, and takes the stored ticket as the new observation.
// Another version of the ticket is a conflict, except for an outcome that was just heard: that one is worth storing.
func (p *pass) write(ctx context.Context, step lifecycle.Step) error {
	if p.o.Heard.Sent != nil {
		return p.writeOutcome(ctx, step)
	}
	return p.store(ctx, step)
}

func (p *pass) store(ctx context.Context, step lifecycle.Step) error {
	if equality.Semantic.DeepEqual(p.ticket.Status, step.Status) {
		return nil
	}
	var next *flightsv1.FlightTicket
	update := func() error {
		next = p.ticket.DeepCopy()
		next.Status = step.Status
		return p.r.Client.Status().Update(ctx, next)
	}
	insist := p.insist
	if step.Action == lifecycle.StartOperation {
		insist = p.once
	}
	if err := insist(ctx, update); err != nil {
		return fmt.Errorf("write status of ticket: %w", err)
	}
	p.r.memory.wrote(p.key(), next.ResourceVersion)
	p.told(step)
	p.journal(ctx, p.ticket.Status, step)
	fresh := p.o.Fresh
	p.look(next)
	p.o.Fresh = fresh
	return nil
}

// once makes a write on the version of the ticket that was decided about, and on no other: the quotas said that there is room
// for that one. What was heard is kept, so that who edits often has nothing asked anew.
func (p *pass) once(_ context.Context, write func() error) error {
	err := write()
	p.waits = p.waits || apierrors.IsConflict(err)
	return err
}

// maxOvertaken is how often a write is repeated in one pass that edits of other people overtake.
const maxOvertaken = 5

// insist makes a write again that was overtaken by an edit which the decision doesn't rest on, such as another's label. If
// the pass began anew instead, who edits often enough could have it ask the provider without end.
func (p *pass) insist(ctx context.Context, write func() error) error {
	for range maxOvertaken {
		err := write()
		if !apierrors.IsConflict(err) || !p.catchUp(ctx) {
			return err
		}
	}
	return write()
}

// catchUp takes up the newest version of the ticket if all that decisions rest on is as it was.
func (p *pass) catchUp(ctx context.Context) bool {
	latest, was := &flightsv1.FlightTicket{}, p.ticket
	if err := p.r.Live.Get(ctx, p.key(), latest); err != nil {
		return false
	}
	before := p.wish()
	p.ticket = latest
	same := p.wish() == before && equality.Semantic.DeepEqual(latest.Status, was.Status) &&
		controllerutil.ContainsFinalizer(latest, flightsv1.BookingFinalizer) == p.o.Ticket.Finalizer
	if !same {
		p.ticket = was
	}
	return same
}

// setFinalizer puts the finalizer on or takes it off, on the version of the ticket that was decided about.
func (p *pass) setFinalizer(ctx context.Context, on bool) error {
	var next *flightsv1.FlightTicket
	err := p.insist(ctx, func() error {
		next = p.ticket.DeepCopy()
		if on {
			controllerutil.AddFinalizer(next, flightsv1.BookingFinalizer)
		} else {
			controllerutil.RemoveFinalizer(next, flightsv1.BookingFinalizer)
		}
		return p.r.Client.Patch(ctx, next, client.MergeFromWithOptions(p.ticket, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return err
	}
	p.r.memory.wrote(p.key(), next.ResourceVersion)
	heard, fresh := p.o.Heard, p.o.Fresh
	p.look(next)
	p.o.Heard, p.o.Fresh = heard, fresh
	return nil
}

// told tells an event and counts, once the status that they speak of is stored.
func (p *pass) told(step lifecycle.Step) {
	if e := step.Event; e != nil {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		p.r.Events.Eventf(p.ticket, nil, kind, e.Reason, string(step.Action), "%s", note(e.Message))
	}
	if c := step.Closed; c != nil {
		p.r.Metrics.closed(c.Kind, c.Result)
	}
}

// maxNote is what the API server takes of an event's text, in bytes, less a margin.
const maxNote = 1000

// note cuts a message to what fits into an event. The condition holds all of it.
func note(message string) string {
	if len(message) <= maxNote {
		return message
	}
	return strings.ToValidUTF8(message[:maxNote], "") + " (cut)"
}

// writeOutcome stores what came of a send. It outlives the shutdown of the process, repeats what the API server did
// not take, and follows the ticket to a newer version as long as the operation is still its own.
func (p *pass) writeOutcome(ctx context.Context, step lifecycle.Step) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTime)
	defer cancel()
	id := p.o.Ticket.Status.Operation.ID
	var last error
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		last = p.store(ctx, step)
		switch {
		case last == nil:
			return true, nil
		case apierrors.IsNotFound(last):
			return false, last
		case !apierrors.IsConflict(last):
			return false, nil
		}
		moved, ok := p.follow(ctx, id)
		if !ok {
			return false, last
		}
		step = moved
		return false, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// follow takes up the newest version of the ticket with the outcome in hand, and returns what is to be written there.
// False: the operation is another one now, or more has to be asked first.
func (p *pass) follow(ctx context.Context, id string) (lifecycle.Step, bool) {
	latest := &flightsv1.FlightTicket{}
	if err := p.r.Live.Get(ctx, client.ObjectKeyFromObject(p.ticket), latest); err != nil {
		return lifecycle.Step{}, false
	}
	if latest.Status.Operation == nil || latest.Status.Operation.ID != id {
		return lifecycle.Step{}, false
	}
	fresh := p.o.Fresh
	p.look(latest)
	p.o.Fresh = fresh
	step := lifecycle.Next(p.o)
	switch step.Action {
	case lifecycle.Record, lifecycle.CloseOperation, lifecycle.Wait:
		return step, true
	default:
		return lifecycle.Step{}, false
	}
}
