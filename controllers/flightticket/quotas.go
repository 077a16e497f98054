package flightticket

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// bookable asks the quotas whether they have room for the ticket; the offer is nil before there is one.
func (p *pass) bookable(ctx context.Context, offer *booking.Offer) lifecycle.QuotaAnswer {
	err := p.r.Quotas.Bookable(ctx, p.ticket.DeepCopy(), offer)
	p.logQuotas(ctx, err)
	return quotaAnswer(err)
}

// departed asks whether what must outlive the ticket is in its quotas.
func (p *pass) departed(ctx context.Context) *lifecycle.Departure {
	err := p.r.Quotas.Departed(ctx, p.ticket.DeepCopy())
	p.logQuotas(ctx, err)
	return &lifecycle.Departure{Missing: quotaAnswer(err).Message}
}

// logQuotas keeps what a status doesn't say, since it differs from look to look.
func (p *pass) logQuotas(ctx context.Context, err error) {
	if err != nil {
		log.FromContext(ctx).V(1).Info("the quotas hold the ticket back", "uid", p.ticket.UID, "cause", err.Error())
	}
}

// quotaAnswer words what the quotas said. Revisions and the like differ from look to look and are left out: each would be
// a write of a status.
func quotaAnswer(err error) lifecycle.QuotaAnswer {
	var (
		full     *quota.RefusedError
		counting *quota.NotCountedError
		stale    *quota.StaleError
		busy     *quota.BusyError
	)
	switch {
	case err == nil:
		return lifecycle.QuotaAnswer{Kind: lifecycle.QuotaRoom}
	case errors.As(err, &full):
		return lifecycle.QuotaAnswer{Kind: lifecycle.QuotaFull, Message: full.Error()}
	case errors.As(err, &counting):
		return stillCounting("quota %q of policy %s is being counted", counting.Key, counting.Policy)
	case errors.As(err, &stale):
		return stillCounting("policy %s has changed, and its quotas are being counted anew", stale.Policy)
	case errors.As(err, &busy):
		return stillCounting("quota %q of policy %s is busy", busy.Key, busy.Policy)
	default:
		return lifecycle.QuotaAnswer{
			Kind: lifecycle.QuotaError, Message: fmt.Sprintf("the quotas of the ticket could not be asked: %s", err),
		}
	}
}

func stillCounting(format string, about ...any) lifecycle.QuotaAnswer {
	return lifecycle.QuotaAnswer{Kind: lifecycle.QuotaCounting, Message: fmt.Sprintf(format, about...)}
}

// followQuotas looks again at tickets that wait for their quotas when they may find room. Others are left alone.
func (r *Reconciler) followQuotas(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	changed := r.Quotas.Changed()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case ticket, open := <-changed:
				if !open {
					return
				}
				r.memory.wake(ticket)
				queue.AddAfter(reconcile.Request{NamespacedName: ticket}, wakeAfter)
			}
		}
	}()
	return nil
}

// wakeAfter is the pause between the news of room and the look: time for the cache to show what made the room.
const wakeAfter = 100 * time.Millisecond
