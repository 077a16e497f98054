package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
)

// odd is a confirmed booking whose words fit into no status.
func odd() string {
	long := strings.Repeat("x", 5000)
	passengers := []string{
		`{"givenName":"Ada","familyName":"Lovelace","birthDate":"1815-13-40","email":"nowhere","phone":"0044","title":"Countess","gender":"f"}`,
		`{"givenName":"","familyName":"Nobody"}`, fmt.Sprintf(`{"givenName":%q,"familyName":"Long"}`, long),
	}
	for range 9 {
		passengers = append(passengers, `{"givenName":"One","familyName":"Tomany"}`)
	}
	segment := `{"origin":"BOM","destination":"LHR","departsAt":"2027-01-01T09:00:00Z","arrivesAt":"2027-01-01T14:00:00Z",` +
		`"marketingCarrier":%q,"flightNumber":"ZZ138"}`
	return fmt.Sprintf(`{"id":"bk-1","clientReference":"ref-1","owner":"owner-1","status":"confirmed","version":"\"1\"",
		"order":{"origin":"Bombay","destination":"LON","seats":2,"departureDate":"2027-02-30","returnDate":"soon","cabin":"Deck",
		"passengers":[%s]},"price":{"amount":"9000000000000000","currency":"JPY"},"reference":"K7 QX",
		"segments":[%s,%s],"createdAt":"2026-11-30T12:00:00Z"}`,
		strings.Join(passengers, ","), fmt.Sprintf(segment, long), fmt.Sprintf(segment, "ZZ"))
}

func TestABookingOfOddWordsIsKnownByWhatCanBeWrittenDown(t *testing.T) {
	got := dial(t, serveCanned(t, canned{201, asJSON, odd()}), nil).Book(t.Context(), cannedBook())
	if got.Kind != booking.Confirmed || got.Booking.ID != "bk-1" {
		t.Fatalf("got %+v (%v), want the booking: it exists and must be found and cancelled", got, got.Failure)
	}
	order := flightsv1.Order{Destination: "LON", Seats: 2, Passengers: []flightsv1.Passenger{{GivenName: "Ada", FamilyName: "Lovelace"}}}
	for range 4 {
		order.Passengers = append(order.Passengers, flightsv1.Passenger{GivenName: "One", FamilyName: "Tomany"})
	}
	if diff := cmp.Diff(order, got.Booking.Order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if got.Booking.Price != (money.Amount{}) || got.Booking.Reference != "" {
		t.Errorf("price %v and reference %q fit into no status", got.Booking.Price, got.Booking.Reference)
	}
	if len(got.Booking.Segments) != 0 {
		t.Errorf("segments = %+v, though one of them is not of the contract's form: quotas would take a part for the whole", got.Booking.Segments)
	}
}

func TestAQuoteThatAPolicyCannotReadIsNone(t *testing.T) {
	flights := func(n int, carrier, amount string) string {
		flight := fmt.Sprintf(`{"origin":"BOM","destination":"LHR","departsAt":"2027-01-01T09:00:00Z","arrivesAt":"2027-01-01T14:00:00Z",
			"marketingCarrier":%q,"flightNumber":"ZZ138"}`, carrier)
		return fmt.Sprintf(`{"quotes":[{"id":"q-1","price":{"amount":%q,"currency":"EUR"},"carriers":["ZZ"],"segments":[%s],
			"expiresAt":"2999-01-01T00:00:00Z"}]}`, amount, strings.Join(slices.Repeat([]string{flight}, n), ","))
	}
	quote := func(carrier, amount string) string { return flights(booking.MaxSegments, carrier, amount) }
	for name, body := range map[string]string{
		"a carrier without a code": quote("Zed Air", "1"), "no carrier": quote("", "1"),
		"a price that can't be written down": quote("ZZ", "9000000000000"),
		"more flights than can be":           flights(booking.MaxSegments+1, "ZZ", "1"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dial(t, serveCanned(t, canned{200, asJSON, body}), nil).Quote(t.Context(), testOrder())
			if e := callError(t, err); e.Code != booking.CodeInvalidAnswer {
				t.Errorf("got %v, want an invalid answer", e)
			}
		})
	}
	if _, err := dial(t, serveCanned(t, canned{200, asJSON, quote("ZZ", "1")}), nil).Quote(t.Context(), testOrder()); err != nil {
		t.Errorf("a good quote: %v", err)
	}
}
