package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/money"
	"github.com/flight-operator/flight-operator/internal/places"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/quota/store"
)

// ticketValidator accepts or refuses tickets: what must hold under any policy first, then every policy, and all
// reasons in one answer.
type ticketValidator struct {
	policies     Decider
	quotas       Quotas
	rights       Rights
	synced       func() bool
	superseded   func(ctx context.Context, policy string, uid types.UID, generation int64) error
	cached, live client.Reader
	clock        clock.PassiveClock
}

// ticketReview gathers what is found of one ticket.
type ticketReview struct {
	req         admission.Request
	ticket, old *flightsv1.FlightTicket // old is nil at create
	route       places.Route
	routeKnown  bool
	reasons     []reason
	warnings    []string
	// notes are warnings of what comes once the ticket is stored; who is refused needs none.
	notes []string
	// rights are the questions about verbs that were asked.
	rights []rightAsked
	// hold is what the ledger holds for this review; nil if nothing.
	hold *store.Hold
}

func (r *ticketReview) dryRun() bool { return ptr.Deref(r.req.DryRun, false) }

func (v ticketValidator) decide(ctx context.Context, req admission.Request) outcome {
	ticket, old, err := decodePair[flightsv1.FlightTicket](req)
	if err != nil {
		return undecided(req, err)
	}
	r := &ticketReview{req: req, ticket: ticket, old: old}
	out := outcome{}
	defer func() { // also when something panics
		if r.hold != nil && !out.response.Allowed {
			v.quotas.Release(r.hold)
		}
	}()
	out = v.review(ctx, r)
	out.rights = r.rights
	return out
}

func (v ticketValidator) review(ctx context.Context, r *ticketReview) outcome {
	if err := v.checkDecisions(ctx, r); err != nil {
		return undecided(r.req, err)
	}
	r.checkPollInterval()
	if settled, out := r.settled(); settled {
		return out
	}
	r.resolve()
	r.checkPrice()
	r.checkDates(v.clock.Now())
	if err := v.checkProvider(ctx, r); err != nil {
		return undecided(r.req, err)
	}
	if !r.routeKnown {
		r.warnings = append(r.warnings, "the policies were not asked: they need to know from and to")
		return forbid(r.req, r.reasons, r.warnings)
	}
	return v.ask(ctx, r)
}

// settled answers without a policy where none may have a say: a ticket that is being deleted can't change any more, and
// one whose spec, labels and annotations stay as they are, as far as policies see them, was decided on before.
func (r *ticketReview) settled() (bool, outcome) {
	if r.old == nil {
		return false, outcome{}
	}
	same := equality.Semantic.DeepEqual(r.ticket.Spec, r.old.Spec)
	switch {
	case r.old.DeletionTimestamp != nil && !same:
		r.refuseField("spec", metav1.CauseTypeForbidden,
			"the ticket is being deleted, so its spec can't change; wait until it is gone and create another")
	case r.old.DeletionTimestamp != nil:
	case !same || !policy.SameMetadata(r.ticket, r.old):
		return false, outcome{}
	}
	if len(r.reasons) > 0 {
		return true, forbid(r.req, r.reasons, nil)
	}
	return true, allow(nil)
}

// resolve finds out what from and to mean. The route stays known where both ends are, even if they are one place: the
// policies can then add their reasons.
func (r *ticketReview) resolve() {
	spec := r.ticket.Spec
	route, err := places.Resolve(spec.From, spec.To)
	if err == nil {
		r.route, r.routeKnown = route, true
		r.warnCode("from", route.Origin)
		r.warnCode("to", route.Destination)
		return
	}
	var same *places.SamePlaceError
	if errors.As(err, &same) {
		r.refuseField("spec.to", metav1.CauseTypeFieldValueInvalid, same.Error())
	}
	origin, known := r.lookup("from", spec.From)
	destination, knownToo := r.lookup("to", spec.To)
	if same == nil && known && knownToo { // an error of another kind than the ends'
		r.refuseField("spec", metav1.CauseTypeFieldValueInvalid, err.Error())
	}
	r.route = places.Route{Origin: origin, Destination: destination}
	r.routeKnown = known && knownToo
}

// lookup resolves one end and notes why it can't be.
func (r *ticketReview) lookup(end, text string) (places.Place, bool) {
	place, err := places.Lookup(text)
	if err != nil {
		r.refuseField("spec."+end, metav1.CauseTypeFieldValueInvalid, err.Error())
		return places.Place{}, false
	}
	return place, true
}

func (r *ticketReview) warnCode(end string, p places.Place) {
	if p.Kind == places.KindCode {
		r.notes = append(r.notes, fmt.Sprintf("spec.%s: %s is in no table of %s; it is taken as an IATA code and sent as it is", end, p.IATA, places.TableDate()))
	}
}

// checkDates refuses a departure that is over everywhere on Earth: the last place where a day ends is twelve hours behind
// UTC. A date that was fine when it was set stays fine.
func (r *ticketReview) checkDates(now time.Time) {
	departure := r.ticket.Spec.DepartureDate
	if departure == "" || r.old != nil && r.old.Spec.DepartureDate == departure {
		return
	}
	if today := now.UTC().Add(-12 * time.Hour).Format(time.DateOnly); string(departure) < today {
		r.refuseField("spec.departureDate", metav1.CauseTypeFieldValueInvalid,
			fmt.Sprintf("%s is in the past: name a day from %s on, or leave the date out for the next offer", departure, today))
	}
}

