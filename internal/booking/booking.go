// Package booking is the port to a booking API: orders, bookings and the four outcomes that a call can have.
//
// It knows no protocol (see the package rest), no Kubernetes client and no policy.
package booking

import (
	"context"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/money"
)

// Names are the two searchable names that a booking carries at the provider.
type Names struct {
	// ClientReference is installation, ticket UID and attempt: one book operation.
	ClientReference string
	// Owner is installation, namespace and name: one ticket, however often it is re-created.
	Owner string
}

// Segment is one flight of an offer or booking.
type Segment struct {
	Origin, Destination                string // IATA airport codes
	DepartsAt, ArrivesAt               time.Time
	MarketingCarrier, OperatingCarrier string // IATA airline codes
	FlightNumber                       string // as in "BA138"
	Cabin                              flightsv1.Cabin
}

// MaxSegments is how many flights an offer or a booking has at most: twice what any journey there and back takes. The status of
// a ticket holds no more.
const MaxSegments = 16

// Offer is a provider's quote for an order.
type Offer struct {
	ID        string
	Price     money.Amount // of the whole order
	Segments  []Segment    // at most MaxSegments
	ExpiresAt time.Time
}

// WrittenPrice is how a price is written down in the status of a ticket; nil where none is known.
func WrittenPrice(a money.Amount) *flightsv1.Money {
	if a.IsZero() {
		return nil
	}
	return &flightsv1.Money{Amount: a.Decimal(), Currency: a.Currency}
}

// Written is how flights are written down in the status of a ticket. What policies see of an offer is made of this too:
// what is counted later must be what they were asked about.
func Written(segments []Segment) []flightsv1.Segment {
	var all []flightsv1.Segment
	for _, s := range segments {
		all = append(all, flightsv1.Segment{
			Origin: s.Origin, Destination: s.Destination,
			DepartsAt: s.DepartsAt.Format(time.RFC3339), ArrivesAt: s.ArrivesAt.Format(time.RFC3339),
			MarketingCarrier: s.MarketingCarrier, OperatingCarrier: s.OperatingCarrier,
			FlightNumber: s.FlightNumber, Cabin: s.Cabin,
		})
	}
	return all
}

// Status is where a booking is at the provider.
type Status string

// The statuses of a booking.
const (
	StatusPending   Status = "Pending"   // accepted, not final
	StatusConfirmed Status = "Confirmed" // exists
	StatusCancelled Status = "Cancelled" // existed
	StatusFailed    Status = "Failed"    // accepted and then certainly not made
)

// Booking is what exists at a provider.
type Booking struct {
	ID        string
	Names     Names
	Reference string // the record locator that travellers use
	Version   string // ETag, for a conditional change
	Status    Status
	Order     flightsv1.Order
	Price     money.Amount
	Segments  []Segment // at most MaxSegments; empty where the provider doesn't tell them all
	CreatedAt time.Time
	// Reason says why a booking has StatusFailed; normalised, capped and free of secrets.
	Reason string
}

// Account is whom a credential belongs to.
type Account struct {
	ID string
}

// BookRequest asks for a booking.
type BookRequest struct {
	Names Names
	Order flightsv1.Order
	// OfferID is the quote that the order accepts.
	OfferID string
	// Ceiling is the most that may be charged.
	Ceiling money.Amount
	// IdempotencyKey is sent only if the provider declares that it takes keys; empty sends none.
	IdempotencyKey string
}

// ChangeRequest asks to make a booking as the order says. Changes are absolute.
type ChangeRequest struct {
	BookingID string
	// IfVersion is the version that the change applies to; the provider refuses another (If-Match).
	IfVersion      string
	Order          flightsv1.Order
	OfferID        string
	Ceiling        money.Amount
	IdempotencyKey string
}

// CancelRequest asks to cancel a booking.
type CancelRequest struct {
	BookingID      string
	IdempotencyKey string
}

// Provider is a booking API under one credential. Reads return a *CallError; writes return an Outcome, never an error,
// because "failed" isn't something a caller can know after the bytes have left.
//
// An implementation sends each call at most once: it repeats nothing by itself, follows no redirect, and stops at the
// context's end. It is safe for concurrent use.
type Provider interface {
	// Account tells whom the credential belongs to.
	Account(ctx context.Context) (Account, error)
	// Quote asks for the cheapest offer for an order.
	Quote(ctx context.Context, order flightsv1.Order) (Offer, error)
	// Get reads a booking. One that the account doesn't have is a *CallError of ClassNotFound.
	Get(ctx context.Context, bookingID string) (Booking, error)
	// FindByClientReference and FindByOwner list bookings in any status, newest first. None is not an error.
	FindByClientReference(ctx context.Context, clientReference string) ([]Booking, error)
	FindByOwner(ctx context.Context, owner string) ([]Booking, error)
	// Book, Change and Cancel do what they say once.
	Book(ctx context.Context, r BookRequest) Outcome
	Change(ctx context.Context, r ChangeRequest) Outcome
	Cancel(ctx context.Context, r CancelRequest) Outcome
}
