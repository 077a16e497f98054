package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
)

// Claim is what a stored ticket claims of a bucket.
type Claim struct {
	Ticket types.NamespacedName
	UID    types.UID
	Amount int64
}

// Claims finds out what stored tickets claim of some buckets. A bucket doesn't list the tickets that are counted in it, so
// the policies are asked, by the engine that the controller counts with.
type Claims struct {
	operatorNamespace string
	quotas            []policy.Quota
	buckets           map[types.NamespacedName][]Claim
	problems          []error
	failed            map[string]failure // by policy
}

// failure is how many tickets a policy could not be asked about, and one of them.
type failure struct {
	tickets int
	example types.NamespacedName
}

// NewClaims compiles the policies of some buckets. Under a policy that doesn't compile, that is gone or that may not be read
// nothing is claimed: its tickets are told as Others. The error is the context's.
func NewClaims(ctx context.Context, buckets []flightsv1.QuotaBucket, policies Policies, operatorNamespace string) (*Claims, error) {
	c := &Claims{operatorNamespace: operatorNamespace, buckets: map[types.NamespacedName][]Claim{}, failed: map[string]failure{}}
	engine := policy.NewEngine(policy.Rules()...)
	seen := map[types.UID]bool{}
	for i := range buckets {
		b := &buckets[i]
		c.buckets[placeOf(b)] = nil
		owner := policies.of(b)
		if seen[b.PolicyUID] || owner == nil {
			continue
		}
		seen[b.PolicyUID] = true
		err := engine.Set(ctx, owner)
		var broken *policy.CompileError
		switch {
		case errors.As(err, &broken):
			c.problems = append(c.problems, fmt.Errorf("policy %s doesn't compile, so its counted tickets can't be told by name; see kubectl describe flightpolicy %s", b.Policy, b.Policy))
		case err != nil:
			return nil, fmt.Errorf("compile policy %s: %w", b.Policy, err)
		}
	}
	c.quotas = engine.Quotas()
	return c, nil
}

// Add asks the policies about a ticket. The error is the context's.
func (c *Claims) Add(ctx context.Context, t *flightsv1.FlightTicket) error {
	ticket := types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
	holding, unreadable := policy.NewHolding(t, nil)
	for _, q := range c.quotas {
		if unreadable != nil {
			c.fail(q.Policy(), ticket)
			continue
		}
		claims, err := q.Claims(ctx, holding)
		if ctx.Err() != nil {
			return fmt.Errorf("work out what %s claims: %w", ticket, ctx.Err())
		}
		if err != nil {
			c.fail(q.Policy(), ticket)
			continue
		}
		for _, claim := range claims {
			place := claim.Place(t.Namespace, c.operatorNamespace)
			if of, shown := c.buckets[place]; shown {
				c.buckets[place] = append(of, Claim{ticket, t.UID, claim.Amount})
			}
		}
	}
	return nil
}

func (c *Claims) fail(name string, ticket types.NamespacedName) {
	f := c.failed[name]
	if f.tickets++; f.tickets == 1 {
		f.example = ticket
	}
	c.failed[name] = f
}

// unasked says of which policies the claims could not be found out. What the engine says of a ticket isn't repeated: it may
// quote the ticket.
func (c *Claims) unasked() []error {
	problems := slices.Clone(c.problems)
	for _, q := range c.quotas {
		if f := c.failed[q.Policy()]; f.tickets > 0 {
			problems = append(problems, fmt.Errorf("policy %s can't be asked about %d tickets, such as %s, so they aren't told by name; "+
				"see kubectl describe flightpolicy %s", q.Policy(), f.tickets, f.example, q.Policy()))
		}
	}
	return problems
}

func placeOf(b *flightsv1.QuotaBucket) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
}
