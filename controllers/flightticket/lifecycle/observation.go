package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
)

// Observation is everything that a decision rests on.
type Observation struct {
	// Now is the time of this pass.
	Now time.Time
	// NewID is a random id, different in every pass. An operation that is started in this pass takes it.
	NewID string
	// Recheck is how long a ticket rests that waits for something which nobody announces.
	Recheck time.Duration

	Ticket   Ticket
	Provider Provider
	// PoliciesLoaded says that the policies can be asked at all.
	PoliciesLoaded bool

	// KnownFor is how long this process has known the open operation, or without one the booking that it works on, by a
	// clock that nobody sets. A wall clock may jump, and another machine's may be wrong: nothing is sent and no absence is
	// proven by it alone.
	KnownFor time.Duration
	// LookIn is how long it is until the booking is to be read again to see whether it is still there; zero or less: now.
	LookIn time.Duration
	// Waits is what this process remembers of the ticket's waiting.
	Waits Waits
	// Fresh says that this process wrote the open operation down in this run, and that nothing can have come of it:
	// it was not sent yet, or every send was answered by a rejection. It is never true after a restart.
	Fresh bool
	// Heard are the answers to the actions of the passes before, since the status was last written.
	Heard Heard
}

// Ticket is what is known of the ticket.
type Ticket struct {
	Names      Names
	Generation int64
	// Deleting says that the ticket has a deletion time, Finalizer that our finalizer is on it.
	Deleting, Finalizer bool
	// Suspend and Retain are the spec's suspend and deletionPolicy.
	Suspend, Retain bool

	// Wanted is the order that the spec asks for; nil if its places or its price ceiling can't be understood, and then
	// Problem says why, for a person.
	Wanted  *flightsv1.Order
	Problem string
	// Route is what the places were resolved to; nil with Problem.
	Route *flightsv1.RouteStatus
	// Ceiling is the spec's maxPrice; the zero value is none.
	Ceiling money.Amount
	// ReconcileRequestedAt, Adopt, Resolve and Retained are the values of the annotations reconcile-requested-at,
	// adopt-booking, resolve-operation and retain-booking.
	ReconcileRequestedAt, Adopt, Resolve, Retained string
	// DecidedBy is who set one of the last three.
	DecidedBy string

	// Status is the status as last read or written. One with an open operation must come from the API server itself, not
	// from a cache: an operation that was closed since would be sent again.
	Status flightsv1.FlightTicketStatus
}

// Provider is what is known of the provider that the ticket's operation or booking is pinned to, else of the one that
// the spec asks for.
type Provider struct {
	// Found says that the BookingProvider exists. Name is set in any case, empty when there is no default provider.
	Found bool
	Name  string
	// Leaving says that a BookingProvider of that name exists but is being deleted, and takes no new tickets: it counts
	// as not found by one that has neither a booking nor an open operation with it.
	Leaving bool
	// Ready says that this process holds a credential which the provider accepted, and knows its account.
	Ready bool
	// Trouble says for a person why the provider is not ready.
	Trouble string
	// Connecting says that nothing is known to be wrong with a provider that is not ready: this process has only begun.
	Connecting bool

	Identity             flightsv1.ProviderIdentity
	Generation           int64
	CredentialsRotatedAt *metav1.Time

	// KeyTTL is how long the provider remembers an idempotency key; zero: it takes none.
	KeyTTL time.Duration
	// Lookup says that bookings can be listed by their names.
	Lookup bool
	// Timeout is the longest that one call takes, ReadLag how long a booking may be missing from reads, MaxProcessing
	// how long the provider may work on an order.
	Timeout, ReadLag, MaxProcessing time.Duration

	// Wait is how long the limiter or the breaker asks to wait before a call; zero: no need.
	Wait time.Duration
}

