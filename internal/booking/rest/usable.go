package rest

import (
	"regexp"
	"slices"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
)

// What a provider says of a booking goes into a status, which the API server checks against the same forms. A booking
// whose words don't fit there could not be written down, and so never be cancelled.
var (
	placeForm   = regexp.MustCompile(`^[A-Z]{3}$`)
	airlineForm = regexp.MustCompile(`^[A-Z0-9]{2,3}$`)
	flightForm  = regexp.MustCompile(`^[A-Z0-9]{2,3} ?[0-9]{1,4}[A-Z]?$`)
	priceForm   = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,4})?$`)
	emailForm   = regexp.MustCompile(`^[^@\s]+@[^@\s]+$`)
	phoneForm   = regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`)
)

const (
	// maxPassengers is how many a ticket can have.
	maxPassengers = 5
	maxName       = 60
	maxEmail      = 254
)

// allowed are the values of the contract's enumerations.
var (
	cabins  = []flightsv1.Cabin{flightsv1.CabinEconomy, flightsv1.CabinPremiumEconomy, flightsv1.CabinBusiness, flightsv1.CabinFirst}
	titles  = []string{"Mr", "Mrs", "Ms", "Miss", "Dr"}
	genders = []string{"F", "M", "X"}
)

// only returns a value that has the wanted form, else nothing.
func only[T ~string](value T, fits bool) T {
	if !fits {
		return ""
	}
	return value
}

func isDay(day flightsv1.Date) bool {
	at, err := time.Parse(time.DateOnly, string(day))
	return err == nil && at.Year() > 0 // the API server knows no year 0
}

// usableOrder leaves out of an order what has no form of the contract.
func usableOrder(o flightsv1.Order) flightsv1.Order {
	o.Origin = only(o.Origin, placeForm.MatchString(o.Origin))
	o.Destination = only(o.Destination, placeForm.MatchString(o.Destination))
	o.DepartureDate = only(o.DepartureDate, isDay(o.DepartureDate))
	o.ReturnDate = only(o.ReturnDate, isDay(o.ReturnDate))
	o.Cabin = only(o.Cabin, slices.Contains(cabins, o.Cabin))
	var passengers []flightsv1.Passenger
	for _, p := range o.Passengers {
		if isName(p.GivenName) && isName(p.FamilyName) && len(passengers) < maxPassengers {
			passengers = append(passengers, usablePassenger(p))
		}
	}
	o.Passengers = passengers
	return o
}

func usablePassenger(p flightsv1.Passenger) flightsv1.Passenger {
	p.BirthDate = only(p.BirthDate, isDay(p.BirthDate))
	p.Email = only(p.Email, len(p.Email) <= maxEmail && emailForm.MatchString(p.Email))
	p.Phone = only(p.Phone, phoneForm.MatchString(p.Phone))
	p.Title = only(p.Title, slices.Contains(titles, p.Title))
	p.Gender = only(p.Gender, slices.Contains(genders, p.Gender))
	return p
}

// isName counts characters, as the API server does.
func isName(name string) bool { return name != "" && len([]rune(name)) <= maxName }

// usablePrice returns a price that can be written down, else none.
func usablePrice(m Money) (money.Amount, bool) {
	price, err := money.Parse(m.Amount, m.Currency)
	if err != nil || !priceForm.MatchString(price.Decimal()) {
		return money.Amount{}, false
	}
	return price, true
}

// usableSegment says whether a segment has the contract's form: policies judge by it.
func usableSegment(s booking.Segment) bool {
	return placeForm.MatchString(s.Origin) && placeForm.MatchString(s.Destination) &&
		airlineForm.MatchString(s.MarketingCarrier) && airlineForm.MatchString(s.OperatingCarrier) &&
		flightForm.MatchString(s.FlightNumber) && (s.Cabin == "" || slices.Contains(cabins, s.Cabin))
}

// usableSegments are all flights of a list, or none if it is too long or one has not the contract's form: quotas count by
// them, and a part would be counted as the whole.
func usableSegments(all []booking.Segment) []booking.Segment {
	if len(all) > booking.MaxSegments || slices.ContainsFunc(all, func(s booking.Segment) bool { return !usableSegment(s) }) {
		return nil
	}
	return all
}
