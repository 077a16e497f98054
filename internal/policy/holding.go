package policy

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/places"
)

// Holding is a stored ticket as quotas see it: what it asks for, what is booked for it, and what is being booked. A
// ticket holds the largest of these in each bucket, until the provider has confirmed a change and the spec is what is
// booked; from then on it holds the price that was paid, and no longer the price that it allowed.
//
// Whoever counts tickets and whoever admits one must use the same form, or the count is of something else than what was
// admitted. It is made of nothing that changes without the ticket: no labels, no user, no time.
type Holding struct {
	namespace string
	views     []view
}

// view is one form of the ticket.
type view struct {
	input []field // all but parameters
	route error   // why the places can't be resolved; policies that need the route can't be asked then
}

// NewHolding reads a stored ticket. offer is what was written down of the offer that its booking, or its open operation,
// took; nil when none was, and then quotas that are claimed at Booking claim nothing. It fails with *RequestError when
// the ticket can't be read: it can't be counted then, and the caller must not take it for one that claims nothing.
func NewHolding(t *flightsv1.FlightTicket, offer *booking.Offer) (Holding, error) {
	h := Holding{namespace: t.Namespace}
	for _, held := range heldForms(t) {
		v, err := newView(held, offer)
		if err != nil {
			return Holding{}, err
		}
		h.views = append(h.views, v)
	}
	return h, nil
}

// heldForms lists what a ticket holds for. The first is the spec, or what it has become.
func heldForms(t *flightsv1.FlightTicket) []*flightsv1.FlightTicket {
	booked, open := t.Status.Booking, t.Status.Operation
	if booked != nil && open == nil && asBooked(t.Spec, booked.Order) {
		return []*flightsv1.FlightTicket{ordered(t, nil, booked.Price)}
	}
	forms := []*flightsv1.FlightTicket{t}
	if booked != nil {
		forms = append(forms, ordered(t, &booked.Order, booked.Price))
	}
	if open != nil && open.Order != nil {
		forms = append(forms, ordered(t, open.Order, open.Price))
	}
	return forms
}

// asBooked says whether a spec asks for the journey of an order.
func asBooked(spec flightsv1.FlightTicketSpec, order flightsv1.Order) bool {
	route, err := places.Resolve(spec.From, spec.To)
	return err == nil && equality.Semantic.DeepEqual(order, flightsv1.Order{
		Origin: route.Origin.IATA, Destination: route.Destination.IATA, Seats: spec.Number,
		DepartureDate: spec.DepartureDate, ReturnDate: spec.ReturnDate, Cabin: spec.Cabin, Passengers: spec.Passengers,
	})
}

// ordered is a ticket with the journey of an order and the price of a booking in place of what it asks for, as far as
// they are known.
func ordered(t *flightsv1.FlightTicket, order *flightsv1.Order, price *flightsv1.Money) *flightsv1.FlightTicket {
	out := *t
	if order != nil {
		out.Spec.From, out.Spec.To, out.Spec.Number = order.Origin, order.Destination, order.Seats
		out.Spec.DepartureDate, out.Spec.ReturnDate = order.DepartureDate, order.ReturnDate
		out.Spec.Cabin, out.Spec.Passengers = order.Cabin, order.Passengers
	}
	if price != nil {
		out.Spec.MaxPrice = price
	}
	return &out
}

func newView(t *flightsv1.FlightTicket, offer *booking.Offer) (view, error) {
	spec, err := specField(t.Spec)
	if err != nil {
		return view{}, err
	}
	v := view{input: []field{
		object("ticket", object("metadata", identity(t)...), spec),
		requesterField(t),
		object("namespace", text("name", t.Namespace)),
	}}
	route, err := places.Resolve(t.Spec.From, t.Spec.To)
	if err != nil {
		v.route = fmt.Errorf("resolve the route: %w", err)
	} else {
		v.input = append(v.input, routeField(route))
	}
	if offer != nil {
		v.input = append(v.input, object("offer", taken(*offer)...))
	}
	return v, nil
}

// holdings are the tickets of a request as quotas see them.
type holdings struct {
	stage Stage
	// ticket is nil when the ticket holds for its spec alone, which the policy has been asked about already.
	ticket *Holding
	// old is nil when there is none at this stage, or it can't be read: then the ticket is taken for one that holds
	// nothing yet, which can only refuse.
	old *Holding
}

// newHoldings reads the tickets of a request, if a policy asks for them.
func newHoldings(r Request, policies []*held) (holdings, error) {
	h := holdings{stage: r.Stage}
	if !slices.ContainsFunc(policies, func(p *held) bool { return p.quota() != nil }) {
		return h, nil
	}
	if r.Ticket.Status.Booking != nil || r.Ticket.Status.Operation != nil {
		ticket, err := NewHolding(r.Ticket, r.Offer)
		if err != nil {
			return holdings{}, err
		}
		h.ticket = &ticket
	}
	if r.OldTicket != nil && r.Stage == StageAdmission {
		if old, err := NewHolding(r.OldTicket, nil); err == nil {
			h.old = &old
		}
	}
	return h, nil
}
