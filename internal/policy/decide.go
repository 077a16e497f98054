package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// The results that a PolicyResult can have.
const (
	ResultAllow = "allow"
	ResultDeny  = "deny"
	ResultHold  = "hold"
	ResultWarn  = "warn"
	// ResultShadow is that of a policy that is only tried out, whatever it says.
	ResultShadow = "shadow"
	ResultError  = "error"
)

// Decide asks every policy that matches the request. An error means that no decision could be made (*RequestError, or
// the context's); the caller must refuse.
func (e *Engine) Decide(ctx context.Context, r Request) (Decision, error) {
	if err := checkRequest(r); err != nil {
		return Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return Decision{}, fmt.Errorf("decide on a ticket: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, e.limits.request)
	defer cancel()
	var over atomic.Bool
	defer context.AfterFunc(ctx, func() { over.Store(true) })()

	policies := e.snapshot.Load().concerning(&r)
	if len(policies) == 0 {
		return Decision{}, nil
	}
	shared, err := buildInput(r)
	if err != nil {
		return Decision{}, err
	}
	tickets, err := newHoldings(r, policies)
	if err != nil {
		return Decision{}, err
	}
	// Those that refuse nobody come last: the time that they take may cost others' warnings, and never a refusal.
	slices.SortStableFunc(policies, func(a, b *held) int {
		return cmp.Compare(enforcementOrder(a), enforcementOrder(b))
	})
	var d Decision
	for _, h := range policies {
		start := time.Now()
		a, err := h.ask(ctx, shared, &over, e.limits.policy)
		if err == nil {
			err = h.claims(ctx, tickets, &a, e.limits.policy)
		}
		d.add(h.inForce(), a, err, time.Since(start))
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return Decision{}, fmt.Errorf("decide on a ticket: %w", err)
	}
	d.sort()
	return d, nil
}

func enforcementOrder(h *held) int {
	return slices.Index([]flightsv1.Enforcement{flightsv1.EnforcementWarn, flightsv1.EnforcementShadow}, h.inForce().enforcement)
}

// enforced says whether the policy refuses: any that isn't known not to.
func (rev *revision) enforced() bool {
	return rev.enforcement != flightsv1.EnforcementWarn && rev.enforcement != flightsv1.EnforcementShadow
}

// inForce is the revision whose match and enforcement count.
func (h *held) inForce() *revision {
	if h.serving != nil {
		return h.serving
	}
	return h.failed
}

// ask evaluates the serving revision, unless it is in quarantine.
func (h *held) ask(ctx context.Context, shared []field, over *atomic.Bool, limit time.Duration) (answer, error) {
	rev := h.serving
	if rev == nil {
		return answer{}, fmt.Errorf("it doesn't compile: %s", firstProblem(h.err))
	}
	if err := rev.quarantine.check(time.Now()); err != nil {
		return answer{}, err
	}
	a, err := rev.evaluate(ctx, shared, over, limit)
	rev.quarantine.report(errors.Is(err, errTimeout), time.Now())
	return a, err
}

// firstProblem is as much of a compile error as a user needs, who can't mend it.
func firstProblem(err error) string {
	var compile *CompileError
	if errors.As(err, &compile) && len(compile.Problems) > 0 {
		return compile.Problems[0].String()
	}
	return err.Error()
}

// policyError is the denial that stands for a policy which could not be evaluated.
func policyError(policy string, err error) Denial {
	advice := "ask a cluster admin"
	if late(err) {
		advice = "it is asked anew at every try: if it goes on like this, " + advice
	}
	return Denial{Policy: policy, Code: CodePolicyError, Message: unanswered(policy, err) + "; " + advice, Late: late(err)}
}

// unanswered says why a policy gave no answer.
func unanswered(policy string, err error) string {
	reason := strings.Join(strings.Fields(err.Error()), " ") // OPA breaks some of its messages into lines
	return fmt.Sprintf("policy %s could not be evaluated: %s", policy, shorten(reason))
}

// add enters what one policy said.
func (d *Decision) add(rev *revision, a answer, err error, took time.Duration) {
	enforced := rev.enforced()
	result := PolicyResult{Policy: rev.name, Result: ResultAllow, Duration: took, Err: err}
	switch {
	case rev.enforcement == flightsv1.EnforcementShadow:
		d.addShadow(rev, a, err)
		if result.Result = ResultShadow; err != nil {
			result.Result = ResultError
		}
		a = answer{}
	case err != nil:
		a, result.Result = answer{}, ResultError
		if enforced {
			d.Denials = append(d.Denials, policyError(rev.name, err))
		} else {
			d.Warnings = append(d.Warnings, Warning{rev.name, unanswered(rev.name, err) + "; ask a cluster admin"})
		}
	case len(a.denials) > 0 && enforced:
		result.Result = ResultDeny
		d.Denials = append(d.Denials, a.denials...)
	case len(a.denials) > 0:
		result.Result = ResultWarn
		for _, denial := range a.denials {
			d.Warnings = append(d.Warnings, Warning{rev.name, "would refuse: " + denial.Message})
		}
	case len(a.holds) > 0 && enforced:
		result.Result = ResultHold
	case len(a.warnings) > 0 || len(a.holds) > 0:
		result.Result = ResultWarn
	}
	d.addHolds(rev, a)
	d.addClaims(rev, a)
	d.Warnings = append(d.Warnings, a.warnings...)
	d.Evaluated = append(d.Evaluated, result)
}

// addShadow records what a policy would have done.
func (d *Decision) addShadow(rev *revision, a answer, err error) {
	s := ShadowResult{Policy: rev.name, Err: err}
	if err == nil {
		s.Denials, s.Warnings, s.Claims = a.denials, a.warnings, a.claims
		for _, message := range a.holds {
			s.Holds = append(s.Holds, Hold{rev.name, message})
		}
	}
	d.Shadow = append(d.Shadow, s)
}

// addHolds enters why the ticket must wait for an approval. A policy that only warns says so.
func (d *Decision) addHolds(rev *revision, a answer) {
	for _, message := range a.holds {
		if rev.enforced() {
			d.Holds = append(d.Holds, Hold{rev.name, message})
		} else {
			d.Warnings = append(d.Warnings, Warning{rev.name, "would wait for approval: " + message})
		}
	}
}

func (d *Decision) sort() {
	slices.SortFunc(d.Evaluated, func(a, b PolicyResult) int { return cmp.Compare(a.Policy, b.Policy) })
	slices.SortFunc(d.Denials, func(a, b Denial) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Details, b.Details))
	})
	d.Denials = slices.Compact(d.Denials)
	slices.SortFunc(d.Warnings, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Message, b.Message))
	})
	d.Warnings = slices.Compact(d.Warnings)
	slices.SortFunc(d.Shadow, func(a, b ShadowResult) int { return cmp.Compare(a.Policy, b.Policy) })
	slices.SortFunc(d.Holds, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Message, b.Message))
	})
	for _, claims := range [][]quota.Claim{d.Claims, d.BookingClaims, d.WarnClaims, d.OldClaims} {
		sortClaims(claims)
	}
}
