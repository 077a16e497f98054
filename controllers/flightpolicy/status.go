package flightpolicy

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/replica"
)

// verdict is what the replicas' reports say of one policy.
type verdict struct {
	replicas, serving int
	reason, message   string
}

// assess reads one policy's verdict from the reports of the live replicas. It is the same for the same reports.
func assess(p *flightsv1.FlightPolicy, live []replica.Replica) verdict {
	v := verdict{replicas: len(live)}
	var failure *replica.Policy
	digests := map[string]struct{}{}
	for i := range live {
		held, found := live[i].Report[replica.KeyOf(p.UID)]
		switch {
		case found && held.FailedGeneration == p.Generation:
			if failure == nil {
				failure = &held
			}
		case found && held.FailedGeneration == 0 && held.Generation == p.Generation:
			v.serving++
			digests[held.Digest] = struct{}{}
		}
	}
	v.reason, v.message = v.explain(p, failure, len(digests))
	return v
}

func (v verdict) explain(p *flightsv1.FlightPolicy, failure *replica.Policy, texts int) (reason, message string) {
	switch {
	case v.replicas == 0:
		return flightsv1.ReasonNoReplicas, "no webhook replica reports; look at the Deployment flight-webhook"
	case failure != nil:
		return flightsv1.ReasonCompileFailed, compileMessage(p, failure)
	case v.serving < v.replicas:
		return flightsv1.ReasonRollingOut, fmt.Sprintf("%d of %d webhook replicas serve generation %d", v.serving, v.replicas, p.Generation)
	case texts > 1:
		return flightsv1.ReasonRollingOut, "webhook replicas of different versions serve different texts of this policy until the upgrade is done"
	default:
		return flightsv1.ReasonServing, fmt.Sprintf("all %d webhook replicas serve generation %d", v.replicas, p.Generation)
	}
}

// until holds a verdict back that a policy is served while its quotas are not in force. Once it was called ready, it stays
// so: a controller that has just started knows less than the one before it.
func (v verdict) until(p *flightsv1.FlightPolicy, waiting string) verdict {
	if v.reason == flightsv1.ReasonServing && waiting != "" && !isReady(p) {
		v.reason, v.message = flightsv1.ReasonCounting, v.message+"; "+waiting
	}
	return v
}

// without adds which tickets the quotas of a served policy don't count.
func (v verdict) without(uncounted string) verdict {
	if uncounted != "" && v.serving > 0 {
		v.message += "; " + uncounted
	}
	return v
}

// isReady says whether a policy is called ready in its present generation.
func isReady(p *flightsv1.FlightPolicy) bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, flightsv1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == p.Generation
}

// compileMessage says what is wrong, where, and what is in force meanwhile.
func compileMessage(p *flightsv1.FlightPolicy, failure *replica.Policy) string {
	var effect string
	switch {
	case failure.Generation > 0:
		effect = fmt.Sprintf("generation %d stays in force", failure.Generation)
	case p.Spec.Enforcement == flightsv1.EnforcementWarn:
		effect = "tickets that it matches get a warning"
	case p.Spec.Enforcement == flightsv1.EnforcementShadow:
		effect = "it decides on no ticket"
	default:
		effect = "every ticket that it matches is refused"
	}
	why := strings.TrimSpace(failure.Error)
	if why == "" {
		why = "kubectl apply --dry-run=server tells why"
	}
	return fmt.Sprintf("generation %d does not compile, %s until it is mended: %s", p.Generation, effect, why)
}

// statusOf writes a verdict into a copy of the policy's status. Reconciling and Stalled are present only while true,
// as kstatus has it.
func statusOf(p *flightsv1.FlightPolicy, v verdict, now time.Time) flightsv1.FlightPolicyStatus {
	status := *p.Status.DeepCopy()
	status.ObservedGeneration = p.Generation
	status.Replicas, status.ReplicasServing = int32(v.replicas), int32(v.serving)

	set := func(kind string, value metav1.ConditionStatus) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: v.reason, Message: v.message,
			ObservedGeneration: p.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	meta.RemoveStatusCondition(&status.Conditions, flightsv1.ConditionReconciling)
	meta.RemoveStatusCondition(&status.Conditions, flightsv1.ConditionStalled)
	switch v.reason {
	case flightsv1.ReasonServing:
		set(flightsv1.ConditionReady, metav1.ConditionTrue)
	case flightsv1.ReasonCompileFailed:
		set(flightsv1.ConditionReady, metav1.ConditionFalse)
		set(flightsv1.ConditionStalled, metav1.ConditionTrue)
	default:
		set(flightsv1.ConditionReady, metav1.ConditionFalse)
		set(flightsv1.ConditionReconciling, metav1.ConditionTrue)
	}
	keepTransitionTimes(p.Status.Conditions, status.Conditions)
	return status
}

// keepTransitionTimes gives a condition that was removed and set again to the same status its old time back.
func keepTransitionTimes(old, now []metav1.Condition) {
	for i := range now {
		before := meta.FindStatusCondition(old, now[i].Type)
		if before != nil && before.Status == now[i].Status {
			now[i].LastTransitionTime = before.LastTransitionTime
		}
	}
}
