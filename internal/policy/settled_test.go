package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// offerQuota charges by everything that a policy may see of an offer, and by what the ticket allows.
const offerQuota = `# METADATA
# title: Offers
# description: Charges by everything that is seen of an offer.
# custom:
#   stage: Booking
package offers

quota contains {"key": key, "scope": "Cluster", "amount": input.offer.price.minor, "limit": 100000000} if {
	input.offer.price.minor >= 0
	some segment in input.offer.segments
	key := concat(" ", [
		input.offer.price.currency, segment.origin, segment.destination, segment.departsAt, segment.arrivesAt,
		segment.marketingCarrier, segment.operatingCarrier, segment.flightNumber, segment.cabin,
	])
}

quota contains {"key": "ceilings", "scope": "Cluster", "amount": input.ticket.spec.maxPrice.minor, "limit": 100000000} if {
	input.offer.price.minor >= 0
	input.ticket.spec.maxPrice.minor >= 0
}

quota contains {"key": "offers", "scope": "Cluster", "amount": 1, "limit": 100000000} if input.offer.price.minor >= 0
`

// mumbaiToNewYork departs on another day in Mumbai than in UTC, and changes planes.
func mumbaiToNewYork() *booking.Offer {
	mumbai, east := time.FixedZone("IST", 19800), time.FixedZone("", -5*3600)
	departs := time.Date(2028, 1, 1, 2, 30, 0, 123456789, mumbai)
	return &booking.Offer{
		ID: "q-1", Price: money.Amount{Minor: 91240, Currency: "EUR"}, ExpiresAt: departs,
		Segments: []booking.Segment{
			{
				Origin: "BOM", Destination: "LHR", DepartsAt: departs, ArrivesAt: departs.Add(9 * time.Hour).In(time.UTC),
				MarketingCarrier: "BA", OperatingCarrier: "AI", FlightNumber: "BA138", Cabin: flightsv1.CabinEconomy,
			},
			{
				Origin: "LHR", Destination: "JFK", DepartsAt: departs.Add(12 * time.Hour).In(time.UTC), ArrivesAt: departs.Add(19 * time.Hour).In(east),
				MarketingCarrier: "BA", OperatingCarrier: "BA", FlightNumber: "BA 177",
			},
		},
	}
}

// stored is a ticket as it comes back from the API server.
func stored(t *testing.T, ticket *flightsv1.FlightTicket) *flightsv1.FlightTicket {
	t.Helper()
	text, err := json.Marshal(ticket)
	if err != nil {
		t.Fatal(err)
	}
	var back flightsv1.FlightTicket
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return &back
}

// What the second gate asks with the offer is, to the unit, what the stored ticket holds while its operation is open and
// once it is booked at the price that was quoted.
func TestAStoredTicketHoldsWhatItsOfferClaimed(t *testing.T) {
	e := quotaEngine(t)
	mustSet(t, e, regoPolicy("offers", offerQuota))
	ceiling := &flightsv1.Money{Amount: "1000", Currency: "EUR"}
	for name, change := range map[string]func(*flightsv1.FlightTicket){
		"a ticket with a ceiling":    func(ticket *flightsv1.FlightTicket) { ticket.Spec.MaxPrice = ceiling },
		"a ticket without a ceiling": func(*flightsv1.FlightTicket) {},
		"a ticket with a day":        func(ticket *flightsv1.FlightTicket) { ticket.Spec.DepartureDate = "2028-01-01" },
		"a change of a booking": func(ticket *flightsv1.FlightTicket) {
			ticket.Spec.Number = 3
			ticket.Status.Booking = &flightsv1.BookingStatus{
				Order: flightsv1.Order{Origin: "BOM", Destination: "JFK", Seats: 5, DepartureDate: "2028-01-09"},
				Price: &flightsv1.Money{Amount: "2000", Currency: "EUR"},
				Segments: []flightsv1.Segment{{
					DepartsAt: "2028-01-09T08:00:00+05:30", MarketingCarrier: "ZZ", FlightNumber: "ZZ1",
				}},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := request()
			r.Stage, r.Offer = StageBooking, mumbaiToNewYork()
			r.Ticket.Spec.From, r.Ticket.Spec.To = "Mumbai", "JFK"
			change(r.Ticket)
			asked := claimsOf(t, e, r.Ticket, r.Offer)
			if keys := keysOf(asked); !strings.Contains(keys, "BA BA138 2028-01-01") || !strings.Contains(keys, "BA177 ") && !strings.Contains(keys, "BA 177 ") {
				t.Fatalf("the offer claims %s", keys)
			}
			d := decide(t, e, r)
			decided := slices.Concat(d.Claims, d.BookingClaims)
			sortClaims(decided)
			if diff := cmp.Diff(asked, decided); diff != "" {
				t.Errorf("the policies decide on other claims (-asked +decided):\n%s", diff)
			}
			open := stored(t, taking(r.Ticket, *r.Offer))
			if diff := cmp.Diff(asked, claimsOf(t, e, open, nil)); diff != "" {
				t.Errorf("with the operation open (-asked +stored):\n%s", diff)
			}
			booked, op := open.DeepCopy(), open.Status.Operation
			booked.Status = flightsv1.FlightTicketStatus{Booking: &flightsv1.BookingStatus{Order: *op.Order, Price: op.Price, Segments: op.Segments}}
			held := claimsOf(t, e, stored(t, booked), nil)
			contains(t, "what it claims once it is booked was asked for", asked, held)
			contains(t, "the ticket holds what is booked", held, bookedClaims(t, e, booked))
		})
	}
}

