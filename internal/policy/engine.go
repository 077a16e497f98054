package policy

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// Loaded is what the engine holds of one policy.
type Loaded struct {
	UID types.UID
	// Generation is the generation that serves; 0 when none does.
	Generation int64
	// Digest is of everything in the serving generation that decides: module, parameters, match, enforcement. Two
	// replicas with equal digests decide alike. Empty when no generation serves.
	Digest string
	// Err is why the newest generation can't be evaluated, a *CompileError; nil when the newest serves.
	Err error
	// FailedGeneration is the newest generation when Err is set; 0 otherwise. If Generation isn't 0, that older
	// generation goes on serving.
	FailedGeneration int64
}

// held is one policy as the engine holds it. It never changes once it is in a snapshot.
type held struct {
	name    string
	serving *revision // nil when no generation ever compiled
	// err is why the newest generation failed, and failed what is known of it; nil when the newest serves.
	err    error
	failed *revision
}

// Engine holds compiled policies and decides. It is safe for concurrent use; Set and Delete don't wait for decisions,
// and decisions don't wait for them.
type Engine struct {
	limits limits
	acts   []Rule

	mu       sync.Mutex // of those who change the snapshot
	snapshot atomic.Pointer[snapshot]
}

// NewEngine returns an engine without policies for a program that acts on some rules besides deny and warn. Policies with
// another rule are refused.
func NewEngine(acts ...Rule) *Engine {
	e := &Engine{limits: storedLimits(), acts: acts}
	e.snapshot.Store(newSnapshot(nil))
	return e
}

// Validate compiles a policy as Set would and forgets it. It also refuses parameters that name airports, cities and
// countries as no ticket has them, and a policy whose own tests fail. The error is a *CompileError, or the context's.
func (e *Engine) Validate(ctx context.Context, p *flightsv1.FlightPolicy) error {
	rev, err := compilation{limits: defaultLimits(), acts: e.acts}.compile(ctx, p)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	problems := checkNames(rev.program.parameters, p.Spec.Parameters)
	return compileError(append(problems, rev.runTests(ctx, p.Spec.Tests, defaultLimits().policy)...))
}

// Set compiles a policy and puts it in force. If it doesn't compile, the last good generation of the same object goes
// on serving; if there is none, the policy is held as broken: under Enforce every ticket that it matches is refused,
// under Warn a warning is given. The error is a *CompileError, or the context's when it ended first; then nothing has
// changed.
//
// Calls for one name must come in order; the caller is the one who knows which object is the newer.
func (e *Engine) Set(ctx context.Context, p *flightsv1.FlightPolicy) error {
	// Compiled outside the lock: a policy that takes its time holds up nobody.
	rev, err := compilation{e.limits, e.acts, e.program}.compile(ctx, p)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	next := &held{name: p.Name, serving: rev}
	if err != nil {
		next = &held{name: p.Name, err: err, failed: rev, serving: e.lastGood(p)}
	}
	e.replace(p.Name, next)
	return err
}

// program finds the program of a text among the policies that serve.
func (e *Engine) program(source string) *program {
	for _, h := range e.snapshot.Load().policies {
		if h.serving != nil && h.serving.program.source == source {
			return h.serving.program
		}
	}
	return nil
}

// lastGood is the revision that may go on serving in place of a broken p: one of the same object.
func (e *Engine) lastGood(p *flightsv1.FlightPolicy) *revision {
	policies := e.snapshot.Load().policies
	i, found := find(policies, p.Name)
	if !found || policies[i].serving == nil || policies[i].serving.uid != p.UID {
		return nil
	}
	return policies[i].serving
}

// Delete takes a policy out of force. A name that isn't held is no error.
func (e *Engine) Delete(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replace(name, nil)
}

// replace swaps the snapshot for one with next in place of what bears the name; nil removes. The caller holds mu.
func (e *Engine) replace(name string, next *held) {
	policies := slices.Clone(e.snapshot.Load().policies)
	i, found := find(policies, name)
	switch {
	case found && next != nil:
		policies[i] = next
	case found:
		policies = slices.Delete(policies, i, i+1)
	case next != nil:
		policies = slices.Insert(policies, i, next)
	}
	e.snapshot.Store(newSnapshot(policies))
}

func find(policies []*held, name string) (int, bool) {
	return slices.BinarySearchFunc(policies, name, func(h *held, n string) int { return cmp.Compare(h.name, n) })
}

// Loaded tells what the engine holds, by name.
func (e *Engine) Loaded() map[string]Loaded {
	policies := e.snapshot.Load().policies
	loaded := make(map[string]Loaded, len(policies))
	for _, h := range policies {
		loaded[h.name] = h.loaded()
	}
	return loaded
}

func (h *held) loaded() Loaded {
	l := Loaded{Err: h.err}
	if h.failed != nil {
		l.UID, l.FailedGeneration = h.failed.uid, h.failed.generation
	}
	if h.serving != nil {
		l.UID, l.Generation, l.Digest = h.serving.uid, h.serving.generation, h.serving.digest
	}
	return l
}
