package flightticket

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/instruction"
	"github.com/flight-operator/flight-operator/internal/money"
	"github.com/flight-operator/flight-operator/internal/places"
)

// pass is one look at one ticket: what was observed, and what it was observed with.
type pass struct {
	r      *Reconciler
	ticket *flightsv1.FlightTicket
	route  places.Route
	// api is the provider under one credential, which o.Provider.Identity names. It stays the same for the whole pass:
	// a credential that is rotated in between must not send for another account.
	api booking.Provider
	o   lifecycle.Observation
	// waited is how long this pass has waited for the limiter; limited says that it gave up waiting, waits that it ended to
	// wait for a quota.
	waited         time.Duration
	limited, waits bool
	// woken is how often the ticket had been woken when this pass began.
	woken int64
	// permit is room for the call of the operation that is about to be written down; nil without.
	permit booking.Permit
	// adopting says that no other ticket takes a booking over until this pass is over.
	adopting bool
}

func (p *pass) key() client.ObjectKey { return client.ObjectKeyFromObject(p.ticket) }

// tick takes the time, by both clocks.
func (p *pass) tick() {
	p.o.Now = p.r.Clock()
	p.o.KnownFor = p.r.memory.known(p.key(), lifecycle.Known(p.o.Ticket.Status), p.o.Now)
	if p.o.Ticket.Status.Booking != nil {
		p.o.LookIn = p.r.memory.lookIn(p.key(), p.pollInterval(), p.o.Now)
	}
}

// pollInterval is how often the ticket's booking is read again. What can't be understood counts as not set: the webhook
// refuses it, and says why.
func (p *pass) pollInterval() time.Duration {
	every, err := instruction.ParsePollInterval(p.ticket.Annotations[flightsv1.PollIntervalAnnotation])
	if err != nil {
		return p.r.Recheck
	}
	return every
}

// priority is that of all calls of this pass: a read that a cancellation waits for is as urgent as the cancellation, and
// one that nobody waits for leaves room for those above it.
func (p *pass) priority() booking.Priority {
	switch {
	case p.o.Ticket.Deleting:
		return booking.PriorityCancel
	case p.o.Looks():
		return booking.PriorityPoll
	default:
		return booking.PriorityBook
	}
}

// read reads a ticket from the cache, and from the API server if it has an open operation or the cache is behind what this
// process wrote: a cache that lags could show an operation that is closed already, and it would be sent again, or a status
// that was overwritten, and the right one would not be written.
func (r *Reconciler) read(ctx context.Context, key client.ObjectKey) (*flightsv1.FlightTicket, error) {
	ticket := &flightsv1.FlightTicket{}
	err := r.Client.Get(ctx, key, ticket)
	if err == nil && (ticket.Status.Operation != nil || r.memory.overtakes(key, ticket.ResourceVersion)) {
		ticket = &flightsv1.FlightTicket{}
		err = r.Live.Get(ctx, key, ticket)
	}
	if err != nil {
		return nil, fmt.Errorf("read ticket: %w", err)
	}
	return ticket, nil
}

// observe gathers what a decision rests on.
func (r *Reconciler) observe(ctx context.Context, ticket *flightsv1.FlightTicket) (*pass, error) {
	p := &pass{r: r, woken: r.memory.woken(client.ObjectKeyFromObject(ticket))}
	p.o.NewID, p.o.Recheck = r.NewID(), r.Recheck
	p.look(ticket)
	if err := p.observeProvider(ctx); err != nil {
		return nil, err
	}
	p.o.Waits = r.memory.waits(p.key(), digest(r.seed, p.wish()))
	return p, nil
}

// recall takes up what a pass before has heard.
func (p *pass) recall() {
	if p.ticket.Status.Operation == nil {
		p.o.Heard = p.r.memory.recall(p.key(), digest(p.r.seed, p.wish()), p.ticket.Status, p.o.Provider, p.o.Now)
	}
}

// look takes the facts of a ticket as it was just read or written.
func (p *pass) look(ticket *flightsv1.FlightTicket) {
	p.ticket = ticket
	p.o.PoliciesLoaded = p.r.PoliciesLoaded()
	p.o.Ticket = lifecycle.Ticket{
		Names: lifecycle.Names{
			Installation: p.r.Installation, Namespace: ticket.Namespace, Name: ticket.Name, UID: ticket.UID,
		},
		Generation: ticket.Generation,
		Deleting:   !ticket.DeletionTimestamp.IsZero(),
		Finalizer:  controllerutil.ContainsFinalizer(ticket, flightsv1.BookingFinalizer),
		Suspend:    ticket.Spec.Suspend,
		Retain:     ticket.Spec.DeletionPolicy == flightsv1.DeletionPolicyRetain,
		Status:     *ticket.Status.DeepCopy(),
	}
	p.lookAtAnnotations(ticket.Annotations)
	p.lookAtSpec(ticket.Spec)
	op := ticket.Status.Operation
	p.o.Fresh = op != nil && p.r.memory.harmless(p.key(), op.ID)
	p.tick()
}

func (p *pass) lookAtAnnotations(set map[string]string) {
	t := &p.o.Ticket
	t.ReconcileRequestedAt = set[flightsv1.ReconcileRequestedAtAnnotation]
	t.Adopt, t.Resolve = set[flightsv1.AdoptBookingAnnotation], set[flightsv1.ResolveOperationAnnotation]
	t.Retained, t.DecidedBy = set[flightsv1.RetainBookingAnnotation], set[flightsv1.DecidedByAnnotation]
	if t.DecidedBy == "" {
		t.DecidedBy = set[flightsv1.RequestedByAnnotation]
	}
}

