package guard

import (
	"context"
	"errors"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// read makes a read if there is room for it.
func read[T any](ctx context.Context, g *Guard, p booking.Priority, call func() (T, error)) (T, error) {
	leave, refusal := g.enter(ctx, p)
	if refusal != nil {
		var none T
		return none, refusal
	}
	// A panic must not leave the breaker waiting for its trial call for ever.
	failure := &booking.CallError{Class: booking.ClassUnavailable, Code: booking.CodeConnectionFailed}
	defer func() { leave(failure) }()
	value, err := call()
	failure = nil
	if err != nil && !errors.As(err, &failure) {
		failure = &booking.CallError{Class: booking.ClassUnavailable, Code: booking.CodeConnectionFailed}
	}
	return value, err
}

// write makes a write if there is room for it; else it is Rejected and was not sent.
func (g *Guard) write(ctx context.Context, p booking.Priority, call func() booking.Outcome) booking.Outcome {
	leave, refusal := g.enter(ctx, p)
	if refusal != nil {
		return booking.Outcome{Kind: booking.Rejected, Failure: refusal}
	}
	failure := &booking.CallError{Class: booking.ClassUnknown, Code: booking.CodeConnectionFailed}
	defer func() { leave(failure) }()
	outcome := call()
	failure = outcome.Failure
	return outcome
}

// Account implements booking.Provider, as a poll.
func (g *Guard) Account(ctx context.Context) (booking.Account, error) {
	return read(ctx, g, booking.PriorityPoll, func() (booking.Account, error) { return g.next.Account(ctx) })
}

// Quote implements booking.Provider, with the priority of the booking that it is for.
func (g *Guard) Quote(ctx context.Context, order flightsv1.Order) (booking.Offer, error) {
	return read(ctx, g, booking.PriorityBook, func() (booking.Offer, error) { return g.next.Quote(ctx, order) })
}

// Get implements booking.Provider, as a poll.
func (g *Guard) Get(ctx context.Context, bookingID string) (booking.Booking, error) {
	return read(ctx, g, booking.PriorityPoll, func() (booking.Booking, error) { return g.next.Get(ctx, bookingID) })
}

// FindByClientReference implements booking.Provider, with the priority of the operation that it resolves.
func (g *Guard) FindByClientReference(ctx context.Context, clientReference string) ([]booking.Booking, error) {
	return read(ctx, g, booking.PriorityBook, func() ([]booking.Booking, error) {
		return g.next.FindByClientReference(ctx, clientReference)
	})
}

// FindByOwner implements booking.Provider, with the priority of the booking that it precedes.
func (g *Guard) FindByOwner(ctx context.Context, owner string) ([]booking.Booking, error) {
	return read(ctx, g, booking.PriorityBook, func() ([]booking.Booking, error) { return g.next.FindByOwner(ctx, owner) })
}

// Book implements booking.Provider.
func (g *Guard) Book(ctx context.Context, r booking.BookRequest) booking.Outcome {
	return g.write(ctx, booking.PriorityBook, func() booking.Outcome { return g.next.Book(ctx, r) })
}

// Change implements booking.Provider, with the priority of a booking.
func (g *Guard) Change(ctx context.Context, r booking.ChangeRequest) booking.Outcome {
	return g.write(ctx, booking.PriorityBook, func() booking.Outcome { return g.next.Change(ctx, r) })
}

// Cancel implements booking.Provider.
func (g *Guard) Cancel(ctx context.Context, r booking.CancelRequest) booking.Outcome {
	return g.write(ctx, booking.PriorityCancel, func() booking.Outcome { return g.next.Cancel(ctx, r) })
}
