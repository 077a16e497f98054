package flightticket

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/policy"
)

// ticket and other are two tickets.
var ticket, other = types.NamespacedName{Name: "ticket"}, types.NamespacedName{Name: "other"}

func TestOnlyAnOperationThatThisProcessWroteIsHarmless(t *testing.T) {
	now, m := time.Now(), newMemory()
	m.wroteOperation(ticket, "op-1", now)
	if !m.harmless(ticket, "op-1") || m.harmless(ticket, "op-2") || m.harmless(other, "op-1") {
		t.Error("the operation that was written, and it alone, is harmless")
	}
	if newMemory().harmless(ticket, "op-1") {
		t.Error("another process knows nothing of it")
	}
}

func TestAnOperationIsNotHarmlessFromItsSendUntilARejection(t *testing.T) {
	now, m := time.Now(), newMemory()
	m.wroteOperation(ticket, "op-1", now)
	m.sending(ticket, "op-1", false)
	if m.harmless(ticket, "op-1") {
		t.Error("an operation that is being sent may take effect")
	}
	m.sending(ticket, "op-1", true)
	if !m.harmless(ticket, "op-1") {
		t.Error("a rejected operation has had no effect")
	}
	m.sending(ticket, "op-2", true)
	if m.harmless(ticket, "op-2") {
		t.Error("an operation that was not written here became harmless")
	}
	m.known(ticket, "op-2", now)
	if m.harmless(ticket, "op-2") {
		t.Error("an operation that was only seen became harmless")
	}
}

func TestTheTimeThatAnOperationIsKnownGoesOnWhateverTheWallClockSays(t *testing.T) {
	now, m := time.Now(), newMemory()
	if got := m.known(ticket, "op-1", now); got != 0 {
		t.Errorf("known for %s when first seen", got)
	}
	if got := m.known(ticket, "op-1", now.Add(90*time.Second)); got != 90*time.Second {
		t.Errorf("known for %s, want 90s", got)
	}
	if got := m.known(ticket, "op-2", now.Add(2*time.Minute)); got != 0 {
		t.Errorf("another operation is known for %s when first seen", got)
	}
	if got := m.known(other, "", now); got != 0 || len(m.held) != 1 {
		t.Errorf("a ticket without anything to know takes room")
	}
	m.settle(ticket)
	if got := m.known(ticket, "op-2", now.Add(3*time.Minute)); got != 0 {
		t.Errorf("what was settled is known for %s", got)
	}
	m.forget(ticket)
	if len(m.held) != 0 {
		t.Error("a ticket that is gone takes room")
	}
}

func heardAll(now time.Time) lifecycle.Heard {
	return lifecycle.Heard{
		Owner: &lifecycle.Listing{AskedAt: now}, Read: &lifecycle.Reading{AskedAt: now}, Room: &lifecycle.Admission{},
		Offer:  &lifecycle.Quotation{AskedAt: now, Offer: booking.Offer{ExpiresAt: now.Add(time.Minute)}},
		Quotas: lifecycle.QuotaAnswer{Kind: lifecycle.QuotaRoom}, Hold: lifecycle.QuotaAnswer{Kind: lifecycle.QuotaRoom},
		Verdict: lifecycle.Verdict{Kind: lifecycle.VerdictAllowed}, Found: &lifecycle.Listing{}, Sent: &booking.Outcome{},
	}
}

func TestAPassThatRanOutOfRoomIsGoneOnWith(t *testing.T) {
	now := time.Now()
	of := lifecycle.Provider{Generation: 1, Identity: flightsv1.ProviderIdentity{Account: "acct-7"}}
	rotated := lifecycle.Provider{Generation: 1, Identity: flightsv1.ProviderIdentity{Account: "acct-8"}}
	status := flightsv1.FlightTicketStatus{Attempts: 1}
	booked := flightsv1.FlightTicketStatus{Attempts: 2}
	answered := heardAll(now)
	failed := &booking.CallError{Class: booking.ClassUnavailable, Code: booking.CodeRateLimited}
	all := lifecycle.Heard{Owner: answered.Owner, Read: answered.Read, Offer: answered.Offer}
	cases := map[string]struct {
		heard  lifecycle.Heard
		wish   uint64
		status flightsv1.FlightTicketStatus
		of     lifecycle.Provider
		after  time.Duration
		want   lifecycle.Heard
	}{
		"with its answers, and neither verdict, room nor outcome": {answered, 7, status, of, time.Second, all},
		"not once people want something else":                     {answered, 8, status, of, time.Second, lifecycle.Heard{}},
		"not once the status is another":                          {answered, 7, booked, of, time.Second, lifecycle.Heard{}},
		"not with another account":                                {answered, 7, status, rotated, time.Second, lifecycle.Heard{}},
		"not for ever":                                            {answered, 7, status, of, 2 * time.Hour, lifecycle.Heard{}},
		"but for an offer that has expired": {
			answered, 7, status, of, 2 * time.Minute, lifecycle.Heard{Owner: all.Owner, Read: all.Read},
		},
		"but for what failed": {
			lifecycle.Heard{Owner: all.Owner, Offer: &lifecycle.Quotation{Err: failed}}, 7, status, of, time.Second,
			lifecycle.Heard{Owner: all.Owner},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			m.keep(ticket, answers{wish: 7, status: status, of: of, heard: c.heard})
			if diff := cmp.Diff(c.want, m.recall(ticket, c.wish, c.status, c.of, now.Add(c.after))); diff != "" {
				t.Errorf("recalled (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(lifecycle.Heard{}, m.recall(ticket, c.wish, c.status, c.of, now.Add(c.after))); diff != "" {
				t.Errorf("recalled twice: %s", diff)
			}
		})
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
