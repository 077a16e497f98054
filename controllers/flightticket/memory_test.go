package flightticket

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/policy"
)

func operation(id string, now time.Time) flightsv1.OperationStatus {
	return flightsv1.OperationStatus{ID: id, SendBy: metav1.NewMicroTime(now.Add(time.Minute))}
}

func TestOnlyAnOperationThatThisProcessWroteIsHarmless(t *testing.T) {
	now, m := time.Now(), newMemory()
	m.written("ticket", operation("op-1", now), now)
	if !m.harmless("ticket", "op-1") || m.harmless("ticket", "op-2") || m.harmless("other", "op-1") {
		t.Error("the operation that was written, and it alone, is harmless")
	}
	if newMemory().harmless("ticket", "op-1") {
		t.Error("another process knows nothing of it")
	}
}

func TestAnOperationIsNotHarmlessFromItsSendUntilARejection(t *testing.T) {
	now, m := time.Now(), newMemory()
	m.written("ticket", operation("op-1", now), now)
	m.sending("ticket", "op-1", false)
	if m.harmless("ticket", "op-1") {
		t.Error("an operation that is being sent may take effect")
	}
	m.sending("ticket", "op-1", true)
	if !m.harmless("ticket", "op-1") {
		t.Error("a rejected operation has had no effect")
	}
	m.sending("ticket", "op-2", true)
	if m.harmless("ticket", "op-2") {
		t.Error("an operation that was not written here became harmless")
	}
}

func TestAnOperationIsClosedToSendsByEitherClock(t *testing.T) {
	now, m := time.Now(), newMemory()
	op := operation("op-1", now)
	m.written("ticket", op, now)
	if !m.open("ticket", op, now.Add(59*time.Second)) {
		t.Error("closed before send-by")
	}
	if m.open("ticket", op, now.Add(time.Minute)) {
		t.Error("open at send-by")
	}
	// The wall clock is set back two minutes while the process's own clock goes on: the time that was written says
	// that there is time, the process knows better.
	op.SendBy = metav1.NewMicroTime(now.Add(3 * time.Minute))
	if m.open("ticket", op, now.Add(90*time.Second)) {
		t.Error("open though a minute and a half have gone by on the process's own clock")
	}
}

func TestAVerdictIsARefusalUnlessAllDenialsAreErrors(t *testing.T) {
	broken := policy.Denial{Policy: "a", Code: policy.CodePolicyError, Message: "timed out"}
	no := policy.Denial{Policy: "b", Message: "not on Fridays"}
	cases := map[string]struct {
		denials []policy.Denial
		want    lifecycle.VerdictKind
	}{
		"nothing denies":              {nil, lifecycle.VerdictAllowed},
		"a policy denies":             {[]policy.Denial{no}, lifecycle.VerdictRefused},
		"a policy is broken":          {[]policy.Denial{broken}, lifecycle.VerdictError},
		"one is broken, one denies":   {[]policy.Denial{broken, no}, lifecycle.VerdictRefused},
		"one denies, another is torn": {[]policy.Denial{no, broken}, lifecycle.VerdictRefused},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := verdict(policy.Decision{Denials: c.denials})
			if got.Kind != c.want || len(got.Messages) != len(c.denials) {
				t.Errorf("got %+v, want %s with every reason", got, c.want)
			}
		})
	}
}

func TestTheNoteOfAnEventFitsAndStaysText(t *testing.T) {
	got := note(strings.Repeat("ä", 900))
	if len(got) > 1024 || !strings.HasSuffix(got, "ä (cut)") {
		t.Errorf("a note of %d bytes that ends in %q", len(got), got[len(got)-10:])
	}
}

func TestTicketsThatWaitTogetherComeBackApart(t *testing.T) {
	for range 100 {
		if d := spread(10 * time.Minute); d < 10*time.Minute || d > 12*time.Minute {
			t.Fatalf("waits %s", d)
		}
	}
}
