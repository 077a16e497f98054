package quotabucket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/quota"
	"github.com/flight-operator/flight-operator/internal/quota/census"
	"github.com/flight-operator/flight-operator/internal/quota/store"
)

// Gate is the second gate: it says whether a stored ticket may be booked, and whether one that is being deleted may go
// (rules 12 and 13). It is safe for concurrent use.
type Gate struct {
	Options
	census *census.Census
	store  *store.Store

	mu      sync.Mutex // held from a look at the tickets until what was granted on it is noted
	granted map[types.UID]grant
	waiters map[types.NamespacedName]waiter
	changed chan types.NamespacedName
}

// grant is a ticket that may be booked by what this process said, and of which the cache doesn't show yet whether it is.
type grant struct {
	revision string // the ticket's then: the operation is written under it, or not at all
	at       time.Time
}

const (
	// grantTime is how long a grant is remembered at most: far longer than it takes to write an operation down.
	grantTime = 2 * time.Minute
	// news is how many tickets may wait to be looked at again; more wait for the next round.
	news = 256
)

func newGate(o Options, c *census.Census) (*Gate, error) {
	reserving, err := store.New(store.Options{Reader: o.Live, Writer: o.Client, OperatorNamespace: o.OperatorNamespace})
	if err != nil {
		return nil, err
	}
	return &Gate{
		Options: o, census: c, store: reserving, granted: map[types.UID]grant{},
		waiters: map[types.NamespacedName]waiter{}, changed: make(chan types.NamespacedName, news),
	}, nil
}

// Close returns when nothing is written any more. Nothing may be asked afterwards.
func (g *Gate) Close() { g.store.Close() }

// Changed gets the tickets that found no room or no count when they were asked about, once there is.
func (g *Gate) Changed() <-chan types.NamespacedName { return g.changed }

// Bookable says as an error why a ticket must not be booked now with an offer: *quota.RefusedError, *quota.StaleError,
// *quota.NotCountedError, *quota.BusyError, or what went wrong. Without an offer nothing is written, and quotas that count
// by the offer are left out; with one, their claims are reserved before it returns nil. What is booked for the ticket
// already needs no room.
func (g *Gate) Bookable(ctx context.Context, t *flightsv1.FlightTicket, offer *booking.Offer) error {
	a, err := g.asks(ctx, t, offer)
	if err != nil {
		return err
	}
	if err := g.fit(ctx, t, a, offer != nil); err != nil {
		g.await(t, a)
		return err
	}
	if len(a.atBooking.Claims) == 0 {
		return nil
	}
	if _, err := g.store.Reserve(ctx, a.atBooking); err != nil {
		g.await(t, a)
		return notCounted(err)
	}
	return nil
}

// asks is what a ticket needs room for: beyond what is booked for it, by policies that hold tickets back.
type asks struct {
	// admitted are the claims that were reserved at admission.
	admitted []quota.Claim
	// atBooking are those that only the offer tells.
	atBooking quota.Review
	// outliving are the claims that outlive the ticket, if it is to go.
	outliving []quota.Claim
}

func (g *Gate) asks(ctx context.Context, t *flightsv1.FlightTicket, offer *booking.Offer) (asks, error) {
	a := asks{atBooking: quota.Review{Ticket: nameOf(t), UID: t.UID, Generation: t.Generation}}
	wanted, err := policy.NewHolding(t, offer)
	if err != nil {
		return asks{}, fmt.Errorf("read what the ticket holds: %w", err)
	}
	booked, err := policy.NewBookedHolding(t)
	if err != nil {
		return asks{}, fmt.Errorf("read what is booked for the ticket: %w", err)
	}
	for _, q := range g.Policies.Quotas() {
		atBooking := q.Stage() == policy.StageBooking
		if q.Enforcement() != flightsv1.EnforcementEnforce || atBooking && offer == nil {
			continue
		}
		claims, err := q.Claims(ctx, wanted)
		if err != nil {
			return asks{}, err
		}
		old, err := q.Claims(ctx, booked)
		if err != nil && !policy.Fails(err) { // what nobody can count is taken for nothing, and needs room
			return asks{}, err
		}
		if atBooking {
			a.atBooking.Claims, a.atBooking.Old = append(a.atBooking.Claims, claims...), append(a.atBooking.Old, old...)
		} else {
			a.admitted = append(a.admitted, raises(claims, old)...)
		}
	}
	return a, nil
}

// raises are the claims above those of the same bucket in another list (rule 5).
func raises(claims, old []quota.Claim) []quota.Claim {
	before := map[string]int64{}
	for _, c := range old {
		before[c.Bucket()] = c.Amount
	}
	var list []quota.Claim
	for _, c := range claims {
		if c.Amount > before[c.Bucket()] {
			list = append(list, c)
		}
	}
	return list
}

