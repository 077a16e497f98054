package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// Quota is the quota of one policy as it serves now. It stays what it is when the policy changes, so all tickets that
// are counted by one Quota are counted alike.
type Quota struct {
	rev   *revision
	limit time.Duration
}

// countPatience is how many times longer than at admission a policy may take over a ticket that is counted: nobody's request
// waits for it, and a count that is given up because the machine is busy holds up everybody's.
const countPatience = 10

// UncountableError says that a policy fails on a ticket, which then has no claims. It fails again until the ticket or the
// policy changes.
type UncountableError struct {
	Policy string
	Err    error
}

// Error names the policy and says how it fails.
func (e *UncountableError) Error() string {
	return fmt.Sprintf("compute the claims of policy %s: %v", e.Policy, e.Err)
}

// Unwrap returns the cause.
func (e *UncountableError) Unwrap() error { return e.Err }

// Fails reports whether an error of NewHolding or Claims is for good: a policy, or every policy, fails on the ticket, and asking
// again is no use until the ticket or the policy changes.
func Fails(err error) bool {
	var uncountable *UncountableError
	var unreadable *RequestError
	return errors.As(err, &uncountable) || errors.As(err, &unreadable)
}

// Quotas lists the quotas of all policies that serve, whatever their enforcement, by the policies' names. A policy that
// doesn't compile and has no older generation that does isn't among them: its tickets are refused, and not counted.
func (e *Engine) Quotas() []Quota {
	var quotas []Quota
	for _, h := range e.snapshot.Load().policies {
		if h.quota() != nil {
			quotas = append(quotas, Quota{h.serving, countPatience * e.limits.policy})
		}
	}
	return quotas
}

// Policy is the name of the policy.
func (q Quota) Policy() string { return q.rev.name }

// PolicyUID tells the policy from others of its name.
func (q Quota) PolicyUID() types.UID { return q.rev.uid }

// PolicyGeneration is the generation that serves, and that the claims carry.
func (q Quota) PolicyGeneration() int64 { return q.rev.generation }

// Enforcement is what becomes of a ticket that finds no room: only under Enforce is it held back.
func (q Quota) Enforcement() flightsv1.Enforcement { return q.rev.enforcement }

// Stage is when tickets begin to claim: StageAdmission, or StageBooking for a quota that needs an offer.
func (q Quota) Stage() Stage { return q.rev.program.quota.stage }

// Claims are what a ticket holds, sorted by bucket: none if the policy doesn't concern the ticket. They are what Decide
// gives for the same ticket, and depend on nothing but what is in h. *UncountableError means that the policy fails on the
// ticket; any other error that nobody knows yet what it claims, and the caller must not take it for one that claims nothing.
func (q Quota) Claims(ctx context.Context, h Holding) ([]quota.Claim, error) {
	if !q.rev.match.matches(&Request{Namespace: Namespace{Name: h.namespace}}) {
		return nil, nil
	}
	if err := q.rev.counting.check(time.Now()); err != nil {
		return nil, fmt.Errorf("compute the claims of policy %s: %w", q.rev.name, err)
	}
	claims, err := q.rev.held(ctx, h, q.limit)
	cut := errors.Is(err, errTimeout)
	q.rev.counting.report(cut, time.Now())
	switch {
	case cut || err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("compute the claims of policy %s: %w", q.rev.name, err)
	case err != nil:
		return nil, &UncountableError{Policy: q.rev.name, Err: err}
	}
	return claims, nil
}

// held computes the largest claim of all views on each bucket.
func (rev *revision) held(ctx context.Context, h Holding, limit time.Duration) ([]quota.Claim, error) {
	var all []quota.Claim
	for _, v := range h.views {
		claims, err := rev.claimsOf(ctx, v, limit)
		if err != nil {
			return nil, err
		}
		all = largest(all, claims)
	}
	return all, nil
}

func (rev *revision) claimsOf(ctx context.Context, v view, limit time.Duration) (claims []quota.Claim, err error) {
	if rev.program.quota.routed && v.route != nil {
		return nil, v.route
	}
	var over atomic.Bool
	defer context.AfterFunc(ctx, func() { over.Store(true) })()
	err = rev.run(ctx, evaluation{
		query: rev.program.quota.query, shared: v.input, over: &over, limit: limit,
		read: func(r topdown.QueryResult) (err error) {
			claims, err = rev.readClaims(r[ast.Var(RuleQuota)])
			return err
		},
	})
	return claims, err
}

// largest joins the claims of two views of a ticket. Where both have one, all but the amount is the first's.
func largest(first, second []quota.Claim) []quota.Claim {
	joined := slices.Clone(first)
	for _, c := range second {
		i := slices.IndexFunc(joined, func(other quota.Claim) bool { return other.Scope == c.Scope && other.Key == c.Key })
		if i < 0 {
			joined = append(joined, c)
			continue
		}
		joined[i].Amount = max(joined[i].Amount, c.Amount)
	}
	sortClaims(joined)
	return joined
}

func sortClaims(claims []quota.Claim) {
	slices.SortFunc(claims, func(a, b quota.Claim) int { return cmp.Compare(a.Bucket(), b.Bucket()) })
}

// quota is what there is to know of the rule quota of the revision that serves, or nil.
func (h *held) quota() *quotaProgram {
	if h.serving == nil || h.serving.program == nil {
		return nil
	}
	return h.serving.program.quota
}

// claims completes what a policy answered with what the tickets hold besides their specs.
func (h *held) claims(ctx context.Context, of holdings, a *answer, limit time.Duration) error {
	q, rev := h.quota(), h.serving
	if q == nil {
		return nil
	}
	if q.stage == StageBooking && of.stage != StageBooking {
		a.claims = nil
		return nil
	}
	if of.ticket != nil {
		claims, err := rev.held(ctx, *of.ticket, limit)
		if err != nil {
			return err
		}
		a.claims = claims
	}
	if of.old != nil {
		if claims, err := rev.held(ctx, *of.old, limit); err == nil {
			a.oldClaims = claims
		}
	}
	return nil
}

// addClaims enters what a policy charges the ticket to, by what is to be done with it.
func (d *Decision) addClaims(rev *revision, a answer) {
	d.OldClaims = append(d.OldClaims, a.oldClaims...)
	switch claims := a.claims; {
	case len(claims) == 0:
	case rev.enforcement == flightsv1.EnforcementWarn:
		d.WarnClaims = append(d.WarnClaims, claims...)
	case rev.program.quota.stage == StageBooking:
		d.BookingClaims = append(d.BookingClaims, claims...)
	default:
		d.Claims = append(d.Claims, claims...)
	}
}
