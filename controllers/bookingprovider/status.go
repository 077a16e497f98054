package bookingprovider

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// verdict is the value of one condition.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// tell writes what was found into the provider's status if that changes it, and an event when the reason is a new one.
// Stays says why a provider that is being deleted is still there; empty if it isn't being deleted.
func (r *Reconciler) tell(ctx context.Context, p *flightsv1.BookingProvider, f finding, stays string) error {
	was := p.Status.DeepCopy()
	r.conclude(p, f, stays)
	told, _ := r.told.Load(p.Name)
	if !news(was, &p.Status, told) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, p); err != nil {
		return fmt.Errorf("write status of provider: %w", err)
	}
	r.told.Store(p.Name, readyReason(&p.Status))
	r.tellEvent(p, was, f)
	return nil
}

// news says whether a status must be written: it differs from the one in the cache, or says something else than this
// process said last. The cache may not show that last write yet: a look that finds a provider well again within
// milliseconds would else compare with the status from before the trouble, write nothing, and leave every ticket
// waiting until the next poll. Written on a stale version, it conflicts and is looked at again.
func news(cached, now *flightsv1.BookingProviderStatus, told any) bool {
	return !equality.Semantic.DeepEqual(*cached, *now) || told != nil && told != readyReason(now)
}

func readyReason(s *flightsv1.BookingProviderStatus) string {
	if ready := meta.FindStatusCondition(s.Conditions, flightsv1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// conclude sets the status that a finding leads to. A look that was limited found nothing out: what was known stays.
func (r *Reconciler) conclude(p *flightsv1.BookingProvider, f finding, stays string) {
	c, connected := r.Registry.get(p.Name)
	p.Status.ObservedGeneration = p.Generation
	if connected {
		p.Status.CredentialsRotatedAt = c.rotated
		if c.accepted {
			p.Status.Account = c.account
		}
	}
	stuck := meta.IsStatusConditionTrue(p.Status.Conditions, flightsv1.ConditionStalled)
	if !f.limited {
		credential, reachable := verdicts(f, connected && c.accepted)
		r.set(p, flightsv1.ConditionCredentialsAccepted, credential)
		r.set(p, flightsv1.ConditionReachable, reachable)
		stuck = !f.good() && f.reason != flightsv1.ReasonUnreachable
	}
	ready := verdict{metav1.ConditionFalse, f.reason, f.message}
	switch {
	case stays != "":
		ready = leaving(p, stays)
	case f.good():
		ready.status = metav1.ConditionTrue
	}
	r.set(p, flightsv1.ConditionReady, ready)
	r.while(p, flightsv1.ConditionReconciling, ready.status == metav1.ConditionFalse && !stuck, ready)
	r.while(p, flightsv1.ConditionStalled, stuck, ready)
}

func (r *Reconciler) tellEvent(p *flightsv1.BookingProvider, was *flightsv1.BookingProviderStatus, f finding) {
	before := meta.FindStatusCondition(was.Conditions, flightsv1.ConditionReady)
	now := meta.FindStatusCondition(p.Status.Conditions, flightsv1.ConditionReady)
	rotated := was.CredentialsRotatedAt != nil && !was.CredentialsRotatedAt.Equal(p.Status.CredentialsRotatedAt)
	switch {
	case before == nil || before.Reason != now.Reason:
		kind, action := corev1.EventTypeWarning, "Connect"
		if f.good() {
			kind = corev1.EventTypeNormal
		}
		if now.Reason == flightsv1.ReasonDeleting {
			kind, action = corev1.EventTypeNormal, "Delete" // a person asked for it
		}
		r.Events.Eventf(p, nil, kind, now.Reason, action, "%s", note(now.Message))
	case rotated && f.good():
		r.Events.Eventf(p, nil, corev1.EventTypeNormal, flightsv1.ReasonAccepted, "Connect",
			"took up the changed credential in Secret %s", p.Spec.CredentialsSecretRef.Name)
	}
}

// maxNote is what the API server takes of an event's text, in bytes, less a margin.
const maxNote = 1000

// note cuts a message to what fits into an event. The condition holds all of it.
func note(message string) string {
	if len(message) <= maxNote {
		return message
	}
	return strings.ToValidUTF8(message[:maxNote], "") + " (cut)"
}

// verdicts says what a finding means for the credential and for the API behind it.
func verdicts(f finding, accepted bool) (credential, reachable verdict) {
	untried := verdict{metav1.ConditionUnknown, flightsv1.ReasonNotTried, "not tried: see the condition Ready"}
	good := verdict{metav1.ConditionTrue, flightsv1.ReasonAccepted, "the booking API accepted the credential"}
	answers := verdict{metav1.ConditionTrue, flightsv1.ReasonAnswering, "the booking API answers"}
	bad := verdict{metav1.ConditionFalse, f.reason, f.message}
	switch f.reason {
	case flightsv1.ReasonProviderReady:
		return good, answers
	case flightsv1.ReasonCredentialsRefused:
		return bad, answers
	case flightsv1.ReasonUnreachable, flightsv1.ReasonEndpointForbidden:
		if accepted {
			return good, bad
		}
		return untried, bad
	default: // the Secret
		return bad, untried
	}
}

func (r *Reconciler) set(p *flightsv1.BookingProvider, kind string, v verdict) {
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: p.Generation,
		LastTransitionTime: metav1.NewTime(r.Clock()),
	})
}

func (r *Reconciler) while(p *flightsv1.BookingProvider, kind string, is bool, v verdict) {
	if is {
		r.set(p, kind, verdict{metav1.ConditionTrue, v.reason, v.message})
		return
	}
	meta.RemoveStatusCondition(&p.Status.Conditions, kind)
}
