package flightticket

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/policy"
)

// Providers tells what this process knows of the booking APIs.
type Providers interface {
	// Connected returns a provider's API under its present credential, the account that the credential belongs to, and
	// when the credential last changed. The API is nil unless the credential was accepted for exactly this uid and
	// generation of the BookingProvider. It stays bound to that credential and account.
	Connected(name string, uid types.UID, generation int64) (api booking.Provider, account string, rotated *metav1.Time)
	// Pause returns how long the provider's breaker or a pause that it asked for lasts still; zero: calls are let
	// through.
	Pause(name string, now time.Time) time.Duration
	// Doubt asks for a new look at a provider that answered as if it or its credential were no longer good.
	Doubt(name string)
}

// Policies is the second gate. *policy.Engine is one.
type Policies interface {
	Decide(ctx context.Context, r policy.Request) (policy.Decision, error)
}

// Quotas is the second gate of quotas (docs/quota-protocol.md, rules 12 and 13), and keeps what outlives a ticket. It errs
// towards an error: what it can't tell is not booked.
type Quotas interface {
	// Bookable says as an error why a ticket must not be booked now, or its booking not be changed to what its spec asks:
	// *quota.RefusedError has no room until something changes; with *quota.NotCountedError, *quota.StaleError and
	// *quota.BusyError nobody can tell yet, and a repeat soon may be answered otherwise; any other error is a failure.
	//
	// It is asked with a nil offer before one is asked for, as often as the ticket is looked at: quotas that count by the offer
	// are left out then, and nothing is written. With an offer it is asked as the last thing before the operation is written
	// down. It may write entries for what only the offer tells; a repeat must not charge twice. An operation may not be
	// written after all, and then nobody tells.
	//
	// What the booking that exists holds already (policy.NewBookedHolding) needs no room: a change that raises nothing fits,
	// however far above its limit a bucket is.
	Bookable(ctx context.Context, ticket *flightsv1.FlightTicket, offer *booking.Offer) error
	// Departed returns nil once all of a ticket that must outlive it is in the retained amounts of its buckets, or nothing
	// must. The ticket is being deleted, has no open operation, and its booking is gone or stays with the provider. Only
	// after nil may its finalizer go. A policy that is gone, and a namespace that is being deleted, must not keep a ticket.
	Departed(ctx context.Context, ticket *flightsv1.FlightTicket) error
	// Changed gets tickets that may find room now, or whose count is done. Each is looked at at once, if it waits for its
	// quotas: so no more tickets are to be sent for some room than could use it. It is received from as long as the
	// controller runs, also by one that doesn't lead.
	Changed() <-chan types.NamespacedName
}

// Options are what a Reconciler is made with. All but PolicyChanges are required.
type Options struct {
	// Client reads from the cache and writes. Live reads from the API server.
	Client client.Client
	Live   client.Reader
	// Events tells users what has happened.
	Events events.EventRecorder

	Providers Providers
	Policies  Policies
	Quotas    Quotas
	// PoliciesLoaded says whether the engine holds every policy of the cluster.
	PoliciesLoaded func() bool
	// PolicyChanges gets a value when the engine's contents have changed: tickets that a policy refused are looked at
	// again. Nil: they are looked at every Recheck.
	PolicyChanges <-chan struct{}

	// Installation is the name of this installation in what bookings are called; it must outlive the cluster.
	Installation string
	// Recheck is how long a ticket rests that waits for something which nobody announces, and how often a booking is read
	// again whose ticket doesn't say otherwise (the flag --poll-interval).
	Recheck time.Duration
	// Workers is how many tickets are worked on at once.
	Workers int

	// Clock tells the time, with its monotonic part. NewID makes an id that is never made again, not even by another
	// process or after a restore.
	Clock func() time.Time
	NewID func() string
	// Metrics counts.
	Metrics *Metrics
}
