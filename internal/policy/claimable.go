package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// What a ticket claims is computed when it is admitted, and again from the stored ticket by whoever counts, at any time
// later. Both must come out the same, or a quota lets too many in. So the rule quota, and what it uses, may only read
// what can't change without a new generation of the ticket, or doesn't change at all. That is checked on the text: each
// reference to input must begin with one of a few paths, whatever is done with the value afterwards.

// claimPaths are what every claim may see.
var claimPaths = []ast.Ref{
	ast.MustParseRef("input.ticket.spec"),
	ast.MustParseRef("input.ticket.metadata.name"),
	ast.MustParseRef("input.ticket.metadata.namespace"),
	ast.MustParseRef("input.ticket.metadata.uid"),
	ast.MustParseRef("input.ticket.metadata.creationTimestamp"),
	ast.MustParseRef("input.requester"),
	ast.MustParseRef("input.namespace.name"),
	inputRoute,
	inputParameters,
}

// inputRoute follows from the spec and the table of places.
var inputRoute = ast.MustParseRef("input.route")

// offerPaths are what claims at Booking may see besides: what is written down of an offer when it is taken.
var offerPaths = []ast.Ref{
	ast.MustParseRef("input.offer.price"),
	ast.MustParseRef("input.offer.segments"),
}

// quotaProgram is what there is to know of a module's rule quota.
type quotaProgram struct {
	// stage is when a ticket begins to claim: at Admission, or at Booking, when there is an offer.
	stage Stage
	query ast.Body // for the rule alone
	// routed says that the claims depend on the route.
	routed bool
}

// quotaStage is the key in METADATA above package that makes claims wait for the offer.
const quotaStage = "stage"

// quotaOf says what METADATA tells of the rule quota, or nil when the module has none.
func (t moduleText) quotaOf(module *ast.Module) (*quotaProgram, []Problem) {
	var q *quotaProgram
	for _, r := range module.Rules {
		if ruleName(r) == string(RuleQuota) {
			q = &quotaProgram{stage: StageAdmission}
		}
	}
	var problems []Problem
	for _, a := range module.Annotations {
		value, ok := a.Custom[quotaStage]
		switch {
		case !ok:
		case a.Scope != "package":
			problems = append(problems, t.at(a.Location, "METADATA custom.stage belongs right above package, here it has no effect"))
		case q == nil:
			problems = append(problems, t.at(a.Location, "METADATA custom.stage says when a quota is claimed, and the module has no rule quota: remove it"))
		case value == string(StageBooking):
			q.stage = StageBooking
		case value != string(StageAdmission):
			problems = append(problems, t.at(a.Location, "METADATA custom.stage is %v: it is Admission (the default) or Booking", value))
		}
	}
	return q, problems
}

// checkQuota refuses what a claim may not see, and notes what it does see.
func (t moduleText) checkQuota(resolved *ast.Module, q *quotaProgram) []Problem {
	if q == nil {
		return nil
	}
	c := claimCheck{text: t, allowed: claimPaths}
	if q.stage == StageBooking {
		c.allowed = slices.Concat(claimPaths, offerPaths)
	}
	used := usedRules(resolved, string(RuleQuota))
	for _, r := range resolved.Rules {
		if used[ruleName(r)] {
			c.rule(r)
		}
	}
	q.routed = c.routed
	return c.problems
}

// claimCheck goes through the rules that a claim rests on.
type claimCheck struct {
	text     moduleText
	allowed  []ast.Ref
	problems []Problem
	routed   bool
}

func (c *claimCheck) rule(r *ast.Rule) {
	for branch := r; branch != nil; branch = branch.Else {
		for _, part := range branch.Head.Ref()[1:] {
			c.walk(part) // the visitor leaves out the name of a rule, which may have parts such as [input.now]
		}
	}
	c.walk(r)
}

func (c *claimCheck) walk(x any) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.With:
			c.problems = append(c.problems, c.text.at(x.Location,
				"quota and what it uses may not replace input by with: what it would read then can't be told; write a function and hand the value on"))
			return true
		case *ast.Term:
			return c.term(x)
		}
		return false
	}).Walk(x)
}

// term says whether it has dealt with a term and its parts.
func (c *claimCheck) term(t *ast.Term) bool {
	path, isInput := inputRef(t)
	if !isInput {
		return false
	}
	if path.HasPrefix(inputRoute) {
		c.routed = true
	}
	if !slices.ContainsFunc(c.allowed, path.HasPrefix) {
		loc := t.Location
		if loc == nil {
			loc = path[0].Location
		}
		c.problems = append(c.problems, c.text.at(loc, "%s", c.refusal(path)))
	}
	for _, index := range path[1:] {
		c.walk(index)
	}
	return true
}

// refusal says what is wrong with a path, and what to read instead.
func (c *claimCheck) refusal(path ast.Ref) string {
	why := "may change while the ticket stays as it is, and then the count would no longer be of what was admitted"
	if slices.ContainsFunc(c.allowed, func(a ast.Ref) bool { return a.HasPrefix(constantPart(path)) }) {
		why = "may hold more than a claim may see"
	}
	instead := ""
	for _, hint := range claimHints {
		if path.HasPrefix(hint.path) {
			instead = hint.text
			break
		}
	}
	paths := make([]string, len(c.allowed))
	for i, a := range c.allowed {
		paths[i] = a.String()
	}
	return fmt.Sprintf("quota and what it uses may not read %v, which %s%s. They may read: %s",
		shown(path), why, instead, strings.Join(paths, ", "))
}

// claimHints say what to do instead, by the beginning of a path. The first that fits counts.
var claimHints = []struct {
	path ast.Ref
	text string
}{
	{ast.MustParseRef("input.user"), ". input.requester is who created the ticket"},
	{ast.MustParseRef("input.ticket.metadata.annotations").Append(ast.StringTerm(flightsv1.RequestedByAnnotation)), ". input.requester is the same"},
	{ast.MustParseRef("input.now"), ". Take windows of time from the ticket's own dates"},
	{ast.MustParseRef("input.offer"), ". Write custom.stage: Booking in METADATA above package for a quota that is claimed when the offer is there, and read input.offer.price or input.offer.segments"},
}

// constantPart is a path up to the first part that isn't a text.
func constantPart(path ast.Ref) ast.Ref {
	for i, t := range path[1:] {
		if _, isText := t.Value.(ast.String); !isText {
			return path[:i+1]
		}
	}
	return path
}

// checkMatch refuses a match of a policy with a quota that may change while a ticket stays as it is.
func (p *program) checkMatch(m flightsv1.PolicyMatch) []Problem {
	if p.quota == nil {
		return nil
	}
	var problems []Problem
	refuse := func(set bool, field string) {
		if set {
			problems = append(problems, Problem{Field: "spec.match." + field, Message: "a policy with a quota counts all stored tickets, by what can't change while a ticket stays as it is: " +
				"limit it by namespaces and excludedNamespaces alone, or in Rego by the ticket's spec"})
		}
	}
	refuse(len(m.Operations) > 0, "operations")
	refuse(m.NamespaceSelector != nil, "namespaceSelector")
	refuse(m.TicketSelector != nil, "ticketSelector")
	return problems
}
