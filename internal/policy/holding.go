package policy

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
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

// NewHolding reads a stored ticket. With an offer it reads the ticket as it is once an operation that takes the offer is
// written down: what is asked before is what is counted afterwards. Quotas that are claimed at Booking claim nothing for
// what no offer is known of. It fails with *RequestError when the ticket can't be read, and then no policy can count it until
// it changes.
func NewHolding(t *flightsv1.FlightTicket, offer *booking.Offer) (Holding, error) {
	if offer != nil {
		t = taking(t, *offer)
	}
	return newHolding(t, heldForms(t))
}

// NewBookedHolding reads what is booked for a stored ticket, and nothing else of it; it holds nothing without a booking. A
// claim that is not above this one is no raise.
func NewBookedHolding(t *flightsv1.FlightTicket) (Holding, error) {
	if t.Status.Booking == nil {
		return newHolding(t, nil)
	}
	return newHolding(t, []form{bookedForm(t)})
}

func newHolding(t *flightsv1.FlightTicket, forms []form) (Holding, error) {
	h := Holding{namespace: t.Namespace}
	for _, held := range forms {
		v, err := newView(held)
		if err != nil {
			return Holding{}, err
		}
		h.views = append(h.views, v)
	}
	return h, nil
}

// form is one of the things that a ticket holds for, and what is known of the offer that it took.
type form struct {
	ticket   *flightsv1.FlightTicket
	price    *flightsv1.Money
	segments []flightsv1.Segment
}

// offered says whether anything is known of an offer. Tickets that were stored before flights were kept have a price.
func (f form) offered() bool { return f.price != nil || len(f.segments) > 0 }

// taking is a ticket with an operation that takes an offer, as it will be written down.
func taking(t *flightsv1.FlightTicket, offer booking.Offer) *flightsv1.FlightTicket {
	out := *t
	out.Status.Operation = &flightsv1.OperationStatus{
		Order: orderOf(t.Spec), Price: booking.WrittenPrice(offer.Price), Segments: booking.Written(offer.Segments),
	}
	return &out
}

// heldForms lists what a ticket holds for. The first is the spec, or what it has become.
func heldForms(t *flightsv1.FlightTicket) []form {
	booked, open := t.Status.Booking, t.Status.Operation
	asked := orderOf(t.Spec)
	asBooked := booked != nil && equality.Semantic.DeepEqual(&booked.Order, asked)
	if asBooked && open == nil {
		return []form{{ordered(t, nil, booked.Price), booked.Price, booked.Segments}}
	}
	spec := form{ticket: t}
	switch {
	case open != nil && equality.Semantic.DeepEqual(open.Order, asked):
		spec.price, spec.segments = open.Price, open.Segments
	case asBooked:
		spec.price, spec.segments = booked.Price, booked.Segments
	}
	forms := []form{spec}
	if booked != nil {
		forms = append(forms, bookedForm(t))
	}
	if open != nil && open.Order != nil {
		forms = append(forms, form{ordered(t, open.Order, open.Price), open.Price, open.Segments})
	}
	return forms
}

func bookedForm(t *flightsv1.FlightTicket) form {
	b := t.Status.Booking
	return form{ordered(t, &b.Order, b.Price), b.Price, b.Segments}
}

// orderOf is the order that a spec asks for; nil if its places can't be resolved.
func orderOf(spec flightsv1.FlightTicketSpec) *flightsv1.Order {
	route, err := places.Resolve(spec.From, spec.To)
	if err != nil {
		return nil
	}
	return &flightsv1.Order{
		Origin: route.Origin.IATA, Destination: route.Destination.IATA, Seats: spec.Number,
		DepartureDate: spec.DepartureDate, ReturnDate: spec.ReturnDate, Cabin: spec.Cabin, Passengers: spec.Passengers,
	}
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

func newView(f form) (view, error) {
	t := f.ticket
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
	if f.offered() {
		price, err := f.amount()
		if err != nil {
			return view{}, err
		}
		v.input = append(v.input, object("offer", taken(price, f.segments)...))
	}
	return v, nil
}

// amount is the price of the offer; zero where none is known.
func (f form) amount() (money.Amount, error) {
	if f.price == nil {
		return money.Amount{}, nil
	}
	price, err := money.Parse(f.price.Amount, f.price.Currency)
	if err != nil {
		return money.Amount{}, &RequestError{"status", fmt.Errorf("the price that was agreed: %w", err)}
	}
	return price, nil
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
	if r.Ticket.Status.Booking != nil || r.Ticket.Status.Operation != nil || r.Offer != nil {
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