// fit says as an error why claims don't fit, with all refusals. What fits is granted, if it is asked for in earnest.
func (g *Gate) fit(ctx context.Context, t *flightsv1.FlightTicket, a asks, earnest bool) error {
	buckets := make([]*flightsv1.QuotaBucket, len(a.admitted))
	for i, c := range a.admitted {
		var err error
		if buckets[i], err = g.read(ctx, c.Place(t.Namespace, g.OperatorNamespace)); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.census.Look(ctx); err != nil {
		return err
	}
	g.forgetGrants()
	var refusals []quota.Refusal
	for i, c := range a.admitted {
		err := g.bookable(t.UID, c, buckets[i])
		var refused *quota.RefusedError
		switch {
		case errors.As(err, &refused):
			refusals = append(refusals, refused.Refusals...)
		case err != nil:
			return err
		}
	}
	if len(refusals) > 0 {
		return quota.NewRefusedError(refusals...)
	}
	if earnest {
		g.granted[t.UID] = grant{t.ResourceVersion, g.Clock()}
	}
	return nil
}

// bookable asks one bucket that was read after the ticket. The caller holds mu.
func (g *Gate) bookable(ticket types.UID, c quota.Claim, b *flightsv1.QuotaBucket) error {
	if b == nil {
		return &quota.NotCountedError{Policy: c.Policy, Key: c.Key, Reason: "it is being counted"}
	}
	if err := g.census.Problem(c.PolicyUID); err != nil {
		return fmt.Errorf("count quota %q of policy %s: %w", c.Key, c.Policy, err)
	}
	return quota.Open(b).Bookable(c, ticket, g.withGrants(g.census.Snapshot(placeOf(b), c.PolicyUID, b.Entries)))
}

// withGrants counts the tickets as committed that this process has let pass, until the cache shows what became of them.
func (g *Gate) withGrants(s quota.Snapshot) quota.Snapshot {
	tickets := s.Tickets
	s.Tickets = func(yield func(quota.Ticket) bool) {
		for t := range tickets {
			if granted, is := g.granted[t.UID]; is && granted.revision == t.Revision {
				t.Committed = true
			}
			if !yield(t) {
				return
			}
		}
	}
	return s
}

func (g *Gate) forgetGrants() {
	now := g.Clock()
	for uid, granted := range g.granted {
		if now.Sub(granted.at) > grantTime {
			delete(g.granted, uid)
		}
	}
}

// read reads a bucket live; nil if there is none.
func (g *Gate) read(ctx context.Context, at place) (*flightsv1.QuotaBucket, error) {
	var b flightsv1.QuotaBucket
	err := g.Live.Get(ctx, at, &b)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read quota bucket %s: %w", at, err)
	}
	return &b, nil
}

// notCounted puts an error of the store in the words of the second gate.
func notCounted(err error) error {
	var counting *store.CountingError
	if errors.As(err, &counting) {
		return &quota.NotCountedError{Policy: counting.Policy, Key: counting.Key, Reason: "it is being counted"}
	}
	return err
}

// Departed returns nil once all of a ticket that must outlive it is in its buckets' retained amounts (rule 12). The ticket
// is being deleted and has nothing left to do. Nothing keeps it that can't come: a policy that is gone or fails on the ticket,
// a namespace that is being deleted; and nothing that refuses nobody, if it can't be asked.
func (g *Gate) Departed(ctx context.Context, t *flightsv1.FlightTicket) error {
	holding, err := policy.NewHolding(t, nil)
	if policy.Fails(err) {
		return nil // nobody counts it
	}
	if err != nil {
		return fmt.Errorf("read what the ticket holds: %w", err)
	}
	ends, err := g.ends(ctx, t.Namespace)
	if err != nil {
		return err
	}
	for _, q := range g.Policies.Quotas() {
		claims, err := q.Claims(ctx, holding)
		if err != nil && (ends || policy.Fails(err) || q.Enforcement() != flightsv1.EnforcementEnforce) {
			continue
		}
		if err != nil {
			return err
		}
		for _, c := range claims {
			if c.Amount == 0 || !census.Outlived(t, c) || ends && c.Scope == quota.Namespace {
				continue
			}
			if err := g.departed(ctx, t, c); err != nil {
				g.await(t, asks{outliving: []quota.Claim{c}})
				return err
			}
		}
	}
	return nil
}

func (g *Gate) departed(ctx context.Context, t *flightsv1.FlightTicket, c quota.Claim) error {
	b, err := g.read(ctx, c.Place(t.Namespace, g.OperatorNamespace))
	if err != nil {
		return err
	}
	if b == nil || !quota.Departed(b, t.UID) {
		return &quota.NotCountedError{Policy: c.Policy, Key: c.Key, Reason: "what stays taken when the ticket is gone is not counted yet"}
	}
	return nil
}

// ends reports whether a namespace is being deleted.
func (g *Gate) ends(ctx context.Context, name string) (bool, error) {
	var namespace corev1.Namespace
	err := g.Client.Get(ctx, client.ObjectKey{Name: name}, &namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return !namespace.DeletionTimestamp.IsZero(), nil
}

func nameOf(t *flightsv1.FlightTicket) types.NamespacedName {
	return types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
}