// bookedClaims are those of what is booked for a ticket.
func bookedClaims(t *testing.T, e *Engine, ticket *flightsv1.FlightTicket) []quota.Claim {
	t.Helper()
	h, err := NewBookedHolding(ticket)
	if err != nil {
		t.Fatal(err)
	}
	return claimsIn(t, e, h)
}

// contains checks that each of the smaller claims is at most one of the larger.
func contains(t *testing.T, what string, larger, smaller []quota.Claim) {
	t.Helper()
	if len(smaller) == 0 {
		t.Errorf("%s: nothing is claimed", what)
	}
	for _, c := range smaller {
		if !slices.ContainsFunc(larger, func(l quota.Claim) bool { return l.Bucket() == c.Bucket() && l.Amount >= c.Amount }) {
			t.Errorf("%s: %+v is not", what, c)
		}
	}
}

func keysOf(claims []quota.Claim) string {
	var keys []string
	for _, c := range claims {
		keys = append(keys, c.Key)
	}
	return strings.Join(keys, "; ")
}

// What was stored before flights were kept is counted by its price, and by no flight.
func TestATicketThatWasBookedBeforeFlightsWereKeptIsCountedByItsPrice(t *testing.T) {
	e := NewEngine(RuleQuota)
	mustSet(t, e, regoPolicy("offers", offerQuota))
	mustSet(t, e, libraryPolicy("quota-travellers-per-flight"))
	ticket := request().Ticket
	if claims := claimsOf(t, e, ticket, nil); len(claims) != 0 {
		t.Errorf("without an offer it claims %+v", claims)
	}
	ticket.Status.Booking = &flightsv1.BookingStatus{
		Order: *orderOf(ticket.Spec), Price: &flightsv1.Money{Amount: "800", Currency: "EUR"},
	}
	claims := claimsOf(t, e, stored(t, ticket), nil)
	if keys := keysOf(claims); len(claims) != 2 || !strings.Contains(keys, "ceilings") || !strings.Contains(keys, "offers") {
		t.Errorf("it claims %s", keys)
	}
}

func TestATicketWhosePriceCannotBeReadIsNotCountedAsNone(t *testing.T) {
	ticket := request().Ticket
	ticket.Status.Operation = &flightsv1.OperationStatus{Order: &flightsv1.Order{}, Price: &flightsv1.Money{Amount: "much", Currency: "EUR"}}
	if _, err := NewHolding(ticket, nil); err == nil {
		t.Error("an operation whose price can't be read is taken for one that claims nothing")
	}
}

func TestWhatIsBookedHoldsNothingWithoutABooking(t *testing.T) {
	if claims := bookedClaims(t, quotaEngine(t), request().Ticket); len(claims) != 0 {
		t.Errorf("got %+v", claims)
	}
}