// Heard are answers to actions. A nil pointer: not asked since the status was last written.
type Heard struct {
	// Owner is the answer to LookupOwner, Found to Find, Read to ReadBooking, Offer to Quote, Sent to Send.
	Owner *Listing
	Found *Listing
	Read  *Reading
	Offer *Quotation
	Sent  *booking.Outcome
	// Room is the answer to Admit.
	Room *Admission
	// Holder is the answer to CheckHolders.
	Holder *Holder
	// Verdict is the answer to Gate.
	Verdict Verdict
	// Quotas is the answer to CheckQuotas, Hold to HoldQuotas.
	Quotas, Hold QuotaAnswer
	// Departure is the answer to Depart.
	Departure *Departure
}

// Admission is the answer to a request for room: granted if there is no error.
type Admission struct {
	Err *booking.CallError
}

// Holder is which other ticket of the namespace holds a booking; an empty name: none.
type Holder struct {
	Ticket string
}

// Listing is the answer to a look-up.
type Listing struct {
	// AskedAt is when the call began: what was booked later may be missing. KnownFor is the observation's at that time.
	AskedAt  time.Time
	KnownFor time.Duration
	Bookings []booking.Booking
	Err      *booking.CallError
}

// Reading is the answer to a read of one booking. AskedAt and KnownFor are as in a Listing.
type Reading struct {
	AskedAt  time.Time
	KnownFor time.Duration
	Booking  booking.Booking
	Err      *booking.CallError
}

// Quotation is the answer to a request for an offer, which was made at AskedAt.
type Quotation struct {
	AskedAt time.Time
	Offer   booking.Offer
	Err     *booking.CallError
}

// keepTime bounds how long an answer of a provider is built on by later passes.
const keepTime = time.Hour

// Kept leaves of what was heard what a later pass may build on: answers that are not old, no failures, and no offer that
// has expired.
func (h Heard) Kept(now time.Time) Heard {
	recent := func(askedAt time.Time) bool { return now.Sub(askedAt) <= keepTime }
	var kept Heard
	if h.Owner != nil && h.Owner.Err == nil && recent(h.Owner.AskedAt) {
		kept.Owner = h.Owner
	}
	if h.Read != nil && h.Read.Err == nil && recent(h.Read.AskedAt) {
		kept.Read = h.Read
	}
	if h.Offer != nil && h.Offer.Err == nil && recent(h.Offer.AskedAt) && h.Offer.Offer.ExpiresAt.After(now) {
		kept.Offer = h.Offer
	}
	return kept
}

// VerdictKind is what the policies said.
type VerdictKind string

// The verdicts. The zero value means that they were not asked.
const (
	VerdictNotAsked VerdictKind = ""
	VerdictAllowed  VerdictKind = "Allowed"
	VerdictRefused  VerdictKind = "Refused"
	// VerdictError: the policies could not decide. Nothing is bought.
	VerdictError VerdictKind = "Error"
)

// Verdict is the answer of the policies.
type Verdict struct {
	Kind VerdictKind
	// Messages are the reasons of a refusal or an error, sorted.
	Messages []string
}

// QuotaKind is what the quotas said.
type QuotaKind string

// What the quotas can say. The zero value means that they were not asked.
const (
	QuotaNotAsked QuotaKind = ""
	// QuotaRoom: there is room for the ticket.
	QuotaRoom QuotaKind = "Room"
	// QuotaFull: there is none until something changes.
	QuotaFull QuotaKind = "Full"
	// QuotaCounting: nobody can tell yet, and it won't be long.
	QuotaCounting QuotaKind = "Counting"
	// QuotaError: the quotas could not be asked.
	QuotaError QuotaKind = "Error"
)

// QuotaAnswer is the answer of the quotas.
type QuotaAnswer struct {
	Kind QuotaKind
	// Message says for a person what has no room, or why nobody can tell. It is the same as long as that is.
	Message string
}

// Departure is the answer to Depart: all is in place if nothing is missing.
type Departure struct {
	// Missing says for a person what is not in place yet; empty: nothing.
	Missing string
}

// operation returns the open operation. The caller has made sure that there is one.
func (o Observation) operation() flightsv1.OperationStatus { return *o.Ticket.Status.Operation }

// heldBy says whether the provider as it is now is the one that an operation or a booking is pinned to.
func (p Provider) heldBy(pinned flightsv1.ProviderIdentity) bool { return p.Identity == pinned }
