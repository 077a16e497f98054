package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/places"
	"github.com/flight-operator/flight-operator/internal/policy"
)

// The paths that reviews are sent to. The webhook configurations name them too.
const (
	PathMutateTicket     = "/mutate-flights-com-v1-flightticket"
	PathValidateTicket   = "/validate-flights-com-v1-flightticket"
	PathValidatePolicy   = "/validate-flights-com-v1-flightpolicy"
	PathValidateProvider = "/validate-flights-com-v1-bookingprovider"
)

// The deadlines of a review, well inside the 5 s that the API server waits: an answer that says what took too long is
// worth more than its "context deadline exceeded". Policies have 2 s of a ticket's, and the ledger what is left.
const (
	mutationDeadline = 2 * time.Second
	ticketDeadline   = 4 * time.Second
	policyDeadline   = 4 * time.Second
	providerDeadline = 4 * time.Second
)

// Decider decides on tickets. *policy.Engine is one.
type Decider interface {
	// Decide asks every policy that matches. An error means that nothing was decided.
	Decide(ctx context.Context, r policy.Request) (policy.Decision, error)
}

// Server takes webhooks by path. controller-runtime's webhook.Server is one.
type Server interface {
	Register(path string, hook http.Handler)
}

// Options are what the webhooks rest on. All are required.
type Options struct {
	// Policies decides on tickets.
	Policies Decider
	// Validate says as a *policy.CompileError why a policy must not be stored. It has to be of an engine that acts on the
	// same rules as Policies.
	Validate func(ctx context.Context, p *flightsv1.FlightPolicy) error
	// Superseded returns once Policies no longer has a revision of a policy as the newest, because there is a newer one or
	// the policy is gone; or with an error when the context ends.
	Superseded func(ctx context.Context, policy string, uid types.UID, generation int64) error
	// Quotas is the ledger.
	Quotas Quotas
	// Synced says whether Policies holds every policy as it stands; while it doesn't, tickets are refused.
	Synced func() bool
	// Rights says who may adopt, resolve and retain.
	Rights Rights
	// Cached reads namespaces and booking providers from a cache.
	Cached client.Reader
	// Live reads them from the API server, for the rare question that a cache may answer too late.
	Live client.Reader
	// Clock gives the time that policies see.
	Clock clock.PassiveClock
	// Metrics counts.
	Metrics *Metrics
	// Log gets one line a review.
	Log logr.Logger
}

// Register puts all webhooks on a server.
func Register(server Server, o Options) {
	for path, hook := range Handlers(o) {
		server.Register(path, hook)
	}
}

// Handlers returns all webhooks by path. It takes a moment, so that no review does.
func Handlers(o Options) map[string]http.Handler {
	places.Load()
	tickets := ticketValidator{
		policies: o.Policies, quotas: o.Quotas, rights: o.Rights, synced: o.Synced, superseded: o.Superseded,
		cached: o.Cached, live: o.Live, clock: o.Clock,
	}
	policies := policyValidator{slots: make(chan struct{}, maxCompiles), compile: o.Validate}
	providers := providerValidator{live: o.Live}
	logger := func(_ logr.Logger, req *admission.Request) logr.Logger {
		return admission.DefaultLogConstructor(o.Log.WithName("admission"), req)
	}
	hook := func(name string, deadline time.Duration, decide func(context.Context, admission.Request) outcome) http.Handler {
		return &admission.Webhook{
			Handler:        &observed{name: name, deadline: deadline, decide: decide, metrics: o.Metrics, clock: o.Clock},
			LogConstructor: logger,
		}
	}
	return map[string]http.Handler{
		PathMutateTicket:     hook("mutate-flightticket", mutationDeadline, mutateTicket),
		PathValidateTicket:   hook("validate-flightticket", ticketDeadline, tickets.decide),
		PathValidatePolicy:   hook("validate-flightpolicy", policyDeadline, policies.decide),
		PathValidateProvider: hook("validate-bookingprovider", providerDeadline, providers.decide),
	}
}

// observed gives a decision its deadline, turns a panic into a refusal, and writes log and metrics.
type observed struct {
	name     string
	deadline time.Duration
	decide   func(context.Context, admission.Request) outcome
	metrics  *Metrics
	clock    clock.PassiveClock
}

var _ admission.Handler = (*observed)(nil)

// Handle answers one review.
func (o *observed) Handle(ctx context.Context, req admission.Request) admission.Response {
	start := o.clock.Now()
	ctx, cancel := context.WithTimeout(ctx, o.deadline)
	defer cancel()
	out := o.safely(ctx, req)
	took := o.clock.Since(start)
	o.metrics.observe(o.name, out, took)
	o.log(log.FromContext(ctx), req, out, took)
	return out.response
}

// safely decides. What a panic says is logged and not answered: it may quote the object.
func (o *observed) safely(ctx context.Context, req admission.Request) (out outcome) {
	defer func() {
		if r := recover(); r != nil {
			out = undecided(req, errors.New("the webhook failed; ask a cluster admin to look at its log"))
			out.err = &panicError{value: r, stack: debug.Stack()}
		}
	}()
	return o.decide(ctx, req)
}

// panicError is a panic of a review.
type panicError struct {
	value any
	stack []byte
}

// Error has the place and, where it is the runtime that speaks, the words. What others panic with may quote a ticket.
func (e *panicError) Error() string {
	var spoken runtime.Error
	if err, is := e.value.(error); is && errors.As(err, &spoken) {
		return fmt.Sprintf("panic: %v\n%s", spoken, e.stack)
	}
	return fmt.Sprintf("panic of type %T\n%s", e.value, e.stack)
}

// log writes one line a decision: refusals at info, the rest at debug. No object, no message of a policy, no key of a
// quota: each may quote a passenger.
func (o *observed) log(l logr.Logger, req admission.Request, out outcome, took time.Duration) {
	var denied, failed []string
	for _, e := range out.evaluated {
		switch e.Result {
		case policy.ResultDeny:
			denied = append(denied, e.Policy)
		case policy.ResultError:
			failed = append(failed, e.Policy)
		}
	}
	l = l.WithValues("webhook", o.name, "operation", req.Operation, "dryRun", req.DryRun != nil && *req.DryRun,
		"result", out.result, "milliseconds", float64(took.Microseconds())/1000,
		"policies", len(out.evaluated), "denied", strings.Join(denied, ","), "failed", strings.Join(failed, ","), "fields", strings.Join(out.fields, ","),
		"quota", out.charge.result, "quotaPolicies", strings.Join(out.charge.policies, ","))
	switch out.result {
	case resultAllowed:
		l.V(1).Info("review")
	case resultUndecided:
		l.Error(out.err, "review")
	default:
		l.Info("review")
	}
}

// CachedKinds are the kinds that are read through Options.Cached.
func CachedKinds() []client.Object {
	return []client.Object{&corev1.Namespace{}, &flightsv1.BookingProvider{}}
}
