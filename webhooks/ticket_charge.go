package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/quota"
	"github.com/flight-operator/flight-operator/internal/quota/store"
)

// warnTime bounds the comparison with quotas that only warn: they refuse nobody, so they may hold up nobody either.
const warnTime = 500 * time.Millisecond

// Quotas is the ledger of quotas. *store.Store is one, and says which errors there are.
type Quotas interface {
	// Reserve holds all that a review claims above what its stored ticket does, or nothing.
	Reserve(ctx context.Context, r quota.Review) (*store.Hold, error)
	// Check says what Reserve would, and writes nothing.
	Check(ctx context.Context, r quota.Review) ([]quota.Notice, error)
	// Release takes back what a review holds. It doesn't wait.
	Release(h *store.Hold)
}

// The results of a reservation, as logs and metrics name them.
const (
	reservationHeld    = "held"    // written, or found to be written already
	reservationFits    = "fits"    // of a dry run: nothing is written
	reservationRefused = "refused" // no room
	// The policy has changed, its tickets are being counted, or nobody could tell in time: a repeat may be admitted.
	reservationStale    = "stale"
	reservationCounting = "counting"
	reservationBusy     = "busy"
	reservationFailed   = "failed" // the API server refuses our writes
)

// charge is what became of what a ticket claims. The zero value is of a ticket that raises no claim.
type charge struct {
	result string
	// policies are those that the result is of.
	policies []string
	// err is why nothing is held.
	err error
	// stale is a claim whose policy has changed; nil if there is none.
	stale *quota.Claim
}

// charge compares an allowed ticket with the quotas that only warn, and reserves what the others claim: last of all, so
// that what another rule refuses holds nothing (rule 6 of docs/quota-protocol.md).
func (v ticketValidator) charge(ctx context.Context, r *ticketReview, d policy.Decision) outcome {
	warnings := slices.Concat(r.warnings, warningsOf(d), v.compare(ctx, r, &d))
	notices, c := v.reserve(ctx, r, d)
	var refused *quota.RefusedError
	var out outcome
	switch {
	case c.err == nil:
		out = allow(slices.Concat(r.notes, warnings, noticeTexts(notices)))
	case errors.As(c.err, &refused):
		markAll(&d, refused.Refusals, policy.ResultDeny)
		out = forbid(r.req, quotaReasons(refused.Refusals), warnings)
	case c.result == reservationFailed:
		out = undecided(r.req, fmt.Errorf("quota can't be reserved: %w", c.err))
		out.err = errors.New(inLog(c.err))
	default:
		out = again(r.req, c.err)
	}
	out.evaluated, out.charge = d.Evaluated, c
	return out
}

// reserve holds what the ticket claims, or on a dry run says whether it could.
func (v ticketValidator) reserve(ctx context.Context, r *ticketReview, d policy.Decision) ([]quota.Notice, charge) {
	review := r.claiming(d.Claims, d.OldClaims)
	if raised, err := review.Reservations(""); err == nil && len(raised) == 0 {
		return nil, charge{}
	}
	if r.dryRun() {
		notices, err := v.quotas.Check(ctx, review)
		return notices, charged(d.Claims, err, reservationFits)
	}
	hold, err := v.quotas.Reserve(ctx, review)
	if err != nil {
		return nil, charged(d.Claims, err, "")
	}
	r.hold = hold
	if err := ctx.Err(); err != nil { // nobody waits for the answer any more
		return nil, charged(d.Claims, &quota.BusyError{
			Policy: d.Claims[0].Policy, Key: d.Claims[0].Key, Reason: "the answer came too late", Cause: err,
		}, "")
	}
	return hold.Notices, charged(d.Claims, nil, reservationHeld)
}

// claiming is the review as the ledger sees it.
func (r *ticketReview) claiming(claims, old []quota.Claim) quota.Review {
	return quota.Review{
		Ticket: types.NamespacedName{Namespace: r.req.Namespace, Name: r.ticket.Name},
		UID:    r.ticket.UID, Generation: r.ticket.Generation, Claims: claims, Old: old,
	}
}

