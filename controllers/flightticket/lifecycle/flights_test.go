package lifecycle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// flight departs on the second in Mumbai and on the first in UTC.
func flight(number string) booking.Segment {
	departs := time.Date(2027, 1, 2, 2, 30, 0, 0, time.FixedZone("IST", 19800))
	return booking.Segment{
		Origin: "BOM", Destination: "LHR", DepartsAt: departs, ArrivesAt: departs.Add(9 * time.Hour).UTC(),
		MarketingCarrier: "BA", OperatingCarrier: "AI", FlightNumber: number, Cabin: flightsv1.CabinEconomy,
	}
}

func written(number string) []flightsv1.Segment {
	return []flightsv1.Segment{{
		Origin: "BOM", Destination: "LHR", DepartsAt: "2027-01-02T02:30:00+05:30", ArrivesAt: "2027-01-02T06:00:00Z",
		MarketingCarrier: "BA", OperatingCarrier: "AI", FlightNumber: number, Cabin: flightsv1.CabinEconomy,
	}}
}

// ordering is a ticket whose operation took an offer with a flight, and was sent.
func ordering(out booking.Outcome) lifecycle.Observation {
	o := sent(flightsv1.OperationBook, out)
	o.Ticket.Status.Operation.Segments = written("BA138")
	return o
}

func TestAnOperationKeepsTheFlightsOfItsOffer(t *testing.T) {
	o := unbooked()
	o.Heard.Owner, o.Heard.Verdict.Kind, o.Heard.Room = &lifecycle.Listing{}, lifecycle.VerdictAllowed, room
	o.Heard.Offer = &lifecycle.Quotation{Offer: booking.Offer{ID: "q-1", Price: euros(100), Segments: []booking.Segment{flight("BA138")}}}
	step := lifecycle.Next(o)
	if step.Action != lifecycle.StartOperation {
		t.Fatalf("got %s", step.Action)
	}
	if diff := cmp.Diff(written("BA138"), step.Status.Operation.Segments); diff != "" {
		t.Errorf("flights (-want +got):\n%s", diff)
	}
}

func TestABookingKeepsItsFlightsAndItsPrice(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(*booking.Booking)
		price  string
		flight string
	}{
		"as the provider tells them of the booking": {func(b *booking.Booking) {
			b.Price, b.Segments = euros(90), []booking.Segment{flight("BA140")}
		}, "0.90", "BA140"},
		"as they were offered, where the provider tells none": {func(*booking.Booking) {}, "1.00", "BA138"},
		"as they were offered, where the provider tells more than can be written down": {func(b *booking.Booking) {
			b.Segments = slices.Repeat([]booking.Segment{flight("BA140")}, booking.MaxSegments+1)
		}, "1.00", "BA138"},
	} {
		t.Run(name, func(t *testing.T) {
			o := ordering(booking.Outcome{})
			op := o.Ticket.Status.Operation
			b := booking.Booking{
				ID: "b-1", Names: booking.Names{ClientReference: op.ClientReference, Owner: op.Owner},
				Status: booking.StatusConfirmed, Order: *op.Order,
			}
			c.edit(&b)
			o.Heard.Sent = &booking.Outcome{Kind: booking.Confirmed, Booking: &b}
			got := lifecycle.Next(o).Status.Booking
			if got == nil || got.Price == nil || got.Price.Amount != c.price || got.Carrier != "BA" {
				t.Fatalf("got %+v, want the price %s", got, c.price)
			}
			if diff := cmp.Diff(written(c.flight), got.Segments); diff != "" {
				t.Errorf("flights (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABookingThatIsFoundWithoutItsOperationKeepsWhatTheProviderTells(t *testing.T) {
	o := unbooked()
	o.Heard.Owner = ownListing(&o, booking.StatusConfirmed)
	if got := lifecycle.Next(o).Status.Booking; got == nil || got.Segments != nil || got.Price != nil {
		t.Errorf("got %+v, want a booking without flights and price", got)
	}
	o.Heard.Owner.Bookings[0].Segments = []booking.Segment{flight("BA138")}
	if got := lifecycle.Next(o).Status.Booking; got == nil || !cmp.Equal(written("BA138"), got.Segments) {
		t.Errorf("got %+v, want the flight", got)
	}
}
