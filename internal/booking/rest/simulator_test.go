package rest_test

import (
	"context"
	"encoding/pem"
	"net/http/httptest"
	"testing"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/booking/rest"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

const (
	testToken   = "canary-3Zq8vTt0kE"
	testAccount = "acct-7"
)

// testOrder is the journey of the README's ticket.
func testOrder() flightsv1.Order {
	return flightsv1.Order{Origin: "BOM", Destination: "LON", Seats: 2}
}

// start serves a simulator over TLS on loopback for one test.
func start(t *testing.T, o simulator.Options) (*simulator.Simulator, *httptest.Server) {
	t.Helper()
	if o.Tokens == nil {
		o.Tokens = map[string]string{testToken: testAccount}
	}
	sim := simulator.New(o)
	server := httptest.NewTLSServer(sim.Handler())
	t.Cleanup(func() {
		sim.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return sim, server
}

// dial returns a Provider for a server; edit may change its options.
func dial(t *testing.T, server *httptest.Server, edit func(*rest.Options)) *rest.Provider {
	t.Helper()
	o := rest.Options{
		Endpoint: server.URL, Token: testToken, AllowPrivate: true, Timeout: 10 * time.Second,
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	if edit != nil {
		edit(&o)
	}
	p, err := rest.New(o)
	if err != nil {
		t.Fatalf("make provider: %v", err)
	}
	return p
}

// request asks for an offer and makes the book request that accepts it.
func request(t *testing.T, p booking.Provider, reference string) booking.BookRequest {
	t.Helper()
	offer, err := p.Quote(context.Background(), testOrder())
	if err != nil {
		t.Fatalf("quote: %v", err)
	}
	return booking.BookRequest{
		Names: booking.Names{ClientReference: reference, Owner: "test/team-a/my-flight-ticket"},
		Order: testOrder(), OfferID: offer.ID, Ceiling: offer.Price, IdempotencyKey: "key-" + reference,
	}
}

func TestATicketIsBookedChangedAndCancelled(t *testing.T) {
	sim, server := start(t, simulator.Options{})
	p := dial(t, server, nil)
	ctx := context.Background()
	account, err := p.Account(ctx)
	if err != nil || account.ID != testAccount {
		t.Fatalf("account = %v, %v", account, err)
	}
	r := request(t, p, "ref-1")
	booked := p.Book(ctx, r)
	if booked.Kind != booking.Confirmed || booked.Booking.Names != r.Names || booked.Booking.Reference == "" {
		t.Fatalf("book = %+v, failure %v", booked, booked.Failure)
	}
	id := booked.Booking.ID
	order := testOrder()
	order.Seats = 3
	offer, err := p.Quote(ctx, order)
	if err != nil {
		t.Fatalf("quote the change: %v", err)
	}
	change := booking.ChangeRequest{
		BookingID: id, IfVersion: booked.Booking.Version, Order: order, OfferID: offer.ID, Ceiling: offer.Price,
	}
	changed := p.Change(ctx, change)
	if changed.Kind != booking.Confirmed || changed.Booking.Order.Seats != 3 {
		t.Fatalf("change = %+v, failure %v", changed, changed.Failure)
	}
	if again := p.Change(ctx, change); again.Kind != booking.Rejected || again.Failure.Class != booking.ClassConflict {
		t.Errorf("change with the old version = %+v, want a conflict", again)
	}
	cancelled := p.Cancel(ctx, booking.CancelRequest{BookingID: id})
	if cancelled.Kind != booking.Confirmed || cancelled.Booking.Status != booking.StatusCancelled {
		t.Fatalf("cancel = %+v, failure %v", cancelled, cancelled.Failure)
	}
	if again := p.Cancel(ctx, booking.CancelRequest{BookingID: id}); again.Kind != booking.Confirmed {
		t.Errorf("cancel again = %+v, want Confirmed", again)
	}
	found, err := p.FindByOwner(ctx, r.Names.Owner)
	if err != nil || len(found) != 1 || found[0].Status != booking.StatusCancelled {
		t.Errorf("find by owner = %+v, %v", found, err)
	}
	if live := sim.LiveBookings(); len(live) != 0 {
		t.Errorf("live bookings = %v, want none", live)
	}
}
