package flightticket

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

func TestAProviderThatIsBeingDeletedIsAsGoodForItsTicketsAsItAnswers(t *testing.T) {
	condition := func(kind string, is metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message, ObservedGeneration: 2}
	}
	going := condition(flightsv1.ConditionReady, metav1.ConditionFalse, flightsv1.ReasonDeleting, "is being deleted")
	accepted := condition(flightsv1.ConditionCredentialsAccepted, metav1.ConditionTrue, flightsv1.ReasonAccepted, "accepted")
	down := condition(flightsv1.ConditionReachable, metav1.ConditionFalse, flightsv1.ReasonUnreachable, "is down")
	cases := map[string]struct {
		conditions []metav1.Condition
		connecting bool
		trouble    string
	}{
		"nothing is known":                    {nil, true, ""},
		"it is ready":                         {[]metav1.Condition{condition(flightsv1.ConditionReady, metav1.ConditionTrue, "ProviderReady", "books")}, true, ""},
		"it is being deleted":                 {[]metav1.Condition{going, accepted}, true, ""},
		"it is being deleted and is down too": {[]metav1.Condition{going, accepted, down}, false, "is down"},
		"it is down":                          {[]metav1.Condition{condition(flightsv1.ConditionReady, metav1.ConditionFalse, "Unreachable", "is down")}, false, "is down"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &flightsv1.BookingProvider{}
			p.Generation, p.Status.Conditions = 2, c.conditions
			if connecting(p) != c.connecting || trouble(p) != c.trouble {
				t.Errorf("connecting %t, trouble %q", connecting(p), trouble(p))
			}
		})
	}
}
