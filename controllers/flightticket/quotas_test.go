package flightticket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// unlimited is a gate for tests that are not about quotas: there is always room.
type unlimited struct{ changed chan types.NamespacedName }

func (unlimited) Bookable(context.Context, *flightsv1.FlightTicket, *booking.Offer) error { return nil }
func (unlimited) Departed(context.Context, *flightsv1.FlightTicket) error                 { return nil }
func (u unlimited) Changed() <-chan types.NamespacedName                                  { return u.changed }

func TestAReconcilerWithoutQuotasIsNotMade(t *testing.T) {
	if r, err := New(Options{}); err == nil || r != nil || !strings.Contains(err.Error(), "Quotas") {
		t.Errorf("got %v, %v: a gate that is left out must not be one that is open", r, err)
	}
}

func TestWhatTheQuotasSayIsTold(t *testing.T) {
	full := quota.NewRefusedError(quota.Refusal{
		Policy: "seats", Key: "2027-03", Requested: 2, Limit: 10, Used: 9, Resets: time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC),
	})
	uncounted := func(revision string) error {
		return &quota.NotCountedError{Policy: "seats", Key: "2027-03", Reason: "the cache is at revision " + revision}
	}
	for name, c := range map[string]struct {
		err  error
		kind lifecycle.QuotaKind
		says string
	}{
		"room":                {nil, lifecycle.QuotaRoom, ""},
		"no room":             {fmt.Errorf("ask: %w", full), lifecycle.QuotaFull, `quota "2027-03" of policy seats has no room: requested 2, limit 10, used 9, reserved 0, left 1; it resets at 2027-04-01 00:00 UTC`},
		"not counted":         {uncounted("7"), lifecycle.QuotaCounting, `quota "2027-03" of policy seats is being counted`},
		"counted by a later":  {&quota.StaleError{Policy: "seats", Generation: 1, Newest: 2}, lifecycle.QuotaCounting, "policy seats has changed, and its quotas are being counted anew"},
		"too many at a time":  {&quota.BusyError{Policy: "seats", Key: "k", Reason: "a conflict"}, lifecycle.QuotaCounting, `quota "k" of policy seats is busy`},
		"something else":      {errors.New("no connection"), lifecycle.QuotaError, "the quotas of the ticket could not be asked: no connection"},
		"an error of a claim": {&quota.ClaimError{Policy: "seats", Problem: "two limits"}, lifecycle.QuotaError, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quotaAnswer(c.err); got.Kind != c.kind || c.says != "" && got.Message != c.says {
				t.Errorf("got %+v, want %s: %s", got, c.kind, c.says)
			}
		})
	}
	if quotaAnswer(uncounted("7")) != quotaAnswer(uncounted("8")) {
		t.Error("a count that gets on is told as news, and each is a write of the status")
	}
}

// A ticket that waits for its quotas is woken, also by what happens between its question and its rest; one that waits for
// something else is not.
func TestOnlyATicketThatWaitsForItsQuotasIsWoken(t *testing.T) {
	now := time.Now()
	waits := func(m *memory, quotas bool, woken int64) {
		m.rests(ticket, rest{facts: 7, due: now.Add(time.Minute), quotas: quotas, woken: woken})
	}
	m := newMemory()
	waits(m, true, m.woken(ticket))
	if m.due(ticket, 7, now) == 0 {
		t.Fatal("it doesn't rest")
	}
	m.wake(ticket)
	if m.due(ticket, 7, now) != 0 {
		t.Error("it rests though there may be room")
	}
	before := m.woken(ticket)
	m.wake(ticket)
	waits(m, true, before)
	if m.due(ticket, 7, now) != 0 {
		t.Error("what happened while it was asked about is lost")
	}
	waits(m, false, m.woken(ticket))
	m.wake(ticket)
	if m.due(ticket, 7, now) == 0 {
		t.Error("a ticket that waits for its provider is woken, and asks it")
	}
	if m.woken(other) != 0 || m.due(other, 7, now) != 0 {
		t.Error("another ticket is concerned")
	}
}

func TestNewsOfRoomReachTheQueueUntilTheControllerStops(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	gate := unlimited{changed: make(chan types.NamespacedName)}
	r, err := New(Options{Quotas: gate})
	if err != nil {
		t.Fatal(err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := r.followQuotas(ctx, queue); err != nil {
		t.Fatal(err)
	}
	gate.changed <- ticket
	if got, _ := queue.Get(); got.NamespacedName != ticket {
		t.Errorf("got %v", got)
	}
	if r.memory.woken(ticket) != 1 {
		t.Error("the ticket is not woken")
	}
}

// The quotas said that there is room for one version of the ticket: another one must ask again, and not the provider.
func TestAnOperationThatIsOvertakenIsNotWrittenOnAnotherVersion(t *testing.T) {
	p, tries := observed(), 0
	overtaken := apierrors.NewConflict(flightsv1.GroupVersion.WithResource("flighttickets").GroupResource(), "ticket", errors.New("it was edited"))
	err := p.once(t.Context(), func() error {
		tries++
		return overtaken
	})
	if tries != 1 || !apierrors.IsConflict(err) || !p.waits {
		t.Errorf("tried %d times, %v; what was heard is kept: %t", tries, err, p.waits)
	}
}
