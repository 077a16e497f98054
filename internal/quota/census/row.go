package census

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// row is a ticket of the cache, and what it claims. Policies under which it claims nothing leave no trace in it: with many
// policies of few namespaces each, that is nearly all of them.
type row struct {
	ticket  *flightsv1.FlightTicket // the cache's own: it is only read
	claimed []claimed
}

// claimed is what one policy makes of a ticket.
type claimed struct {
	policy types.UID
	claims []quota.Claim
	err    error // why the ticket can't be counted, or not yet
}

// fails reports whether the policy fails on the ticket, so that asking it again is no use.
func (c claimed) fails() bool { return policy.Fails(c.err) }

// compute asks some policies about the ticket, in place of what was known of them. It returns how many were asked.
func (r *row) compute(ctx context.Context, quotas []policy.Quota) int {
	if len(quotas) == 0 {
		return 0
	}
	holding, unreadable := policy.NewHolding(r.ticket, nil)
	for _, q := range quotas {
		c := claimed{policy: q.PolicyUID(), err: unreadable}
		if unreadable == nil {
			c.claims, c.err = q.Claims(ctx, holding)
		}
		if len(c.claims) > 0 || c.err != nil {
			r.claimed = append(r.claimed, c)
		}
	}
	return len(quotas)
}

// forget drops what is known of some policies.
func (r *row) forget(policies map[types.UID]bool) {
	r.claimed = slices.DeleteFunc(r.claimed, func(c claimed) bool { return policies[c.policy] })
}

// unasked lists the policies that could not be asked; they are asked again at each look.
func (r *row) unasked() map[types.UID]bool {
	var unasked map[types.UID]bool
	for _, c := range r.claimed {
		if c.err != nil && !c.fails() {
			if unasked == nil {
				unasked = map[types.UID]bool{}
			}
			unasked[c.policy] = true
		}
	}
	return unasked
}

// alike reports whether two forms of a ticket are the same to every quota, so that no policy has to be asked again: most
// writes of a status change neither an order nor a price.
func alike(a, b *flightsv1.FlightTicket) bool {
	return a.UID == b.UID && a.Generation == b.Generation &&
		a.Annotations[flightsv1.RequestedByAnnotation] == b.Annotations[flightsv1.RequestedByAnnotation] &&
		equality.Semantic.DeepEqual(a.Status.Booking, b.Status.Booking) &&
		equality.Semantic.DeepEqual(a.Status.Operation, b.Status.Operation)
}

// committed reports whether money is or may be spent for a ticket: it has a booking, or an operation that may make one.
func committed(t *flightsv1.FlightTicket) bool {
	b := t.Status.Booking
	return t.Status.Operation != nil || b != nil && b.CancelledAt == nil
}

// leaving reports whether all that is left to do for a ticket is to let it go, so that what it takes is final; and whether
// its booking stays with the provider when it goes.
func leaving(t *flightsv1.FlightTicket) (leaves, stays bool) {
	if t.DeletionTimestamp.IsZero() || t.Status.Operation != nil {
		return false, false
	}
	b := t.Status.Booking
	if b == nil || b.CancelledAt != nil {
		return true, false
	}
	stays = t.Spec.DeletionPolicy == flightsv1.DeletionPolicyRetain || b.ID != "" && t.Annotations[flightsv1.RetainBookingAnnotation] == b.ID
	return stays, stays
}

// Outlived reports whether what a ticket takes by a claim outlives it, from now on (rule 12). Nothing outlives a ticket that
// never had a booking, whatever the claim says: nothing was spent on it. That it had one its status says until it is gone,
// for a booking that is cancelled stays there. An attempt is no proof: the provider may have refused it.
func Outlived(t *flightsv1.FlightTicket, c quota.Claim) bool {
	leaves, stays := leaving(t)
	return leaves && (stays || c.Retain && t.Status.Booking != nil)
}

// entry is what a ticket means to one bucket.
func entry(t *flightsv1.FlightTicket, c quota.Claim) quota.Ticket {
	return quota.Ticket{
		Name: types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, UID: t.UID, Generation: t.Generation,
		Revision: t.ResourceVersion, Amount: c.Amount, Outlived: Outlived(t, c),
		Created: t.CreationTimestamp.Truncate(time.Second), Committed: committed(t),
	}
}
