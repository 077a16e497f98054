// Package policy is the Rego engine: it compiles FlightPolicies, builds the input and decides.
//
// It knows OPA and the API types. It knows no Kubernetes client (see the package loader) and no HTTP, and policies have no
// clock: the time is part of the input. Webhook, second gate, audit and command line share its one input builder and one
// Decide.
//
// A policy may take 100 ms of a ticket and all policies 2 s; what takes longer is a policy error, and its denial is Late.
// After three time-outs in a row a policy is put in quarantine for 30 s, and errs at once. When a policy is applied it is compiled within 3 s and
// tried on sample inputs, where it may allocate 64 MiB. A stored one may take 30 s to compile, since it may have to on a
// busy machine, and a policy that isn't compiled refuses everybody. Deadlines don't bound memory: a policy that builds something huge
// from unusual input only is cut by time, not by size.
package policy

import (
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/places"
	"github.com/flight-operator/flight-operator/internal/quota"
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
	// Details is what the policy adds for programs: JSON text, or empty.
	Details string
	// Late says that the policy had no time to answer, or is in quarantine because it had none before. It refuses like any
	// other, but says nothing about the ticket: asked again, the policy may allow it.
	Late bool
}

// CodePolicyError is the code of a denial that stands for a policy which could not be evaluated.
const CodePolicyError = "PolicyError"

// Warning is what a policy wants the user to know.
type Warning struct {
	Policy  string
	Message string
}

// Hold is why a ticket is admitted but not booked until somebody approves it.
type Hold struct {
	Policy  string
	Message string
}

// Decision is the answer of all policies, each list sorted and free of repeats.
type Decision struct {
	Denials  []Denial
	Warnings []Warning
	// Holds are those of enforced policies. Nothing may be booked until they are approved.
	Holds []Hold
	// Claims are what the ticket charges to buckets under enforced policies, sorted by the buckets' names. It must be
	// reserved in each of them before the ticket is admitted, and after everything else allows it (see Allowed): what is
	// reserved for a ticket that is refused must be given back. At StageBooking and StageAudit they say what the ticket
	// holds.
	Claims []quota.Claim
	// BookingClaims are those of quotas that are claimed when the offer is known; none but at StageBooking.
	BookingClaims []quota.Claim
	// WarnClaims are those of policies that only warn: they are compared with the buckets, and nothing is written.
	WarnClaims []quota.Claim
	// OldClaims are what the old ticket holds in any bucket, by the policies as they are now; none but at
	// StageAdmission. What isn't here is taken for 0.
	OldClaims []quota.Claim
	// Shadow is what the policies say that are only tried out: it must refuse nobody and be told to no user.
	Shadow []ShadowResult
	// Evaluated are the names of the policies that matched and were asked, sorted, with each one's result
	// ("allow", "deny", "hold", "warn", "shadow", "error").
	Evaluated []PolicyResult
}

// PolicyResult is what one policy said, for metrics and logs.
type PolicyResult struct {
	Policy   string
	Result   string
	Duration time.Duration
	Err      error // why Result is "error"
}

// ShadowResult is what a policy would have done if it were enforced.
type ShadowResult struct {
	Policy   string
	Denials  []Denial
	Warnings []Warning
	Holds    []Hold
	Claims   []quota.Claim // sorted by bucket
	Err      error         // why it could not be evaluated, which would have refused the ticket
}

// Allowed says whether nothing denies.
func (d Decision) Allowed() bool { return len(d.Denials) == 0 }
