// Package conformance is the test suite that every booking.Provider has to pass: what each answer, and each way in
// which an answer can fail to come, has to mean.
//
// It knows the port alone. The harness that a protocol's tests hand in knows how to make a call go wrong.
package conformance

import (
	"errors"
	"testing"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// Call is a kind of call that a fault strikes.
type Call string

// The kinds of call.
const (
	CallAccount Call = "Account"
	CallQuote   Call = "Quote"
	CallGet     Call = "Get"
	CallFind    Call = "Find"
	CallBook    Call = "Book"
	CallChange  Call = "Change"
	CallCancel  Call = "Cancel"
)

// Fault is what goes wrong with one call.
type Fault string

// The faults. Those with Before leave the provider as it was; those with After let it do all that was asked.
const (
	Refuse       Fault = "refuse"       // a clear no
	Unauthorized Fault = "unauthorized" // the credential isn't accepted
	Throttle     Fault = "throttle"     // too many calls, with 7 seconds to wait
	Redirect     Fault = "redirect"     // ask another host
	ErrorBefore  Fault = "error-before" // an internal error
	ErrorAfter   Fault = "error-after"
	DropBefore   Fault = "drop-before" // the connection closes without an answer
	DropAfter    Fault = "drop-after"
	Truncate     Fault = "truncate" // done, and the answer breaks off
	Garbage      Fault = "garbage"  // done, and the answer is broken
	HTML         Fault = "html"     // done, and the answer is a web page
	NoID         Fault = "no-id"    // done, and the answer has no id
	Huge         Fault = "huge"     // done, and the answer never seems to end
)

// ThrottleSeconds is how long the fault Throttle asks to wait.
const ThrottleSeconds = 7

// Harness is a provider under test, with a fresh account that has booked nothing.
type Harness struct {
	Provider booking.Provider
	// Stranger is a provider at the same place with the credential of another account.
	Stranger booking.Provider
	// Break makes the next call of a kind go wrong.
	Break func(call Call, fault Fault)
	// Live counts the live bookings of an owner in truth, whatever the provider's reads show.
	Live func(owner string) int
	// Arrived counts the calls of a kind that reached the provider.
	Arrived func(call Call) int
	// Order is one that the provider can book, and Changed is what such a booking can be changed to.
	Order, Changed flightsv1.Order
}

// Names are those of the suite's bookings.
func names() booking.Names {
	return booking.Names{ClientReference: "conformance/uid-1/1", Owner: "conformance/team-a/ticket & co"}
}

// Run runs the suite; start is called for a fresh harness in each test.
func Run(t *testing.T, start func(t *testing.T) Harness) {
	t.Helper()
	for _, suite := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"a booking is made, found, read, changed and cancelled", lifeOfABooking},
		{"an unknown booking is NotFound, and none is found", nothingThere},
		{"another account's booking is NotFound", strangersSeeNothing},
		{"a change of another version is a conflict", staleChange},
		{"a ceiling below the price is refused", ceiling},
	} {
		t.Run(suite.name, func(t *testing.T) { suite.run(t, start(t)) })
	}
	for _, c := range writeCases() {
		for _, call := range []Call{CallBook, CallChange, CallCancel} {
			if c.fault == NoID && call != CallBook {
				continue
			}
			t.Run("write/"+string(call)+"/"+string(c.fault), func(t *testing.T) { brokenWrite(t, start(t), call, c) })
		}
	}
	for _, c := range readCases() {
		for _, call := range []Call{CallAccount, CallQuote, CallGet, CallFind} {
			t.Run("read/"+string(call)+"/"+string(c.fault), func(t *testing.T) { brokenRead(t, start(t), call, c) })
		}
	}
}

// book makes a booking that the rest of a test works on.
func book(t *testing.T, h Harness) booking.Booking {
	t.Helper()
	outcome := h.Provider.Book(t.Context(), bookRequest(t, h))
	if outcome.Kind != booking.Confirmed || outcome.Booking == nil {
		t.Fatalf("book = %s, want Confirmed (failure: %v)", outcome.Kind, outcome.Failure)
	}
	return *outcome.Booking
}

func bookRequest(t *testing.T, h Harness) booking.BookRequest {
	t.Helper()
	offer := quote(t, h, h.Order)
	return booking.BookRequest{Names: names(), Order: h.Order, OfferID: offer.ID, Ceiling: offer.Price}
}

func changeRequest(t *testing.T, h Harness, b booking.Booking) booking.ChangeRequest {
	t.Helper()
	offer := quote(t, h, h.Changed)
	return booking.ChangeRequest{
		BookingID: b.ID, IfVersion: b.Version, Order: h.Changed, OfferID: offer.ID, Ceiling: offer.Price,
	}
}

func quote(t *testing.T, h Harness, order flightsv1.Order) booking.Offer {
	t.Helper()
	offer, err := h.Provider.Quote(t.Context(), order)
	if err != nil {
		t.Fatalf("quote: %v", err)
	}
	if offer.ID == "" || offer.Price.Currency == "" || len(offer.Segments) == 0 || offer.ExpiresAt.IsZero() {
		t.Fatalf("quote = %+v, want id, price, segments and expiry", offer)
	}
	return offer
}

// wantClass fails the test unless the error is a CallError of the class.
func wantClass(t *testing.T, err error, class booking.Class) *booking.CallError {
	t.Helper()
	var e *booking.CallError
	if !errors.As(err, &e) {
		t.Fatalf("error = %v, want a CallError of class %s", err, class)
	}
	if e.Class != class {
		t.Fatalf("class = %s (%v), want %s", e.Class, e, class)
	}
	if e.Code == "" || e.Detail == "" {
		t.Errorf("error = %+v, want a code and a sentence", e)
	}
	return e
}
