package webhooks

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
)

// maxCompiles is how many policies are compiled at once for admission: compiling needs a processor, and tickets are
// reviewed by the same process.
const maxCompiles = 2

// policyValidator refuses policies that don't compile, with every problem and its place.
type policyValidator struct {
	slots   chan struct{}
	compile func(context.Context, *flightsv1.FlightPolicy) error
}

func (v policyValidator) decide(ctx context.Context, req admission.Request) outcome {
	p, old, err := decodePair[flightsv1.FlightPolicy](req)
	if err != nil {
		return undecided(req, err)
	}
	// A policy that is stored and no longer compiles, after an upgrade perhaps, must still take labels and finalizers.
	if old != nil && equality.Semantic.DeepEqual(p.Spec, old.Spec) {
		return allow(nil)
	}
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return undecided(req, errors.New("other policies are being compiled"))
	}
	err = v.compile(ctx, p)
	var broken *policy.CompileError
	switch {
	case errors.As(err, &broken):
		return invalid(req, problemReasons(broken.Problems))
	case err != nil:
		return undecided(req, fmt.Errorf("compile the policy: %w", err))
	}
	return allow(nil)
}

// problemReasons keeps the order of the problems, which is by place.
func problemReasons(problems []policy.Problem) []reason {
	reasons := make([]reason, len(problems))
	for i, p := range problems {
		reasons[i] = reason{source: p.Field, field: p.Field, code: metav1.CauseTypeFieldValueInvalid, text: p.Message}
		if p.Row > 0 {
			reasons[i].text = fmt.Sprintf("line %d, column %d: %s", p.Row, p.Col, p.Message)
		}
	}
	return reasons
}
