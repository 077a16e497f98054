package crash

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

// The chapters of a tale.
const (
	creating   = "create"
	changing   = "change"
	cancelling = "cancel"
)

// tale is what a user, an admin and an airline do. It is told to a controller that dies in the middle, and its end must be
// the same.
type tale struct {
	name string
	// arrange is done before the controller starts; may be nil.
	arrange func(*run)
	// play does the rest, and ends with the ticket gone. It returns early where the run has come to rest before.
	play func(*run)
	// histories are the ends that the ledger may have: what happened to each booking that was ever made.
	histories [][]string
}

const ticketName = "trip"

func tales() []tale {
	booked := [][]string{{"Book", "Cancel"}}
	return []tale{
		{name: "whole-life", play: wholeLife, histories: [][]string{{"Book", "Change", "Cancel"}}},
		{name: "there-and-back", play: thereAndBack, histories: booked},
		{name: "deleted-while-it-books", arrange: deleteAtBook, play: deletedWhileItBooks, histories: [][]string{{"Book", "Cancel"}, nil}},
		{name: "refused-then-edited", arrange: refuseBooks, play: refusedThenEdited, histories: booked},
		{name: "credential-refused-first", arrange: wrongToken, play: credentialRefusedFirst, histories: booked},
	}
}

func taleNamed(name string) tale {
	all := tales()
	return all[slices.IndexFunc(all, func(t tale) bool { return t.name == name })]
}

func wholeLife(r *run) {
	r.create()
	if !r.booked(2) {
		return
	}
	r.turn(changing)
	r.edit(`{"spec":{"number":3}}`)
	if !r.booked(3) {
		return
	}
	r.leave()
}

func thereAndBack(r *run) {
	r.create()
	if r.booked(2) {
		r.leave()
	}
}

func deleteAtBook(r *run) { r.script.when("Book", r.remove) }

func deletedWhileItBooks(r *run) {
	r.create()
	r.gone()
}

func refuseBooks(r *run) {
	r.Inject(simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectRefuse})
}

func refusedThenEdited(r *run) {
	r.create()
	if !r.until("refused", func(t *flightsv1.FlightTicket) bool { return reasonOf(t) == flightsv1.ReasonBookingRefused }) {
		return
	}
	r.Simulator.ClearFaults()
	r.edit(`{"spec":{"number":3}}`)
	if r.booked(3) {
		r.leave()
	}
}

func wrongToken(r *run) { r.StoreToken(r.Token() + "-wrong") }

func credentialRefusedFirst(r *run) {
	r.create()
	if !r.until("waiting for the provider", func(t *flightsv1.FlightTicket) bool {
		return reasonOf(t) == flightsv1.ReasonProviderNotReady
	}) {
		return
	}
	r.ProviderIs(flightsv1.ReasonCredentialsRefused)
	r.StoreToken(r.Token())
	if r.booked(2) {
		r.leave()
	}
}

// create makes the ticket, as kubectl would.
func (r *run) create() {
	r.Helper()
	r.createNamed(ticketName)
}

func (r *run) createNamed(name string) {
	r.Helper()
	ticket := r.Ticket(name)
	ticket.Spec = flightsv1.FlightTicketSpec{
		From: "Mumbai", To: "London", Number: 2, ProviderRef: &flightsv1.ProviderReference{Name: r.Provider.Name},
	}
	if err := r.Client.Create(r.Context, ticket); err != nil {
		r.Fatal(err)
	}
}

func (r *run) edit(patch string) {
	r.Helper()
	r.Patch(r.Ticket(ticketName), patch)
}

// remove deletes the ticket. It is called on goroutines of proxies too.
func (r *run) remove() {
	if err := r.Client.Delete(r.Context, r.Ticket(ticketName)); err != nil {
		r.Errorf("delete the ticket: %v", err)
	}
}

// leave deletes the ticket and waits until it is gone.
func (r *run) leave() {
	r.turn(cancelling)
	r.remove()
	r.gone()
}

// booked waits until the ticket is booked as its spec asks, and judges the ledger then.
func (r *run) booked(seats int32) bool {
	ready := r.until("booked", func(t *flightsv1.FlightTicket) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, flightsv1.ConditionReady) &&
			t.Status.ObservedGeneration == t.Generation && t.Status.Booking != nil && t.Status.Booking.Order.Seats == seats
	})
	if !ready {
		return false
	}
	ticket, _, _ := r.ticket.look()
	live := r.Simulator.LiveBookings()
	if len(live) == 0 || live[0].Id != ticket.Status.Booking.ID || live[0].Order.Seats != seats {
		r.fail(lost, "the ticket is said to be booked with %d seats as %s, but the ledger holds %+v", seats, ticket.Status.Booking.ID, live)
	}
	return true
}

// reasonOf is that of the condition Ready, if it speaks of the ticket as it stands.
func reasonOf(t *flightsv1.FlightTicket) string {
	ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.ObservedGeneration != t.Generation {
		return ""
	}
	return ready.Reason
}
