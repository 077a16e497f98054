package flightticket

import (
	"context"
	"errors"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
)

const (
	// maxLimiterWait is how long one pass waits in all for the limiter before it gives its worker to another ticket.
	// Short waits are made in place: a pass that was sent back to the queue would ask its questions again and, with
	// many tickets, never get to its purchase.
	maxLimiterWait = 20 * time.Second
	// codeTooLate marks a send that was not made because send-by has passed.
	codeTooLate = "too_late"
)

// ask makes one read. It waits in place for the limiter if somebody waits for the answer, reports a provider that seems to have changed, and returns
// how the call failed.
func (p *pass) ask(ctx context.Context, call func(context.Context) error) *booking.CallError {
	for {
		failure := callError(call(ctx))
		if failure == nil {
			return nil
		}
		if !limited(failure) || p.priority() == booking.PriorityPoll || !p.pause(ctx, failure.RetryAfter) {
			p.limited = p.limited || limited(failure)
			p.doubt(failure)
			return failure
		}
	}
}

// admit asks for the room of the call that the next operation will make. It waits for it as a read does.
func (p *pass) admit(ctx context.Context) {
	gate, limits := p.api.(booking.Admitter)
	p.o.Heard.Room = &lifecycle.Admission{}
	if !limits {
		return
	}
	p.o.Heard.Room.Err = p.ask(ctx, func(context.Context) error {
		permit, refusal := gate.Admit(p.priority())
		if refusal != nil {
			return refusal
		}
		p.permit = permit
		return nil
	})
}

// limited says whether our own limiter had no room, so that nothing was sent.
func limited(e *booking.CallError) bool {
	return e.Class == booking.ClassUnavailable && e.Code == booking.CodeRateLimited
}

func callError(err error) *booking.CallError {
	if err == nil {
		return nil
	}
	var failure *booking.CallError
	if errors.As(err, &failure) {
		return failure
	}
	return &booking.CallError{Class: booking.ClassUnavailable, Code: "call_failed", Detail: "the call could not be made"}
}

