package bookingprovider

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// oneSecret is an API server that holds one Secret.
type oneSecret struct {
	client.Reader
	data map[string][]byte
}

func (s oneSecret) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.(*corev1.Secret).Data = s.data
	return nil
}

func reconciler(t *testing.T, now *time.Time, token string) *Reconciler {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{
		Registry: NewRegistry(), Secrets: NewSecrets(nil, oneSecret{data: map[string][]byte{"example": []byte(token)}}, "system"),
		Clock: func() time.Time { return *now }, Metrics: metrics, Namespace: "system",
	})
}

func example() *flightsv1.BookingProvider {
	p := &flightsv1.BookingProvider{Spec: flightsv1.BookingProviderSpec{
		Endpoint:             "https://flights.example.com/v1",
		CredentialsSecretRef: flightsv1.SecretKeyReference{Name: "tokens", Key: "example"},
	}}
	p.Name, p.UID, p.Generation = "example", "uid-1", 1
	return p
}

func TestATokenThatNoRequestCanCarryIsTheSecretsFault(t *testing.T) {
	now := time.Now()
	for name, token := range map[string]string{
		"a line break inside": "canary\r\nX-Admin: true", "binary": "canary\x00\xff", "a space inside": "Bearer canary",
		"a megabyte": strings.Repeat("canary", 180000),
	} {
		t.Run(name, func(t *testing.T) {
			_, f, err := reconciler(t, &now, token).token(t.Context(), example())
			if err != nil || f.reason != flightsv1.ReasonSecretInvalid || strings.Contains(f.message, "canary") {
				t.Errorf("got %.200v, %v, want the Secret to be at fault, without its words", f, err)
			}
		})
	}
	token, f, err := reconciler(t, &now, "  canary\r\n").token(t.Context(), example())
	if token != "canary" || f.reason != "" || err != nil {
		t.Errorf("space around a token: got %q, %+v, %v", token, f, err)
	}
}

func TestATokenThatComesInPlaceOfOneTakenAwayIsARotation(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	r, p := reconciler(t, &now, ""), example()
	first, _ := r.connect(p, "old")
	now = now.Add(time.Hour)
	r.Registry.lapse(p.Name) // the Secret was deleted
	if again, _ := r.connect(p, "old"); !again.rotated.Equal(first.rotated) {
		t.Errorf("the same token counts as changed at %s", again.rotated)
	}
	r.Registry.lapse(p.Name)
	if other, _ := r.connect(p, "new"); !other.rotated.Time.Equal(now) || other.usable {
		t.Errorf("another token counts as changed at %s, want %s", other.rotated, now)
	}
}

func TestAConnectionThatLapsedIsGivenToNobody(t *testing.T) {
	r := NewRegistry()
	r.put("example", connection{uid: "uid-1", generation: 1, usable: true, accepted: true})
	r.lapse("example")
	r.lapse("unknown")
	if c, _ := r.get("example"); c.usable || c.accepted {
		t.Errorf("still in use: %+v", c)
	}
}

func TestAProviderThatGoesIsKnownFromTheFirstLook(t *testing.T) {
	r, now := NewRegistry(), time.Now()
	if got := r.goingFor("uid-1", now); got != 0 {
		t.Errorf("known for %s at the first look", got)
	}
	if got := r.goingFor("uid-1", now.Add(quietTime)); got != quietTime {
		t.Errorf("known for %s, want %s", got, quietTime)
	}
	r.went("uid-1")
	if len(r.going) != 0 {
		t.Error("a provider that has gone takes room")
	}
}

func TestWatchesOfSecretsThatNobodyNamesEnd(t *testing.T) {
	s := NewSecrets(nil, nil, "system", "flight-operator-credentials")
	ended := map[string]bool{}
	for _, name := range []string{"flight-operator-credentials", "named", "left"} {
		s.started[name] = func() { ended[name] = true }
	}
	s.retire(map[string]bool{"named": true})
	if len(ended) != 1 || !ended["left"] || len(s.started) != 2 {
		t.Errorf("ended %v, going on %d", ended, len(s.started))
	}
}

func TestAChangedSecretConcernsThoseWhoseKeyChangedOrWhoNeverAnswered(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		held      connection
		concerned bool
	}{
		"one whose token was accepted":  {connection{token: "canary", accepted: true, usable: true, answered: true}, false},
		"one whose token was refused":   {connection{token: "canary", answered: true}, false},
		"one whose token was another":   {connection{token: "old", accepted: true, usable: true, answered: true}, true},
		"one that could not be reached": {connection{token: "canary"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := reconciler(t, &now, " canary\n")
			r.Registry.put("example", c.held)
			other := example()
			other.Name, other.Spec.CredentialsSecretRef.Name = "other", "another"
			got := r.concerned(t.Context(), "tokens", []flightsv1.BookingProvider{*example(), *other})
			if (len(got) == 1 && got[0] == "example") != c.concerned || len(got) > 1 {
				t.Errorf("concerned are %v", got)
			}
		})
	}
	r := reconciler(t, &now, "canary")
	for _, when := range []string{"was never looked at", "had no key for a while"} {
		if got := r.concerned(t.Context(), "tokens", []flightsv1.BookingProvider{*example()}); len(got) != 1 {
			t.Errorf("a provider that %s is left out: %v", when, got)
		}
		r.Registry.put("example", connection{token: "canary", accepted: true, usable: true, answered: true})
		r.Registry.lapse("example")
	}
}