func (r *ticketReview) checkPrice() {
	price := r.ticket.Spec.MaxPrice
	if price == nil {
		return
	}
	amount, err := money.Parse(price.Amount, price.Currency)
	switch {
	case err != nil:
		r.refuseField("spec.maxPrice", metav1.CauseTypeFieldValueInvalid, err.Error())
	case amount.Minor == 0:
		r.refuseField("spec.maxPrice", metav1.CauseTypeFieldValueInvalid, "nothing can be booked for nothing: raise the amount, or leave maxPrice out for any price")
	}
}

func (r *ticketReview) refuseField(field string, code metav1.CauseType, text string) {
	r.reasons = append(r.reasons, reason{source: field, field: field, code: code, text: text})
}

// checkProvider keeps a booked ticket with its provider, and warns of one that does not exist yet: tickets and
// providers may be applied in any order, so that is no reason to refuse.
func (v ticketValidator) checkProvider(ctx context.Context, r *ticketReview) error {
	named := r.ticket.Spec.ProviderRef
	if r.old != nil {
		if providerName(named) == providerName(r.old.Spec.ProviderRef) {
			return nil
		}
		if r.old.Status.Booking != nil || r.old.Status.Operation != nil {
			r.refuseField("spec.providerRef", metav1.CauseTypeForbidden,
				"a booking or an open operation ties the ticket to its provider; delete the ticket and create another to book elsewhere")
			return nil
		}
	}
	var providers flightsv1.BookingProviderList
	if err := v.cached.List(ctx, &providers); err != nil {
		return fmt.Errorf("list booking providers: %w", err)
	}
	r.notes = append(r.notes, missingProvider(providerName(named), providers.Items)...)
	return nil
}

func providerName(ref *flightsv1.ProviderReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// missingProvider warns when nobody would book a ticket that names the given provider; "" means the default one.
func missingProvider(name string, providers []flightsv1.BookingProvider) []string {
	names := make([]string, 0, len(providers))
	for i := range providers {
		p := &providers[i]
		if p.Name == name || name == "" && isDefault(p) {
			return nil
		}
		names = append(names, p.Name)
	}
	known := "there is none"
	if len(names) > 0 {
		known = "there is " + joinSome(names, 5)
	}
	if name == "" {
		return []string{fmt.Sprintf("no BookingProvider is the default (%s); the ticket waits until one is, or name one in spec.providerRef", known)}
	}
	return []string{fmt.Sprintf("BookingProvider %q does not exist yet (%s); the ticket waits for it", name, known)}
}

// ask puts the ticket to every policy and joins their reasons to those found before. If a bucket knows of a newer policy
// than was asked, the newer one is waited for and all are asked once more.
func (v ticketValidator) ask(ctx context.Context, r *ticketReview) outcome {
	if !v.synced() {
		return undecided(r.req, errors.New("the policies are still being loaded"))
	}
	namespace, err := v.namespace(ctx, r.req.Namespace)
	if err != nil {
		return undecided(r.req, err)
	}
	out := v.askOnce(ctx, r, namespace)
	if stale := out.charge.stale; stale != nil && v.renewed(ctx, *stale) {
		return v.askOnce(ctx, r, namespace)
	}
	return out
}

func (v ticketValidator) askOnce(ctx context.Context, r *ticketReview, namespace policy.Namespace) outcome {
	decision, err := v.policies.Decide(ctx, policy.Request{
		Stage:     policy.StageAdmission,
		Operation: flightsv1.Operation(r.req.Operation),
		DryRun:    r.dryRun(),
		User:      policy.User{Username: r.req.UserInfo.Username, Groups: capGroups(r.req.UserInfo.Groups)},
		Namespace: namespace,
		Ticket:    r.ticket,
		OldTicket: r.old,
		Route:     r.route,
		Now:       v.clock.Now(),
	})
	var bad *policy.RequestError
	switch {
	case errors.As(err, &bad) && len(r.reasons) > 0: // such as a price that is refused already
		return forbid(r.req, r.reasons, r.warnings)
	case err != nil:
		return undecided(r.req, err)
	case len(r.reasons) > 0 || !decision.Allowed():
		return r.deny(decision)
	}
	return v.charge(ctx, r, decision)
}

// deny joins what the policies say to the reasons found before. Only where each policy that refuses had no time for more may
// another try be answered otherwise: one reason that stands is an answer for good.
func (r *ticketReview) deny(d policy.Decision) outcome {
	reasons := slices.Clone(r.reasons)
	for _, denial := range d.Denials {
		code := metav1.CauseType("PolicyDenied")
		if denial.Code != "" {
			code = metav1.CauseType(oneLine(denial.Code, maxWarningText))
		}
		reasons = append(reasons, reason{source: denial.Policy, code: code, text: denial.Message})
	}
	answer := forbid
	if len(r.reasons) == 0 && !slices.ContainsFunc(d.Denials, func(d policy.Denial) bool { return !d.Late }) {
		answer = late
	}
	out := answer(r.req, reasons, slices.Concat(r.warnings, warningsOf(d)))
	out.evaluated = d.Evaluated
	return out
}

func warningsOf(d policy.Decision) []string {
	texts := make([]string, len(d.Warnings))
	for i, w := range d.Warnings {
		texts[i] = w.Policy + ": " + w.Message
	}
	return texts
}

// namespace reads the ticket's namespace. A cache may not have one that was created a moment ago.
func (v ticketValidator) namespace(ctx context.Context, name string) (policy.Namespace, error) {
	var n corev1.Namespace
	err := v.cached.Get(ctx, client.ObjectKey{Name: name}, &n)
	if apierrors.IsNotFound(err) {
		err = v.live.Get(ctx, client.ObjectKey{Name: name}, &n)
	}
	if err != nil {
		return policy.Namespace{}, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return policy.Namespace{Name: n.Name, Labels: n.Labels, Annotations: n.Annotations}, nil
}

// joinSome lists some names and says how many more there are.
func joinSome(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}