func (p *pass) lookAtSpec(spec flightsv1.FlightTicketSpec) {
	route, err := places.Resolve(spec.From, spec.To)
	if err != nil {
		p.o.Ticket.Problem = explainPlace(err)
		return
	}
	if spec.MaxPrice != nil {
		p.o.Ticket.Ceiling, err = money.Parse(spec.MaxPrice.Amount, spec.MaxPrice.Currency)
		if err != nil {
			p.o.Ticket.Problem = fmt.Sprintf("spec.maxPrice: %s", err)
			return
		}
	}
	p.route = route
	p.o.Ticket.Route = &flightsv1.RouteStatus{Origin: end(route.Origin), Destination: end(route.Destination)}
	p.o.Ticket.Wanted = &flightsv1.Order{
		Origin: route.Origin.IATA, Destination: route.Destination.IATA, Seats: spec.Number, DepartureDate: spec.DepartureDate,
		ReturnDate: spec.ReturnDate, Cabin: spec.Cabin, Passengers: spec.Passengers,
	}
}

func explainPlace(err error) string {
	var at *places.EndError
	if errors.As(err, &at) {
		return fmt.Sprintf("spec.%s: %s", at.Field, at.Err)
	}
	return err.Error()
}

func end(p places.Place) flightsv1.RouteEnd {
	return flightsv1.RouteEnd{Text: p.Text, IATA: p.IATA, City: p.City, Country: p.Country}
}

// observeProvider finds the provider that the ticket is pinned to, else the one that it asks for.
func (p *pass) observeProvider(ctx context.Context) error {
	name, pinned, err := p.r.providerOf(ctx, p.ticket)
	if err != nil {
		return err
	}
	p.o.Provider = lifecycle.Provider{Name: name}
	if name == "" {
		return nil
	}
	var provider flightsv1.BookingProvider
	err = p.r.Client.Get(ctx, client.ObjectKey{Name: name}, &provider)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read provider %s: %w", name, err)
	}
	if !pinned && !provider.DeletionTimestamp.IsZero() {
		p.o.Provider.Leaving = true
		return nil
	}
	p.connect(&provider)
	return nil
}

func (p *pass) connect(provider *flightsv1.BookingProvider) {
	can := provider.Spec.Capabilities
	api, account, rotated := p.r.Providers.Connected(provider.Name, provider.UID, provider.Generation)
	p.api = api
	p.o.Provider = lifecycle.Provider{
		Found: true, Name: provider.Name, Ready: api != nil, Trouble: trouble(provider),
		Identity:   flightsv1.ProviderIdentity{Name: provider.Name, UID: provider.UID, Account: account},
		Generation: provider.Generation, CredentialsRotatedAt: rotated,
		KeyTTL: can.IdempotencyKeyTTL.Duration, Lookup: ptr.Deref(can.Lookup, true),
		Timeout: provider.Spec.Timeout.Duration, ReadLag: can.ReadLag.Duration, MaxProcessing: can.MaxProcessing.Duration,
		Wait: p.r.Providers.Pause(provider.Name, p.o.Now),
	}
	if connecting(provider) {
		p.o.Provider.Connecting, p.o.Provider.Trouble = true, "it is being connected"
	}
	if rotated == nil {
		p.o.Provider.CredentialsRotatedAt = provider.Status.CredentialsRotatedAt
	}
}

// trouble is what the provider says of itself.
func trouble(provider *flightsv1.BookingProvider) string {
	if c := broken(provider); c != nil {
		return c.Message
	}
	return ""
}

// connecting says that nothing is known to be wrong with a provider: if this process holds no connection to it, then
// because it has not made one yet.
func connecting(provider *flightsv1.BookingProvider) bool {
	c := broken(provider)
	return c == nil || c.ObservedGeneration != provider.Generation
}

// broken is the condition that says why a provider can't be called; nil: none does. Ready is also false while a provider
// is being deleted, and it serves the tickets that it has until they are gone.
func broken(provider *flightsv1.BookingProvider) *metav1.Condition {
	for _, kind := range []string{
		flightsv1.ConditionReady, flightsv1.ConditionCredentialsAccepted, flightsv1.ConditionReachable,
	} {
		c := meta.FindStatusCondition(provider.Status.Conditions, kind)
		if c != nil && c.Status == metav1.ConditionFalse && c.Reason != flightsv1.ReasonDeleting {
			return c
		}
	}
	return nil
}

// providerOf names a ticket's provider. Pinned says that an operation or a booking is there already. An empty name
// means that the ticket names none and that there isn't exactly one default.
func (r *Reconciler) providerOf(ctx context.Context, t *flightsv1.FlightTicket) (name string, pinned bool, err error) {
	switch {
	case t.Status.Operation != nil:
		return t.Status.Operation.Provider.Name, true, nil
	case t.Status.Booking != nil:
		return t.Status.Booking.Provider.Name, true, nil
	case t.Spec.ProviderRef != nil:
		return t.Spec.ProviderRef.Name, false, nil
	}
	var all flightsv1.BookingProviderList
	if err := r.Client.List(ctx, &all); err != nil {
		return "", false, fmt.Errorf("list providers: %w", err)
	}
	for _, provider := range all.Items {
		if !provider.Spec.Default || !provider.DeletionTimestamp.IsZero() {
			continue
		}
		if name != "" {
			return "", false, nil // two defaults: guessing could buy with the wrong one
		}
		name = provider.Name
	}
	return name, false, nil
}
