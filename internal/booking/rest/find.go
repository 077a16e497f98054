package rest

import (
	"context"
	"net/http"
	"slices"

	"github.com/flight-operator/flight-operator/internal/booking"
)

const (
	// pageSize is the contract's largest page.
	pageSize = 100
	// maxPages bounds a lookup. Nobody books a thousand times under one name; a server that pages for ever must end.
	maxPages = 10
)

// FindByClientReference implements booking.Provider.
func (p *Provider) FindByClientReference(ctx context.Context, clientReference string) ([]booking.Booking, error) {
	if clientReference == "" {
		return nil, invalidRequest("an empty client reference finds nothing")
	}
	return p.find(ctx, ListBookingsParams{ClientReference: &clientReference}, func(n booking.Names) bool {
		return n.ClientReference == clientReference
	})
}

// FindByOwner implements booking.Provider.
func (p *Provider) FindByOwner(ctx context.Context, owner string) ([]booking.Booking, error) {
	if owner == "" {
		return nil, invalidRequest("an empty owner finds nothing")
	}
	return p.find(ctx, ListBookingsParams{Owner: &owner}, func(n booking.Names) bool { return n.Owner == owner })
}

// find reads all pages or fails: absence is concluded from the result, so a part of it is worth nothing.
func (p *Provider) find(ctx context.Context, query ListBookingsParams, mine func(booking.Names) bool) ([]booking.Booking, error) {
	limit := int32(pageSize)
	query.Limit = &limit
	var all []booking.Booking
	for range maxPages {
		var page BookingList
		if err := p.read(ctx, nil, &page, func(ctx context.Context) (*http.Response, error) {
			return p.api.ListBookings(ctx, &query)
		}); err != nil {
			return nil, err
		}
		if page.Bookings == nil {
			return nil, invalidAnswer("the answer has no list of bookings")
		}
		for _, b := range page.Bookings {
			found, err := p.fromBooking(b)
			if err != nil {
				return nil, invalidAnswer(err.Error())
			}
			// A server that ignores the filter would hand us the bookings of others.
			if !mine(found.Names) {
				return nil, invalidAnswer("the answer holds a booking of another name than the one asked for")
			}
			all = append(all, found)
		}
		if page.NextCursor == "" {
			slices.SortStableFunc(all, func(a, b booking.Booking) int { return b.CreatedAt.Compare(a.CreatedAt) })
			return all, nil
		}
		query.Cursor = &page.NextCursor
	}
	return nil, &booking.CallError{
		Class: booking.ClassUnavailable, Code: booking.CodeTooManyBookings,
		Detail: "more than 1000 bookings carry this name; none is concluded from a part of them",
	}
}
