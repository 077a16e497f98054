package bookingprovider

import (
	"strings"
	"testing"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/booking/guard"
	"sigs.k8s.io/yaml"
)

func TestAFailureIsExplainedWithWhatToDo(t *testing.T) {
	p := &flightsv1.BookingProvider{Spec: flightsv1.BookingProviderSpec{
		Endpoint:             "https://flights.example.com/v1",
		CredentialsSecretRef: flightsv1.SecretKeyReference{Name: "flight-operator-credentials", Key: "example"},
	}}
	cases := map[string]struct {
		failure booking.CallError
		reason  string
		says    string
		limited bool
	}{
		"a refused token": {
			failure: booking.CallError{Class: booking.ClassCredential, Code: "token_refused"},
			reason:  flightsv1.ReasonCredentialsRefused, says: "put a valid one there",
		},
		"a private address": {
			failure: booking.CallError{Class: booking.ClassUnavailable, Code: booking.CodeEndpointForbidden},
			reason:  flightsv1.ReasonEndpointForbidden, says: "spec.allowPrivate",
		},
		"nothing listens": {
			failure: booking.CallError{Class: booking.ClassUnavailable, Code: booking.CodeConnectionRefused},
			reason:  flightsv1.ReasonUnreachable, says: "check the endpoint",
		},
		"garbage": {
			failure: booking.CallError{Class: booking.ClassUnavailable, Code: booking.CodeInvalidAnswer},
			reason:  flightsv1.ReasonUnreachable, says: "does not answer as it should",
		},
		"our own limiter proves nothing": {
			failure: booking.CallError{Class: booking.ClassUnavailable, Code: booking.CodeRateLimited}, limited: true,
		},
		"a 429 proves nothing": {
			failure: booking.CallError{Class: booking.ClassThrottled, Code: "rate_limited"}, limited: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := explain(p, &c.failure)
			if got.reason != c.reason || got.limited != c.limited || !strings.Contains(got.message, c.says) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTheRoleThatIsPrintedIsYAML(t *testing.T) {
	_, text, _ := strings.Cut(forbidden("flight-operator-system", "mine"), "or apply:\n")
	for _, document := range strings.Split(text, "---\n") {
		object := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil || object["kind"] == nil {
			t.Errorf("%v in:\n%s", err, document)
		}
	}
}

func TestAConnectionIsGivenOnlyForTheVeryProviderThatWasChecked(t *testing.T) {
	r := NewRegistry()
	g := guard.New(nil, guard.Options{Rate: 1, Burst: 10})
	r.put("example", connection{uid: "uid-1", generation: 2, guard: g, usable: true, account: "acct-7"})
	if api, account, _ := r.Connected("example", "uid-1", 2); api == nil || account != "acct-7" {
		t.Error("the checked provider is not connected")
	}
	for name, ask := range map[string]func() (booking.Provider, string){
		"another generation":  func() (booking.Provider, string) { a, b, _ := r.Connected("example", "uid-1", 3); return a, b },
		"another incarnation": func() (booking.Provider, string) { a, b, _ := r.Connected("example", "uid-2", 2); return a, b },
		"another name":        func() (booking.Provider, string) { a, b, _ := r.Connected("other", "uid-1", 2); return a, b },
	} {
		if api, account := ask(); api != nil || account != "" {
			t.Errorf("%s is connected", name)
		}
	}
	if wait := r.Pause("example", time.Now()); wait != 0 {
		t.Errorf("a provider that is well asks to wait %s", wait)
	}
}

func TestADoubtNeverBlocks(t *testing.T) {
	r := NewRegistry()
	for range 1000 {
		r.Doubt("example")
	}
}
