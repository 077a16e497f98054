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
	"github.com/open-policy-agent/opa/v1/topdown"
)

// limits bound what policies may take.
type limits struct {
	policy      time.Duration // one evaluation of one policy
	request     time.Duration // all policies of one request
	compile     time.Duration // compilation of one policy
	allocations uint64        // bytes that one evaluation may allocate on a sample input
	// stored says that the policy was tried before it was stored. Then only errors count on sample inputs: time and
	// allocations depend on what else the machine does, and a broken policy refuses everybody.
	stored bool
}

func defaultLimits() limits {
	return limits{
		policy: 100 * time.Millisecond, request: 2 * time.Second,
		compile: 3 * time.Second, allocations: 64 << 20, // inside the deadline of admission, so that it can be told
	}
}

// storedLimits are those of policies that were held to defaultLimits when they were applied.
func storedLimits() limits {
	l := defaultLimits()
	l.compile, l.stored = 30*time.Second, true
	return l
}

// errTimeout marks an evaluation that was cut at its deadline.
var errTimeout = errors.New("it took too long")

// late reports whether an error says nothing but that a policy had no time: its own, or that of the request.
func late(err error) bool {
	return errors.Is(err, errTimeout) || errors.Is(err, errQuarantine) || errors.Is(err, context.DeadlineExceeded)
}

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
	if rev.program != nil && rev.program.query == nil { // it only sets fields
		return answer{}, nil
	}
	err = rev.run(ctx, evaluation{
		shared: shared, over: over, limit: limit,
		read: func(r topdown.QueryResult) (err error) {
			a, err = rev.read(r)
			return err
		},
	})
	if err != nil {
		return answer{}, err
	}
	return a, nil
}

// evaluation is one run of a query of a program.
type evaluation struct {
	query  ast.Body     // nil for that of decisions
	shared []field      // the input but for parameters
	over   *atomic.Bool // ends it from outside
	limit  time.Duration
	read   func(topdown.QueryResult) error
}

// run evaluates a query and hands its one result over.
func (x executable) run(ctx context.Context, e evaluation) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the evaluation failed with a panic: %v", r)
		}
	}()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the request ended first: %w", err)
	}
	cancel := &stop{parent: e.over}
	timer := time.AfterFunc(e.limit, cancel.Cancel)
	defer timer.Stop()

	input := ast.ObjectTerm(append(slices.Clone(e.shared), x.parameters)...)
	p, body := x.program, e.query
	if body == nil {
		body = p.query
	}
	query := topdown.NewQuery(body).WithCompiler(p.compiler).WithStore(p.store).WithTransaction(p.txn).
		WithInput(input).WithCancel(cancel).WithStrictBuiltinErrors(true).WithMetrics(metrics.NoOp()).
		WithTime(time.Unix(0, 1)) // policies have no clock
	answered := false
	err = query.Iter(ctx, func(r topdown.QueryResult) error {
		answered = true
		return e.read(r)
	})
	switch {
	case topdown.IsCancel(err) && ctx.Err() != nil:
		return fmt.Errorf("the request ended first: %w", ctx.Err())
	case topdown.IsCancel(err):
		return fmt.Errorf("%w: more than %v", errTimeout, e.limit)
	case err == nil && !answered:
		return errors.New("it gave no result")
	}
	return err
}
