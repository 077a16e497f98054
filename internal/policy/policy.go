// Package policy is the Rego engine: it compiles FlightPolicies, builds the input and decides.
//
// It knows OPA and the API types. It knows no Kubernetes client (see the package loader), no HTTP and no clock: the
// time is part of the input. Webhook, second gate, audit and command line share its one input builder and one Decide.
package policy

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/places"
)

// Stage is the moment at which policies are asked.
type Stage string

// The stages.
const (
	StageAdmission Stage = "Admission"
	StageBooking   Stage = "Booking" // an offer is known
	StageAudit     Stage = "Audit"
)

// User is who asks.
type User struct {
	Username string
	Groups   []string
}

// Namespace is the ticket's namespace.
type Namespace struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
}

// Request is everything a decision rests on.
type Request struct {
	Stage     Stage
	Operation flightsv1.Operation
	DryRun    bool
	User      User
	Namespace Namespace
	Ticket    *flightsv1.FlightTicket
	OldTicket *flightsv1.FlightTicket // nil at create
	Route     places.Route
	Offer     *booking.Offer // at StageBooking, else nil
	Now       time.Time
}

// Denial is one reason why a ticket is refused.
type Denial struct {
	Policy string
	// Code is machine-readable; empty unless the policy gives one. CodePolicyError marks a policy that could not be
	// evaluated.
	Code    string
	Message string
}

// CodePolicyError is the code of a denial that stands for a policy which could not be evaluated.
const CodePolicyError = "PolicyError"

// Warning is what a policy wants the user to know.
type Warning struct {
	Policy  string
	Message string
}

// Decision is the answer of all policies, each list sorted and free of repeats.
type Decision struct {
	Denials  []Denial
	Warnings []Warning
	// Evaluated are the names of the policies that matched and were asked, sorted, with each one's result
	// ("allow", "deny", "warn", "error").
	Evaluated []PolicyResult
}

// PolicyResult is what one policy said, for metrics and logs.
type PolicyResult struct {
	Policy   string
	Result   string
	Duration time.Duration
	Err      error // why Result is "error"
}

// Allowed says whether nothing denies.
func (d Decision) Allowed() bool { return len(d.Denials) == 0 }

// Problem is one thing that is wrong with a policy.
type Problem struct {
	// Field is the path in the FlightPolicy: "spec.rego", "spec.library", "spec.parameters.airports".
	Field string
	// Row and Col are the place in the module, from 1; 0 when the problem has none.
	Row, Col int
	Message  string
}

// CompileError lists everything that is wrong with a policy, sorted by place.
type CompileError struct{ Problems []Problem }

// Error joins the problems.
func (e *CompileError) Error() string { return fmt.Sprint(e.Problems) }

// Loaded is what the engine holds of one policy.
type Loaded struct {
	UID        types.UID
	Generation int64
	// Digest is of everything that decides: module, parameters, match, enforcement.
	Digest string
	// Err is why the policy can't be evaluated; nil when it serves.
	Err error
}

// Engine holds compiled policies and decides. It is safe for concurrent use; Set and Delete don't wait for decisions.
type Engine struct{}

// NewEngine returns an engine without policies.
func NewEngine() *Engine { panic("to be written") }

// Validate compiles a policy as Set would and forgets it. The error is a *CompileError.
func Validate(ctx context.Context, p *flightsv1.FlightPolicy) error { panic("to be written") }

// Set compiles a policy and puts it in force. If it doesn't compile, it is held as broken: under Enforce every ticket
// that it matches is refused, under Warn a warning is given. The error is a *CompileError.
func (e *Engine) Set(ctx context.Context, p *flightsv1.FlightPolicy) error { panic("to be written") }

// Delete takes a policy out of force.
func (e *Engine) Delete(name string) { panic("to be written") }

// Loaded tells what the engine holds, by name.
func (e *Engine) Loaded() map[string]Loaded { panic("to be written") }

// Decide asks every policy that matches the request. An error means that no decision could be made (bad request,
// context over); the caller must refuse.
func (e *Engine) Decide(ctx context.Context, r Request) (Decision, error) { panic("to be written") }
