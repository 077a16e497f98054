package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// limits bound what policies may take.
type limits struct {
	policy  time.Duration // one evaluation of one policy
	request time.Duration // all policies of one request
}

func defaultLimits() limits {
	return limits{policy: 100 * time.Millisecond, request: 2 * time.Second}
}

// answer is what one policy said. Its lists are sorted and free of repeats.
type answer struct {
	denials  []Denial
	warnings []Warning
}

// errTimeout marks an evaluation that was cut at its deadline.
var errTimeout = errors.New("it took too long")

// stop tells a running evaluation to end. It implements topdown.Cancel, which is looked at many times, so it is two
// loads and no lock.
type stop struct {
	own    atomic.Bool
	parent *atomic.Bool
}

// Cancel ends the evaluation.
func (s *stop) Cancel() { s.own.Store(true) }

// Cancelled says whether it must end.
func (s *stop) Cancelled() bool { return s.own.Load() || s.parent.Load() }

// evaluate asks one policy. All errors are policy errors: evaluation failed, was cut, or answered in a wrong form.
func (rev *revision) evaluate(ctx context.Context, shared []field, over *atomic.Bool, limit time.Duration) (a answer, err error) {
	defer func() {
		if r := recover(); r != nil {
			a, err = answer{}, fmt.Errorf("the evaluation failed with a panic: %v", r)
		}
	}()
	cancel := &stop{parent: over}
	timer := time.AfterFunc(limit, cancel.Cancel)
	defer timer.Stop()

	input := ast.ObjectTerm(append(slices.Clone(shared), field{ast.InternedTerm("parameters"), rev.parameters})...)
	store := inmem.New()
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return answer{}, err
	}
	defer store.Abort(ctx, txn)
	query := topdown.NewQuery(rev.program.query).WithCompiler(rev.program.compiler).WithStore(store).WithTransaction(txn).
		WithInput(input).WithCancel(cancel).WithStrictBuiltinErrors(true).WithMetrics(metrics.NoOp()).WithTime(time.Unix(0, 1))
	answered := false
	err = query.Iter(ctx, func(r topdown.QueryResult) error {
		answered = true
		a, err = rev.read(r)
		return err
	})
	switch {
	case topdown.IsCancel(err) && ctx.Err() != nil:
		return answer{}, fmt.Errorf("the request ended first: %w", ctx.Err())
	case topdown.IsCancel(err):
		return answer{}, fmt.Errorf("%w: more than %v", errTimeout, limit)
	case err != nil:
		return answer{}, err
	case !answered:
		return answer{}, errors.New("it gave no result")
	}
	return a, nil
}

// read takes the contract rules out of a result.
func (rev *revision) read(r topdown.QueryResult) (answer, error) {
	var a answer
	if denials, ok := r["deny"]; ok {
		if err := each(denials, func(t *ast.Term) error {
			d, err := readDenial(t)
			d.Policy = rev.name
			a.denials = append(a.denials, d)
			return err
		}); err != nil {
			return answer{}, fmt.Errorf("deny: %w", err)
		}
	}
	if warnings, ok := r["warn"]; ok {
		if err := each(warnings, func(t *ast.Term) error {
			message, err := readMessage(t)
			a.warnings = append(a.warnings, Warning{rev.name, message})
			return err
		}); err != nil {
			return answer{}, fmt.Errorf("warn: %w", err)
		}
	}
	return a, nil
}

// each visits the elements of a set in order.
func each(t *ast.Term, visit func(*ast.Term) error) error {
	set, ok := t.Value.(ast.Set)
	if !ok {
		return fmt.Errorf("is no set but %s", ast.ValueName(t.Value))
	}
	return set.Iter(visit)
}

// readDenial reads an element of deny: a message, or an object of msg, code and details.
func readDenial(t *ast.Term) (Denial, error) {
	obj, ok := t.Value.(ast.Object)
	if !ok {
		message, err := readMessage(t)
		return Denial{Message: message}, err
	}
	var d Denial
	err := obj.Iter(func(k, v *ast.Term) error {
		var err error
		switch k.Value {
		case ast.String("msg"):
			d.Message, err = readMessage(v)
		case ast.String("code"):
			d.Code, err = readMessage(v)
		case ast.String("details"):
			d.Details = v.Value.String()
		default:
			err = fmt.Errorf("an element has the unknown field %v: there are msg, code and details", k)
		}
		return err
	})
	if err == nil && d.Message == "" {
		err = errors.New("an element has no msg")
	}
	return d, err
}

func readMessage(t *ast.Term) (string, error) {
	s, ok := t.Value.(ast.String)
	switch {
	case !ok:
		return "", fmt.Errorf("an element is of type %s where a text is due", ast.ValueName(t.Value))
	case s == "":
		return "", errors.New("an element is an empty text")
	}
	return string(s), nil
}
