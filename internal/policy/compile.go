package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// revision is one generation of a policy. It never changes once compiled, but for its quarantine. One that failed to
// compile has everything but an executable.
type revision struct {
	name        string
	uid         types.UID
	generation  int64
	digest      string
	enforcement flightsv1.Enforcement
	match       matcher
	executable
	quarantine quarantine
	counting   quarantine // of counts, which run for all tickets in a row
}

// executable is what can be evaluated: a program and its parameters.
type executable struct {
	program    *program
	parameters field
}

// compilation is what policies are compiled with.
type compilation struct {
	limits limits
	acts   []Rule // what the calling program acts on
	// known finds a program that is held already for the same text; it may be nil. Policies made of one library text
	// share one program, which is most of what they weigh and of the time that they take to compile.
	known func(source string) *program
}

// compile does all that can be done before the first ticket. On failure the revision has no program but still knows its
// match and enforcement, and the error is a *CompileError.
func (c compilation) compile(ctx context.Context, p *flightsv1.FlightPolicy) (*revision, error) {
	rev := &revision{
		name: p.Name, uid: p.UID, generation: p.Generation, digest: digest(p),
		enforcement: enforcement(p.Spec.Enforcement),
	}
	var problems []Problem
	rev.match, problems = newMatcher(p.Spec.Match)
	if rev.enforced() && rev.enforcement != flightsv1.EnforcementEnforce {
		problems = append(problems, Problem{
			Field:   "spec.enforcement",
			Message: fmt.Sprintf("%q isn't supported by this version; use Enforce, Warn or Shadow", rev.enforcement),
		})
	}
	source, from, problem := moduleSource(p.Spec)
	if problem != nil {
		return rev, compileError(append(problems, *problem))
	}
	text := moduleText{source, from, c.acts}
	built, found := withinBudget(ctx, c.limits.compile, text, func() (executable, []Problem) {
		if c.known != nil {
			if program := c.known(source); program != nil {
				return program.with(p.Spec.Parameters)
			}
		}
		return text.build(p.Spec.Parameters)
	})
	if problems = append(problems, found...); len(problems) > 0 {
		return rev, compileError(problems)
	}
	if found := built.program.checkMatch(p.Spec.Match); len(found) > 0 {
		return rev, compileError(found)
	}
	rev.executable = built
	if found := rev.tryOut(ctx, text, c.limits); len(found) > 0 {
		rev.executable = executable{}
		return rev, compileError(found)
	}
	return rev, nil
}

// withinBudget gives up on a compilation that takes too long. The compiler can't be interrupted, so what was given up on
// runs on to its end, which the caps on modules bound; its result is dropped. A panic of the compiler is a problem like
// others.
func withinBudget(ctx context.Context, budget time.Duration, text moduleText, build func() (executable, []Problem)) (executable, []Problem) {
	type result struct {
		built    executable
		problems []Problem
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r = result{problems: []Problem{text.at(nil,
					"the Rego compiler failed on this module (%v): simplify it, and report the module as a defect", p)}}
			}
			done <- r
		}()
		r.built, r.problems = build()
	}()
	timer := time.NewTimer(budget)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.built, r.problems
	case <-ctx.Done():
		return executable{}, []Problem{text.at(nil, "compile the module: %v", ctx.Err())}
	case <-timer.C:
		return executable{}, []Problem{text.at(nil, "the module takes more than %v to compile: simplify it, or split it into several policies", budget)}
	}
}

// build compiles the module and reads the parameters. It tells the problems of both.
func (t moduleText) build(raw *apiextensionsv1.JSON) (executable, []Problem) {
	module, problems := t.parse()
	if module == nil {
		_, problem := readParameters(raw)
		return executable{}, append(problems, problem...)
	}
	schema, found := t.parameterSchema(module)
	problems = append(problems, found...)
	if len(found) == 0 {
		_, found = settle(schema, raw)
		problems = append(problems, found...)
	}
	program, found := t.compile(module, schema)
	if problems = append(problems, found...); len(problems) > 0 {
		return executable{}, problems
	}
	return program.with(raw)
}

// with makes a program executable with parameters.
func (p *program) with(raw *apiextensionsv1.JSON) (executable, []Problem) {
	parameters, problems := settle(p.parameters, raw)
	if len(problems) > 0 {
		return executable{}, problems
	}
	v, err := ast.InterfaceToValue(parameters)
	if err != nil {
		return executable{}, []Problem{{Field: specParameters, Message: err.Error()}}
	}
	return executable{p, field{ast.InternedTerm("parameters"), ast.NewTerm(v)}}, nil
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
	spec.Tests = nil // they play no part once they have passed
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
