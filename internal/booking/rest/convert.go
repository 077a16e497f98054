package rest

import (
	"errors"
	"regexp"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
)

var (
	bookingID     = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)
	recordLocator = regexp.MustCompile(`^[A-Za-z0-9-]{1,32}$`)
)

// isBookingID keeps an id from becoming another path: it is put into one.
func isBookingID(id string) bool { return bookingID.MatchString(id) && id != "." && id != ".." }

// isText says that s is printable ASCII, not empty and not longer than limit.
func isText(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return true
}

func toMoney(a money.Amount) Money { return Money{Amount: a.Decimal(), Currency: a.Currency} }

func toOrder(o flightsv1.Order) Order {
	order := Order{
		Origin: o.Origin, Destination: o.Destination, Seats: o.Seats,
		DepartureDate: string(o.DepartureDate), ReturnDate: string(o.ReturnDate), Cabin: Cabin(o.Cabin),
	}
	for _, p := range o.Passengers {
		order.Passengers = append(order.Passengers, Passenger{
			GivenName: p.GivenName, FamilyName: p.FamilyName, BirthDate: string(p.BirthDate),
			Email: p.Email, Phone: p.Phone, Title: PassengerTitle(p.Title), Gender: PassengerGender(p.Gender),
		})
	}
	return order
}

func fromOrder(o Order) flightsv1.Order {
	order := flightsv1.Order{
		Origin: o.Origin, Destination: o.Destination, Seats: o.Seats,
		DepartureDate: flightsv1.Date(o.DepartureDate), ReturnDate: flightsv1.Date(o.ReturnDate),
		Cabin: flightsv1.Cabin(o.Cabin),
	}
	for _, p := range o.Passengers {
		order.Passengers = append(order.Passengers, flightsv1.Passenger{
			GivenName: p.GivenName, FamilyName: p.FamilyName, BirthDate: flightsv1.Date(p.BirthDate),
			Email: p.Email, Phone: p.Phone, Title: string(p.Title), Gender: string(p.Gender),
		})
	}
	return order
}

func fromSegments(segments []Segment) []booking.Segment {
	var all []booking.Segment
	for _, s := range segments {
		operating := s.OperatingCarrier
		if operating == "" {
			operating = s.MarketingCarrier
		}
		all = append(all, booking.Segment{
			Origin: s.Origin, Destination: s.Destination, DepartsAt: s.DepartsAt, ArrivesAt: s.ArrivesAt,
			MarketingCarrier: s.MarketingCarrier, OperatingCarrier: operating,
			FlightNumber: s.FlightNumber, Cabin: flightsv1.Cabin(s.Cabin),
		})
	}
	return all
}

// fromBooking fails on a booking that can't be told from another one: no id, no status that we know. A price, version,
// reference or part of the order that can't be read is left out instead, and so are all flights where one can't be: the
// booking exists all the same, and has to be found and cancelled.
func (p *Provider) fromBooking(b Booking) (booking.Booking, error) {
	if !isBookingID(b.Id) {
		return booking.Booking{}, errors.New("a booking has no usable id")
	}
	statuses := map[BookingStatus]booking.Status{
		Pending: booking.StatusPending, Confirmed: booking.StatusConfirmed,
		Cancelled: booking.StatusCancelled, Failed: booking.StatusFailed,
	}
	status, ok := statuses[b.Status]
	if !ok {
		return booking.Booking{}, errors.New("a booking has no status of this contract")
	}
	price, _ := usablePrice(b.Price)
	version := b.Version
	if !isText(version, 128) {
		version = ""
	}
	reference := b.Reference
	if !recordLocator.MatchString(reference) {
		reference = ""
	}
	order := fromOrder(b.Order)
	secrets := p.secrets(&order)
	return booking.Booking{
		ID: b.Id, Names: booking.Names{ClientReference: b.ClientReference, Owner: b.Owner},
		Reference: reference, Version: version, Status: status,
		Order: usableOrder(order), Price: price, CreatedAt: b.CreatedAt,
		Segments: usableSegments(fromSegments(b.Segments)),
		Reason:   normalise(b.Reason, secrets),
	}, nil
}

// cheapest takes the cheapest quote in the currency of the first one: a provider that mixes currencies is not second
// guessed with exchange rates.
func cheapest(quotes []Quote) (booking.Offer, error) {
	var offers []booking.Offer
	for _, q := range quotes {
		price, ok := usablePrice(q.Price)
		if !ok || !isText(q.Id, 128) || q.ExpiresAt.IsZero() {
			return booking.Offer{}, invalidAnswer("a quote has no usable id, price or expiry")
		}
		segments := fromSegments(q.Segments)
		if len(usableSegments(segments)) != len(segments) {
			// What a policy can't read it can't refuse.
			return booking.Offer{}, invalidAnswer("a quote has a segment without the codes that the contract asks for, or too many")
		}
		offers = append(offers, booking.Offer{ID: q.Id, Price: price, Segments: segments, ExpiresAt: q.ExpiresAt})
	}
	if len(offers) == 0 {
		return booking.Offer{}, invalidAnswer("the answer holds no quote")
	}
	best := offers[0]
	for _, o := range offers[1:] {
		if o.Price.Currency == best.Price.Currency && o.Price.Minor < best.Price.Minor {
			best = o
		}
	}
	return best, nil
}
