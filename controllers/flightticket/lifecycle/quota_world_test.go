package lifecycle_test

import (
	"fmt"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
)

// modelQuota is one quota of seats that the ticket is charged to, beside other tickets.
type modelQuota struct {
	// limit is how many seats there may be, others how many other tickets have that come first.
	limit, others int32
	// offers says that the seats count by the offer: before there is one, the quota says nothing.
	offers bool
	// counting and broken are a quota that can't tell now, staying one that doesn't let the ticket go.
	counting, broken, staying bool
}

// heardAt is what a pass heard that waits for a quota, and of which version of the ticket.
type heardAt struct {
	version int
	heard   lifecycle.Heard
}

// keep remembers what was heard for the next pass of a ticket that waits for its quotas.
func (w *world) keep(step lifecycle.Step, o lifecycle.Observation, at int) {
	if w.kept = (heardAt{}); step.Keeps() && o.Ticket.Status.Operation == nil {
		w.kept = heardAt{at, o.Heard}
	}
}

// goOn takes up what was remembered of this version of the ticket.
func (w *world) goOn(o *lifecycle.Observation, at int) {
	if w.kept.version == at {
		o.Heard = w.kept.heard.Kept(w.now())
	}
	w.kept = heardAt{}
}

func (w *world) askQuotas(o *lifecycle.Observation, step lifecycle.Step) {
	switch step.Action {
	case lifecycle.CheckQuotas:
		o.Heard.Quotas = w.quotaAnswer(o, false)
	case lifecycle.HoldQuotas:
		o.Heard.Hold = w.quotaAnswer(o, true)
	default:
		o.Heard.Departure = &lifecycle.Departure{}
		if w.quota.staying || w.crashes && w.choose("does a quota keep the ticket", 4) == 1 {
			o.Heard.Departure.Missing = "quota \"seats\" of policy seats is being counted"
		}
	}
}

func (w *world) quotaAnswer(o *lifecycle.Observation, offer bool) lifecycle.QuotaAnswer {
	q, wanted := w.quota, o.Ticket.Wanted.Seats
	fault := 0
	if w.crashes {
		fault = w.choose("can the quotas tell", 25)
	}
	switch {
	case q.broken || fault == 1:
		return lifecycle.QuotaAnswer{Kind: lifecycle.QuotaError, Message: "the quotas of the ticket could not be asked: no answer"}
	case q.offers && !offer:
		return lifecycle.QuotaAnswer{Kind: lifecycle.QuotaRoom}
	case q.counting || fault == 2:
		return lifecycle.QuotaAnswer{Kind: lifecycle.QuotaCounting, Message: "quota \"seats\" of policy seats is being counted"}
	case !w.quota.fits(wanted, o.Ticket.Status.Booking):
		return lifecycle.QuotaAnswer{Kind: lifecycle.QuotaFull, Message: fmt.Sprintf(
			"quota \"seats\" of policy seats has no room: requested %d, limit %d, used %d; it never resets", wanted, q.limit, q.others)}
	default:
		return lifecycle.QuotaAnswer{Kind: lifecycle.QuotaRoom}
	}
}

// fits says whether seats may be booked: what a booking holds already needs no room.
func (q modelQuota) fits(seats int32, booked *flightsv1.BookingStatus) bool {
	raise := booked == nil || seats > booked.Order.Seats
	return !raise || q.others+seats <= q.limit
}

// mayCost is told of an operation that was written down. From here on it is sent.
func (w *world) mayCost(step lifecycle.Step) {
	op, booked := step.Status.Operation, step.Status.Booking
	if step.Action != lifecycle.StartOperation || op.Kind == flightsv1.OperationCancel {
		return
	}
	if !w.quota.fits(op.Order.Seats, booked) || w.quota.counting || w.quota.broken {
		w.beyond = append(w.beyond, fmt.Sprintf("a %s operation of %d seats was written down with %+v", op.Kind, op.Order.Seats, w.quota))
	}
}

// mayGo is told of a finalizer that is put on or taken off.
func (w *world) mayGo(o *lifecycle.Observation, step lifecycle.Step) {
	if gone := o.Heard.Departure; step.Action == lifecycle.RemoveFinalizer && (w.quota.staying || gone == nil || gone.Missing != "") {
		w.beyond = append(w.beyond, "the ticket went before its quotas had kept what outlives it")
	}
}