// pause waits for the limiter. False: it is not worth it, or the process is shutting down.
func (p *pass) pause(ctx context.Context, d time.Duration) bool {
	if p.waited+d > maxLimiterWait {
		return false
	}
	p.waited += d
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// doubt has the provider looked at when an answer says that its credential or its host is no longer good.
func (p *pass) doubt(e *booking.CallError) {
	switch e.Code {
	case booking.CodeRateLimited, booking.CodeProviderPaused, booking.CodeBreakerOpen, booking.CodeCancelled, codeTooLate:
		return // our own words: the provider was not asked
	}
	if e.Class == booking.ClassCredential || e.Class == booking.ClassUnavailable {
		p.r.Providers.Doubt(p.o.Provider.Name)
	}
}

// hear carries out an action that only asks, and keeps the answer for the next look.
func (p *pass) hear(ctx context.Context, step lifecycle.Step) {
	switch step.Action {
	case lifecycle.LookupOwner:
		p.o.Heard.Owner = p.list(ctx, p.api.FindByOwner, step.Reference)
	case lifecycle.Find:
		p.o.Heard.Found = p.list(ctx, p.api.FindByClientReference, step.Reference)
	case lifecycle.ReadBooking:
		reading := &lifecycle.Reading{}
		reading.Err = p.ask(ctx, func(ctx context.Context) (err error) {
			reading.AskedAt, reading.KnownFor = p.times()
			reading.Booking, err = p.api.Get(ctx, step.Reference)
			return err
		})
		p.o.Heard.Read = reading
		answered := reading.Err == nil || reading.Err.Class == booking.ClassNotFound
		if was := p.ticket.Status.Booking; answered && was != nil && was.ID == step.Reference {
			p.r.memory.lookedAt(p.key(), p.o.Now)
		}
	case lifecycle.Quote:
		quotation := &lifecycle.Quotation{AskedAt: p.o.Now}
		quotation.Err = p.ask(ctx, func(ctx context.Context) (err error) {
			quotation.Offer, err = p.api.Quote(ctx, *p.o.Ticket.Wanted)
			return err
		})
		p.o.Heard.Offer = quotation
	default: // the other actions do something; do carries them out
	}
}

// times are those that absence is judged by.
func (p *pass) times() (time.Time, time.Duration) {
	p.tick()
	return p.o.Now, p.o.KnownFor
}

// list looks bookings up by a name. AskedAt is taken at each try: it is what absence is judged by.
func (p *pass) list(
	ctx context.Context, find func(context.Context, string) ([]booking.Booking, error), name string,
) *lifecycle.Listing {
	listing := &lifecycle.Listing{}
	listing.Err = p.ask(ctx, func(ctx context.Context) (err error) {
		listing.AskedAt, listing.KnownFor = p.times()
		listing.Bookings, err = find(ctx, name)
		return err
	})
	return listing
}

// send sends the open operation. The call outlives a shutdown that begins meanwhile: its answer is worth waiting for.
func (p *pass) send(ctx context.Context) {
	op := *p.o.Ticket.Status.Operation
	ticket, harmless := p.key(), p.o.Fresh
	if p.permit != nil {
		ctx = p.permit.Context(ctx)
	}
	var out booking.Outcome
	for {
		p.tick()
		if !lifecycle.Sendable(op, p.o.Now, p.o.KnownFor) {
			out = tooLate()
			break
		}
		// From here on the operation may take effect, also if this process dies now.
		p.r.memory.sending(ticket, op.ID, false)
		out = p.call(ctx, op)
		if out.Kind != booking.Rejected || out.Failure == nil || !limited(out.Failure) ||
			!p.pause(ctx, out.Failure.RetryAfter) {
			break
		}
	}
	if out.Kind == booking.Rejected {
		p.r.memory.sending(ticket, op.ID, harmless)
	} else {
		p.o.Fresh = false
	}
	if out.Failure != nil {
		p.doubt(out.Failure)
	}
	p.tick()
	p.o.Heard.Sent = &out
}

func tooLate() booking.Outcome {
	return booking.Outcome{Kind: booking.Rejected, Failure: &booking.CallError{
		Class: booking.ClassUnavailable, Code: codeTooLate, Detail: "the time in which the operation may be sent is over",
	}}
}

// call makes one call of an operation, with the bytes that were written down.
func (p *pass) call(ctx context.Context, op flightsv1.OperationStatus) booking.Outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.o.Provider.Timeout+5*time.Second)
	defer cancel()
	key := ""
	if op.Keyed {
		key = op.ID
	}
	switch op.Kind {
	case flightsv1.OperationBook:
		return p.api.Book(ctx, booking.BookRequest{
			Names: booking.Names{ClientReference: op.ClientReference, Owner: op.Owner}, Order: *op.Order,
			OfferID: op.OfferID, Ceiling: ceiling(op), IdempotencyKey: key,
		})
	case flightsv1.OperationChange:
		return p.api.Change(ctx, booking.ChangeRequest{
			BookingID: op.BookingID, IfVersion: op.BookingVersion, Order: *op.Order, OfferID: op.OfferID,
			Ceiling: ceiling(op), IdempotencyKey: key,
		})
	default:
		return p.api.Cancel(ctx, booking.CancelRequest{BookingID: op.BookingID, IdempotencyKey: key})
	}
}

// ceiling is the price that was quoted: more is never paid.
func ceiling(op flightsv1.OperationStatus) money.Amount {
	if op.Price == nil {
		return money.Amount{}
	}
	amount, err := money.Parse(op.Price.Amount, op.Price.Currency)
	if err != nil {
		return money.Amount{} // only a status that somebody edited; the provider refuses a ceiling of nothing
	}
	return amount
}
