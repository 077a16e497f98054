package lifecycle

import (
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// Action is one thing to do. The set is closed: who carries actions out must handle each.
type Action string

const (
	// AddFinalizer puts the booking finalizer on.
	AddFinalizer Action = "AddFinalizer"
	// LookupOwner lists the bookings under the owner name in Step.Reference.
	LookupOwner Action = "LookupOwner"
	// Quote asks for an offer for the wanted order.
	Quote Action = "Quote"
	// CheckQuotas asks whether the ticket's quotas have room, before an offer is asked for. It writes nothing, and leaves out
	// the quotas that count by the offer.
	CheckQuotas Action = "CheckQuotas"
	// Gate asks the policies, with the offer just heard.
	Gate Action = "Gate"
	// Admit asks the provider's limiter and breaker for the room that the operation's call will need. It is asked before
	// the operation is written down: one that is written must not wait for its turn while its time to be sent runs out.
	Admit Action = "Admit"
	// HoldQuotas asks the ticket's quotas with the offer, as the last thing before the operation is written down. An entry is
	// written for what only the offer tells.
	HoldQuotas Action = "HoldQuotas"
	// StartOperation writes Step.Status, which holds a new operation. A conflict ends the pass.
	StartOperation Action = "StartOperation"
	// Send sends the open operation, once.
	Send Action = "Send"
	// Find lists the bookings under the client reference in Step.Reference.
	Find Action = "Find"
	// ReadBooking reads the booking whose id is in Step.Reference.
	ReadBooking Action = "ReadBooking"
	// CheckHolders finds out, past the cache, which other ticket of the namespace holds the booking just read. Until the pass
	// is over no other ticket may be asked the same for: two could else adopt one booking.
	CheckHolders Action = "CheckHolders"
	// Record writes Step.Status, which holds what exists now at the provider.
	Record Action = "Record"
	// CloseOperation writes Step.Status: the open operation is over and nothing came of it.
	CloseOperation Action = "CloseOperation"
	// Depart asks whether all of the ticket that must outlive it is in its quotas.
	Depart Action = "Depart"
	// RemoveFinalizer takes the booking finalizer off.
	RemoveFinalizer Action = "RemoveFinalizer"
	// Wait writes Step.Status if it differs, and ends the pass until Step.After has gone by or something happens.
	Wait Action = "Wait"
	// Nothing writes Step.Status if it differs, and ends the pass until something happens.
	Nothing Action = "Nothing"
)

// Actions lists the closed set, in the order of a ticket's life.
func Actions() []Action {
	return []Action{
		AddFinalizer, LookupOwner, CheckQuotas, Quote, Gate, Admit, HoldQuotas, StartOperation, Send, Find, ReadBooking,
		CheckHolders, Record, CloseOperation, Depart, RemoveFinalizer, Wait, Nothing,
	}
}

// Step is what Next decides.
type Step struct {
	Action Action
	// Reference is what LookupOwner, Find and ReadBooking ask for.
	Reference string
	// Operation is what Gate asks the policies about: CREATE before a booking, UPDATE before a change.
	Operation flightsv1.Operation
	// After is how long Wait waits, and how long a ticket rests after CloseOperation. Cause is what for.
	After time.Duration
	Cause Cause
	// Status is to be written with StartOperation, Record, CloseOperation, Wait and Nothing.
	Status flightsv1.FlightTicketStatus
	// Event tells what has happened, once Status is written; nil: nothing to tell.
	Event *Event
	// Closed is how the operation that this step ends went, for the count of operations; nil: it ends none.
	Closed *Closed
}

// Keeps says whether the next pass is to go on from what this one has heard: a ticket that waits for its quotas would else
// ask its provider the same at each look.
func (s Step) Keeps() bool { return s.Cause == CauseFull || s.Cause == CauseCounting }

// Event is something that has happened to a ticket.
type Event struct {
	// Warning says that a person should look.
	Warning bool
	// Reason is a condition reason.
	Reason string
	// Message is for a person.
	Message string
}

// Closed is how an operation ended.
type Closed struct {
	Kind flightsv1.OperationKind
	// Result is one of done, refused, not_made.
	Result string
}

// The results of an operation.
const (
	ResultDone    = "done"
	ResultRefused = "refused"
	ResultNotMade = "not_made"
)
