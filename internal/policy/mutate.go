package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// Mutation is what policies make of a ticket.
type Mutation struct {
	// Ticket is a changed copy, or the request's own where nothing is set.
	Ticket *flightsv1.FlightTicket
	// Patches are those that changed something, sorted by path.
	Patches []Patch
	// Denials are policies that could not be evaluated, that contradict each other, or that don't come to rest. The ticket
	// must be refused, as it is.
	Denials []Denial
}

// Mutate asks the enforced policies that match what they set in a ticket, sets it, and asks again: a ticket on which they
// would still change something is refused. An error means that no policy could be asked (*RequestError, or the
// context's); the caller must refuse.
//
// It is for the webhook that mutates, before the ticket has a UID. Only the rule mutate is evaluated.
func (e *Engine) Mutate(ctx context.Context, r Request) (Mutation, error) {
	none := Mutation{Ticket: r.Ticket}
	if err := checkRequest(r); err != nil {
		return none, err
	}
	policies := e.snapshot.Load().concerning(&r)
	policies = slices.DeleteFunc(policies, func(h *held) bool { return !h.mutates() })
	if len(policies) == 0 {
		return none, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.limits.request)
	defer cancel()
	first, denials, err := e.patches(ctx, r, policies)
	if err != nil || len(denials) > 0 {
		return Mutation{Ticket: r.Ticket, Denials: denials}, err
	}
	ticket, changed, err := ApplyPatches(r.Ticket, first)
	if err != nil || len(changed) == 0 {
		return none, err
	}
	again := r
	again.Ticket = ticket
	second, denials, err := e.patches(ctx, again, policies)
	if err != nil || len(denials) > 0 {
		return Mutation{Ticket: r.Ticket, Denials: denials}, err
	}
	_, unstable, err := ApplyPatches(ticket, second)
	if err != nil {
		return none, err
	}
	for _, p := range unstable {
		denials = append(denials, policyError(p.Policy, fmt.Errorf("%s: %s: %w", RuleMutate, p.Path, errUnstable)))
	}
	if len(denials) > 0 {
		return Mutation{Ticket: r.Ticket, Denials: denials}, nil
	}
	return Mutation{Ticket: ticket, Patches: changed}, nil
}

// mutates says whether the policy is asked what it sets.
func (h *held) mutates() bool {
	rev := h.serving
	return rev != nil && rev.enforcement == flightsv1.EnforcementEnforce && rev.program != nil && rev.program.mutate != nil
}

// patches asks policies once. A policy error is a denial.
func (e *Engine) patches(ctx context.Context, r Request, policies []*held) ([]Patch, []Denial, error) {
	shared, err := buildInput(r)
	if err != nil {
		return nil, nil, err
	}
	var over atomic.Bool
	defer context.AfterFunc(ctx, func() { over.Store(true) })()
	var all []Patch
	var denials []Denial
	for _, h := range policies {
		found, err := h.serving.patches(ctx, evaluation{shared: shared, over: &over, limit: e.limits.policy})
		if err != nil {
			denials = append(denials, policyError(h.name, err))
		}
		all = append(all, found...)
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, nil, fmt.Errorf("ask what policies set in a ticket: %w", err)
	}
	joined, conflicts := joinPatches(all)
	for _, c := range conflicts {
		denials = append(denials, policyError(c.Policies[0], c))
	}
	return joined, denials, nil
}

func (rev *revision) patches(ctx context.Context, e evaluation) (patches []Patch, err error) {
	e.query = rev.program.mutate
	e.read = func(r topdown.QueryResult) (err error) {
		patches, err = rev.readPatches(r[ast.Var(RuleMutate)])
		return err
	}
	if err := rev.run(ctx, e); err != nil {
		return nil, fmt.Errorf("%s: %w", RuleMutate, err)
	}
	return patches, nil
}
