package flightpolicy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/replica"
)

func thePolicy(generation int64) *flightsv1.FlightPolicy {
	return &flightsv1.FlightPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "uid-p", Generation: generation}}
}

func holding(p replica.Policy) replica.Replica {
	return replica.Replica{Name: "r", Report: replica.Report{"uid-p": p}}
}

func TestAPolicyIsReadyOnceEveryLiveReplicaServesItsGeneration(t *testing.T) {
	serves := holding(replica.Policy{Generation: 2, Digest: "a"})
	behind := holding(replica.Policy{Generation: 1, Digest: "b"})
	other := holding(replica.Policy{Generation: 2, Digest: "c"})
	fails := holding(replica.Policy{Generation: 1, Digest: "b", FailedGeneration: 2, Error: "spec.rego:4:2: no"})
	never := holding(replica.Policy{FailedGeneration: 2, Error: "spec.rego:4:2: no"})
	failedBefore := holding(replica.Policy{FailedGeneration: 1, Error: "old"})
	namesake := replica.Replica{Name: "r", Report: replica.Report{"uid-of-anoth": {Generation: 2}}}
	for name, c := range map[string]struct {
		live []replica.Replica
		want verdict
	}{
		"no replica reports": {nil, verdict{0, 0, "NoReplicas", "no webhook replica reports; look at the Deployment flight-webhook"}},
		"all serve":          {[]replica.Replica{serves, serves}, verdict{2, 2, "Serving", "all 2 webhook replicas serve generation 2"}},
		"one is behind":      {[]replica.Replica{serves, behind}, verdict{2, 1, "RollingOut", "1 of 2 webhook replicas serve generation 2"}},
		"one knows nothing":  {[]replica.Replica{serves, {Name: "r"}}, verdict{2, 1, "RollingOut", "1 of 2 webhook replicas serve generation 2"}},
		"a policy of the same name was deleted": {
			[]replica.Replica{namesake}, verdict{1, 0, "RollingOut", "0 of 1 webhook replicas serve generation 2"},
		},
		"an older generation failed": {[]replica.Replica{failedBefore}, verdict{1, 0, "RollingOut", "0 of 1 webhook replicas serve generation 2"}},
		"replicas of two versions": {
			[]replica.Replica{serves, other},
			verdict{2, 2, "RollingOut", "webhook replicas of different versions serve different texts of this policy until the upgrade is done"},
		},
		"it does not compile and an older generation serves": {
			[]replica.Replica{serves, fails},
			verdict{2, 1, "CompileFailed", "generation 2 does not compile, generation 1 stays in force until it is mended: spec.rego:4:2: no"},
		},
		"it never compiled": {
			[]replica.Replica{never},
			verdict{1, 0, "CompileFailed", "generation 2 does not compile, every ticket that it matches is refused until it is mended: spec.rego:4:2: no"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := assess(thePolicy(2), c.live)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAServedPolicyIsReadyOnceItsQuotasAreInForce(t *testing.T) {
	serves := verdict{replicas: 2, serving: 2, reason: flightsv1.ReasonServing, message: "all 2 webhook replicas serve generation 2"}
	behind := verdict{replicas: 2, serving: 1, reason: flightsv1.ReasonRollingOut, message: "1 of 2"}
	fresh, ready, before := thePolicy(2), thePolicy(2), thePolicy(2)
	ready.Status = statusOf(ready, serves, time.Unix(0, 0))
	before.Status = statusOf(thePolicy(1), serves, time.Unix(0, 0))
	for name, test := range map[string]struct {
		p       *flightsv1.FlightPolicy
		is      verdict
		waiting string
		reason  string
		text    string
	}{
		"without a quota, or in force":          {fresh, serves, "", flightsv1.ReasonServing, serves.message},
		"being counted":                         {fresh, serves, "its quotas are being counted", flightsv1.ReasonCounting, serves.message + "; its quotas are being counted"},
		"an earlier generation was ready":       {before, serves, "wait", flightsv1.ReasonCounting, serves.message + "; wait"},
		"it was ready, and the controller anew": {ready, serves, "wait", flightsv1.ReasonServing, serves.message},
		"not served yet":                        {fresh, behind, "wait", flightsv1.ReasonRollingOut, behind.message},
	} {
		got := test.is.until(test.p, test.waiting)
		if got.reason != test.reason || got.message != test.text {
			t.Errorf("%s: %s, %q", name, got.reason, got.message)
		}
	}
}

func TestAServedPolicySaysWhichTicketsItDoesNotCount(t *testing.T) {
	serves := verdict{replicas: 2, serving: 2, reason: flightsv1.ReasonServing, message: "all 2 serve"}
	if got := serves.without("1 stored tickets are not counted"); got.reason != flightsv1.ReasonServing || got.message != "all 2 serve; 1 stored tickets are not counted" {
		t.Errorf("%s, %q", got.reason, got.message)
	}
	if got := serves.without(""); got != serves {
		t.Errorf("with all counted: %q", got.message)
	}
	absent := verdict{replicas: 2, reason: flightsv1.ReasonCompileFailed, message: "it does not compile"}
	if got := absent.without("1 stored tickets are not counted"); got != absent {
		t.Errorf("served nowhere: %q", got.message)
	}
}

func TestStatusIsTheSameWhileNothingChanges(t *testing.T) {
	start := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	p := thePolicy(1)
	for _, reason := range []string{flightsv1.ReasonNoReplicas, flightsv1.ReasonRollingOut, flightsv1.ReasonCompileFailed, flightsv1.ReasonServing} {
		v := verdict{replicas: 2, serving: 1, reason: reason, message: "m"}
		p.Status = statusOf(p, v, start)
		start = start.Add(time.Hour)
		if diff := cmp.Diff(p.Status, statusOf(p, v, start)); diff != "" {
			t.Errorf("%s, an hour later (-then +now):\n%s", reason, diff)
		}
	}
}

func TestReconcilingAndStalledArePresentOnlyWhileTrue(t *testing.T) {
	for reason, want := range map[string]string{
		flightsv1.ReasonServing: "", flightsv1.ReasonNoReplicas: "Reconciling",
		flightsv1.ReasonRollingOut: "Reconciling", flightsv1.ReasonCounting: "Reconciling", flightsv1.ReasonCompileFailed: "Stalled",
	} {
		p := thePolicy(3)
		p.Status.Conditions = []metav1.Condition{{Type: "Reconciling", Status: "True"}, {Type: "Stalled", Status: "True"}}
		got := statusOf(p, verdict{reason: reason}, time.Unix(0, 0))
		if got.ObservedGeneration != 3 || meta.IsStatusConditionTrue(got.Conditions, "Ready") != (want == "") {
			t.Errorf("%s: %+v", reason, got)
		}
		for _, kind := range []string{"Reconciling", "Stalled"} {
			if present := meta.FindStatusCondition(got.Conditions, kind) != nil; present != (kind == want) {
				t.Errorf("%s: %s present = %v", reason, kind, present)
			}
		}
	}
}

func TestTheNextLookIsWhenTheFirstReplicaWouldExpire(t *testing.T) {
	now := time.Unix(100, 0)
	live := []replica.Replica{{Expires: now.Add(9 * time.Second)}, {Expires: now.Add(4 * time.Second)}}
	if got := nextExpiry(live, now); got != 4*time.Second {
		t.Errorf("next look in %s", got)
	}
	if got := nextExpiry(nil, now); got != 0 {
		t.Errorf("next look in %s with no replica", got)
	}
}

func TestABrokenPolicySaysWhatItDoesMeanwhile(t *testing.T) {
	for enforcement, want := range map[flightsv1.Enforcement]string{
		flightsv1.EnforcementEnforce: "every ticket that it matches is refused",
		flightsv1.EnforcementWarn:    "tickets that it matches get a warning",
		flightsv1.EnforcementShadow:  "it decides on no ticket",
	} {
		p := thePolicy(2)
		p.Spec.Enforcement = enforcement
		got := compileMessage(p, &replica.Policy{FailedGeneration: 2, Error: "no"})
		if want := "generation 2 does not compile, " + want + " until it is mended: no"; got != want {
			t.Errorf("%s: got %q, want %q", enforcement, got, want)
		}
	}
}
