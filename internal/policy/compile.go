package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// revision is one generation of a policy. It never changes once compiled. One that failed to compile has everything
// but a program.
type revision struct {
	name        string
	uid         types.UID
	generation  int64
	digest      string
	enforcement flightsv1.Enforcement
	match       matcher
	parameters  *ast.Term
	program     *program
}

// compilePolicy does all that can be done before the first ticket. On failure the revision has no program but still
// knows its match and enforcement, and the error is a *CompileError.
func compilePolicy(ctx context.Context, p *flightsv1.FlightPolicy, l limits) (*revision, error) {
	rev := &revision{
		name: p.Name, uid: p.UID, generation: p.Generation, digest: digest(p),
		enforcement: enforcement(p.Spec.Enforcement),
	}
	var problems []Problem
	rev.match, problems = newMatcher(p.Spec.Match)
	if e := rev.enforcement; e != flightsv1.EnforcementEnforce && e != flightsv1.EnforcementWarn {
		problems = append(problems, Problem{
			Field:   "spec.enforcement",
			Message: fmt.Sprintf("%q isn't supported by this version; use Enforce or Warn", e),
		})
	}
	source, from, problem := moduleSource(p.Spec)
	if problem != nil {
		return rev, compileError(append(problems, *problem))
	}
	problems = append(problems, rev.compile(ctx, moduleText{source, from}, p.Spec.Parameters, l)...)
	return rev, compileError(problems)
}

// moduleSource is the Rego text of a policy and the field that it comes from.
func moduleSource(spec flightsv1.FlightPolicySpec) (source, from string, problem *Problem) {
	switch {
	case (spec.Library == "") == (spec.Rego == ""):
		return "", "", &Problem{
			Field:   "spec",
			Message: "set exactly one of library (a shipped policy's name) and rego (a Rego module)",
		}
	case spec.Rego != "":
		return spec.Rego, specRego, nil
	}
	source, problem = librarySource(spec.Library)
	return source, specLibrary, problem
}

// digest is of everything that decides: spec as it stands, with its defaults. Name, labels and generation don't
// decide. Replicas of two versions of this program may ship different texts under one name, so the text is part of it.
func digest(p *flightsv1.FlightPolicy) string {
	spec := *p.Spec.DeepCopy()
	spec.Enforcement = enforcement(spec.Enforcement)
	if source, from, problem := moduleSource(spec); problem == nil && from == specLibrary {
		spec.Rego = source
	}
	if spec.Parameters != nil {
		if canonical, err := canonicalJSON(spec.Parameters.Raw); err == nil {
			spec.Parameters.Raw = canonical
		}
	}
	raw, err := json.Marshal(spec)
	if err != nil { // parameters that are no JSON; the policy is broken on every replica alike
		raw = []byte(err.Error())
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func enforcement(e flightsv1.Enforcement) flightsv1.Enforcement {
	if e == "" {
		return flightsv1.EnforcementEnforce
	}
	return e
}