// charged reads an answer of the ledger. Of claims that fit, result is what they come to.
func charged(claims []quota.Claim, err error, result string) charge {
	var refused *quota.RefusedError
	var stale *quota.StaleError
	var counting *store.CountingError
	var busy *quota.BusyError
	c := charge{err: err}
	switch {
	case err == nil:
		c.result = result
	case errors.As(err, &refused):
		c.result = reservationRefused
		for _, refusal := range refused.Refusals {
			c.policies = append(c.policies, refusal.Policy)
		}
	case errors.As(err, &stale):
		c.result, c.policies, c.stale = reservationStale, []string{stale.Policy}, claimOf(claims, stale.Policy)
	case errors.As(err, &counting):
		c.result, c.policies = reservationCounting, []string{counting.Policy}
	case errors.As(err, &busy):
		c.result, c.policies = reservationBusy, []string{busy.Policy}
	default:
		c.result, c.policies = reservationFailed, policiesOf(claims)
	}
	c.policies = slices.Compact(c.policies)
	return c
}

func policiesOf(claims []quota.Claim) []string {
	var names []string
	for _, c := range claims {
		names = append(names, c.Policy)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// claimOf finds a claim of a policy.
func claimOf(claims []quota.Claim, name string) *quota.Claim {
	i := slices.IndexFunc(claims, func(c quota.Claim) bool { return c.Policy == name })
	if i < 0 {
		return nil
	}
	return &claims[i]
}

// renewed waits until the policy of a claim that a bucket calls stale has changed in the engine too, and says whether it
// has. Half of the time that is left remains for another decision.
func (v ticketValidator) renewed(ctx context.Context, c quota.Claim) bool {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Until(deadline)/2)
	defer cancel()
	return v.superseded(ctx, c.Policy, c.PolicyUID, c.PolicyGeneration) == nil
}

// compare says in warnings what the quotas of policies that only warn would refuse. One that can't be asked is a
// warning too: such a policy refuses nobody.
func (v ticketValidator) compare(ctx context.Context, r *ticketReview, d *policy.Decision) []string {
	ctx, cancel := context.WithTimeout(ctx, warnTime)
	defer cancel()
	var warnings []string
	for _, c := range d.WarnClaims {
		notices, err := v.quotas.Check(ctx, r.claiming([]quota.Claim{c}, d.OldClaims))
		var refused *quota.RefusedError
		switch {
		case errors.As(err, &refused):
			for _, refusal := range refused.Refusals {
				warnings = append(warnings, refusal.Policy+": would refuse: "+refusal.Text())
			}
			markAll(d, refused.Refusals, policy.ResultWarn)
		case err != nil:
			warnings = append(warnings, c.Policy+": could not compare: "+err.Error())
		}
		warnings = append(warnings, noticeTexts(notices)...)
	}
	return warnings
}

// quotaReasons has one reason a bucket.
func quotaReasons(refusals []quota.Refusal) []reason {
	reasons := make([]reason, len(refusals))
	for i, refusal := range refusals {
		reasons[i] = reason{
			source: refusal.Policy, code: metav1.CauseType("QuotaExceeded"),
			text: refusal.Text() + "; ask for less, or shrink or delete other tickets that it counts",
		}
	}
	return reasons
}

func noticeTexts(notices []quota.Notice) []string {
	texts := make([]string, len(notices))
	for i, n := range notices {
		texts[i] = n.Policy + ": " + n.Text()
	}
	return texts
}

// markAll enters in what is known of the policies that their quotas spoke.
func markAll(d *policy.Decision, refusals []quota.Refusal, result string) {
	for i := range d.Evaluated {
		e := &d.Evaluated[i]
		if slices.ContainsFunc(refusals, func(r quota.Refusal) bool { return r.Policy == e.Policy }) {
			e.Result = result
		}
	}
}

// inLog is as much of an error of the ledger as a log may have: a key may be of a passenger, and what the API server calls
// invalid it quotes.
func inLog(err error) string {
	const what = "reserve quota: "
	var status apierrors.APIStatus
	switch {
	case apierrors.IsInvalid(err):
		return what + "the API server calls the quota bucket invalid"
	case errors.As(err, &status):
		return what + status.Status().Message
	default:
		return what + "the quota bucket is not of this operator, or a claim is none"
	}
}
