package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// A booked ticket holds what was paid once the spec is what is booked, and until then the larger.
func TestATicketHoldsTheLargerOfWhatItAsksForAndWhatIsBooked(t *testing.T) {
	e := NewEngine(RuleQuota)
	mustSet(t, e, libraryPolicy("quota-budget-per-cost-center"))
	eur := func(amount string) *flightsv1.Money { return &flightsv1.Money{Amount: amount, Currency: "EUR"} }
	order := flightsv1.Order{Origin: "BOM", Destination: "LHR", Seats: 2, DepartureDate: "2027-12-31"}
	later := order
	later.DepartureDate = "2028-01-02"
	booked := &flightsv1.BookingStatus{Order: order, Price: eur("800")}
	for _, c := range []struct {
		name   string
		change func(*flightsv1.FlightTicket)
		want   string
	}{
		{"what it may cost until it is booked", func(*flightsv1.FlightTicket) {}, "2027-12:100000"},
		{"what it may cost while it is being booked", func(t *flightsv1.FlightTicket) {
			t.Status.Operation = &flightsv1.OperationStatus{Order: &order, Price: eur("900")}
		}, "2027-12:100000"},
		{"what was paid once it is booked", func(t *flightsv1.FlightTicket) { t.Status.Booking = booked }, "2027-12:80000"},
		{"what it may cost where no price is known", func(t *flightsv1.FlightTicket) {
			t.Status.Booking = &flightsv1.BookingStatus{Order: order}
		}, "2027-12:100000"},
		{"the larger after an edit", func(t *flightsv1.FlightTicket) { t.Status.Booking, t.Spec.Number = booked, 3 }, "2027-12:100000"},
		{"what was paid after an edit that lowers the price", func(t *flightsv1.FlightTicket) {
			t.Status.Booking, t.Spec.Number, t.Spec.MaxPrice = booked, 1, eur("500")
		}, "2027-12:80000"},
		{"two months while it is moved from one to the other", func(t *flightsv1.FlightTicket) {
			t.Status.Booking, t.Spec.DepartureDate = booked, "2028-01-02"
		}, "2027-12:80000 2028-01:100000"},
		{"the dearer of two while a change is open", func(t *flightsv1.FlightTicket) {
			t.Status.Booking = booked
			t.Status.Operation = &flightsv1.OperationStatus{Order: &later, Price: eur("1100")}
		}, "2027-12:100000 2028-01:110000"},
		{"another cost centre's at once", func(t *flightsv1.FlightTicket) { t.Status.Booking, t.Spec.CostCenter = booked, "none" }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ticket := request().Ticket
			ticket.Spec = flightsv1.FlightTicketSpec{From: "BOM", To: "LHR", Number: 2, DepartureDate: "2027-12-31", CostCenter: "4711", MaxPrice: eur("1000")}
			c.change(ticket)
			before := ticket.DeepCopy()
			claims := claimsOf(t, e, ticket, nil)
			var got []string
			for _, claim := range claims {
				got = append(got, fmt.Sprintf("%s:%d", strings.TrimPrefix(claim.Key, "4711 "), claim.Amount))
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			r := request()
			r.Ticket, r.OldTicket, r.Operation = ticket, ticket, flightsv1.OperationUpdate
			d := decide(t, e, r)
			if !cmp.Equal(claims, d.Claims) || !cmp.Equal(claims, d.OldClaims) {
				t.Errorf("it holds %+v, and at admission it claims %+v after %+v", claims, d.Claims, d.OldClaims)
			}
			if diff := cmp.Diff(before, ticket); diff != "" {
				t.Errorf("the ticket was changed: %s", diff)
			}
		})
	}
}

func TestATicketThatCannotBeCountedIsAnError(t *testing.T) {
	e := quotaEngine(t)
	unreadable := request().Ticket
	unreadable.Spec.MaxPrice = &flightsv1.Money{Amount: "none", Currency: "EUR"}
	var bad *RequestError
	if _, err := NewHolding(unreadable, nil); !errors.As(err, &bad) || bad.Field != "spec.maxPrice" {
		t.Errorf("got %v", err)
	}
	nowhere := request().Ticket
	nowhere.Spec.To = "a place that was in an older table"
	h, err := NewHolding(nowhere, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range e.Quotas() {
		_, err := q.Claims(t.Context(), h)
		if routed := q.Policy() == "quota-seats-per-route-day"; routed != (err != nil) {
			t.Errorf("%s: %v", q.Policy(), err)
		}
	}
}

func TestACountEndsWithItsContextAndItsTime(t *testing.T) {
	slow := strings.Replace(poison, `deny contains "never"`, `quota contains {"key": "k", "scope": "Cluster", "amount": 1, "limit": 1}`, 1)
	e := NewEngine(RuleQuota)
	mustSet(t, e, regoPolicy("a", slow))
	e.limits.policy = time.Millisecond
	q := e.Quotas()[0]
	h, err := NewHolding(requestForFive().Ticket, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range maxStrikes {
		if _, err := q.Claims(t.Context(), h); !errors.Is(err, errTimeout) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := q.Claims(t.Context(), h); err == nil || !strings.Contains(err.Error(), "quarantine") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	mustSet(t, e, regoPolicy("a", slow+"\n"))
	if _, err := e.Quotas()[0].Claims(ctx, h); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
