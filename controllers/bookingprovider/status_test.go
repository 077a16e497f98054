package bookingprovider

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

func TestAStatusIsWrittenWhenTheCacheOrThisProcessSaidSomethingElse(t *testing.T) {
	status := func(reason string) *flightsv1.BookingProviderStatus {
		return &flightsv1.BookingProviderStatus{Conditions: []metav1.Condition{{Type: flightsv1.ConditionReady, Reason: reason}}}
	}
	ready, down := status(flightsv1.ReasonProviderReady), status(flightsv1.ReasonUnreachable)
	for name, c := range map[string]struct {
		cached, now *flightsv1.BookingProviderStatus
		told        any
		want        bool
	}{
		"nothing changed since a start":                              {ready, ready, nil, false},
		"nothing changed since this process wrote":                   {ready, ready, flightsv1.ReasonProviderReady, false},
		"a change that the cache shows":                              {ready, down, flightsv1.ReasonProviderReady, true},
		"well again before the cache shows the trouble that is told": {ready, ready, flightsv1.ReasonUnreachable, true},
		"still in trouble, which the cache shows":                    {down, down, flightsv1.ReasonUnreachable, false},
	} {
		if got := news(c.cached, c.now, c.told); got != c.want {
			t.Errorf("%s: news is %v, want %v", name, got, c.want)
		}
	}
}
