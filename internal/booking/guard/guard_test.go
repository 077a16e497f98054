package guard_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/booking/guard"
)

// scripted is a provider whose every call fails as the script says, and counts.
type scripted struct {
	failure *booking.CallError
	calls   int
	inside  func()
}

func (s *scripted) err() error {
	s.calls++
	if s.inside != nil {
		s.inside()
	}
	if s.failure == nil {
		return nil
	}
	return s.failure
}

func (s *scripted) outcome() booking.Outcome {
	if err := s.err(); err == nil {
		return booking.Outcome{Kind: booking.Confirmed}
	}
	if s.failure.Class == booking.ClassUnknown {
		return booking.Outcome{Kind: booking.Unknown, Failure: s.failure}
	}
	return booking.Outcome{Kind: booking.Rejected, Failure: s.failure}
}

func (s *scripted) Account(context.Context) (booking.Account, error) {
	return booking.Account{}, s.err()
}

func (s *scripted) Quote(context.Context, flightsv1.Order) (booking.Offer, error) {
	return booking.Offer{}, s.err()
}

func (s *scripted) Get(context.Context, string) (booking.Booking, error) {
	return booking.Booking{}, s.err()
}

func (s *scripted) FindByClientReference(context.Context, string) ([]booking.Booking, error) {
	return nil, s.err()
}

func (s *scripted) FindByOwner(context.Context, string) ([]booking.Booking, error) {
	return nil, s.err()
}

func (s *scripted) Book(context.Context, booking.BookRequest) booking.Outcome { return s.outcome() }

func (s *scripted) Change(context.Context, booking.ChangeRequest) booking.Outcome {
	return s.outcome()
}

func (s *scripted) Cancel(context.Context, booking.CancelRequest) booking.Outcome {
	return s.outcome()
}

func book(g *guard.Guard, ctx context.Context) booking.Outcome {
	return g.Book(ctx, booking.BookRequest{})
}

// wantRefusal fails the test unless the guard answered by itself with the code and a wait.
func wantRefusal(t *testing.T, e *booking.CallError, code string) {
	t.Helper()
	if e == nil || e.Class != booking.ClassUnavailable || e.Code != code || e.RetryAfter <= 0 {
		t.Fatalf("failure = %+v, want Unavailable %s with a wait", e, code)
	}
}

func TestABurstIsLetThroughAndThenOneCallAtATime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var waits []time.Duration
	p := &scripted{}
	g := guard.New(p, guard.Options{
		Rate: 1, Burst: 3, Clock: func() time.Time { return now },
		OnWait: func(d time.Duration) { waits = append(waits, d) },
	})
	for range 3 {
		if o := book(g, t.Context()); o.Kind != booking.Confirmed {
			t.Fatalf("call within the burst = %+v", o)
		}
	}
	refused := book(g, t.Context())
	if refused.Kind != booking.Rejected {
		t.Fatalf("call beyond the burst = %+v, want Rejected", refused)
	}
	wantRefusal(t, refused.Failure, booking.CodeRateLimited)
	if len(waits) != 1 || waits[0] != time.Second {
		t.Errorf("waits told = %v, want one of 1s", waits)
	}
	now = now.Add(refused.Failure.RetryAfter)
	if o := book(g, t.Context()); o.Kind != booking.Confirmed || p.calls != 4 {
		t.Errorf("call after the wait = %+v, calls made %d, want Confirmed and 4", o, p.calls)
	}
}

func TestCancellationsGoBeforeBookingsBeforePolls(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	g := guard.New(&scripted{}, guard.Options{Rate: 0.1, Burst: 10, Clock: func() time.Time { return now }})
	admitted := func(p booking.Priority) int {
		n := 0
		for {
			if _, err := g.Admit(p); err != nil {
				return n
			}
			n++
		}
	}
	got := [3]int{admitted(booking.PriorityPoll), admitted(booking.PriorityBook), admitted(booking.PriorityCancel)}
	if want := [3]int{6, 2, 2}; got != want {
		t.Errorf("admitted polls, bookings, cancellations = %v, want %v", got, want)
	}
}

func TestAReadForACancellationIsAsUrgentAsIt(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	g := guard.New(&scripted{}, guard.Options{Rate: 0.1, Burst: 5, Clock: func() time.Time { return now }})
	for {
		if _, err := g.Admit(booking.PriorityBook); err != nil {
			break
		}
	}
	_, err := g.Get(t.Context(), "bk-1")
	var e *booking.CallError
	if !errors.As(err, &e) {
		t.Fatalf("poll = %v, want a refusal", err)
	}
	wantRefusal(t, e, booking.CodeRateLimited)
	if _, err := g.Get(booking.WithPriority(t.Context(), booking.PriorityCancel), "bk-1"); err != nil {
		t.Errorf("read for a cancellation = %v, want it let through", err)
	}
}

func TestAPermitHoldsRoomForExactlyOneCall(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	g := guard.New(&scripted{}, guard.Options{Rate: 0.1, Burst: 1, Clock: func() time.Time { return now }})
	permit, refusal := g.Admit(booking.PriorityBook)
	if refusal != nil {
		t.Fatalf("admit: %v", refusal)
	}
	if wait, reason := g.Ready(now); wait <= 0 || reason != booking.CodeRateLimited {
		t.Errorf("ready while the room is held = %v %q, want a wait", wait, reason)
	}
	ctx := permit.Context(t.Context())
	if o := book(g, ctx); o.Kind != booking.Confirmed {
		t.Fatalf("call with the permit = %+v", o)
	}
	wantRefusal(t, book(g, ctx).Failure, booking.CodeRateLimited)
	permit.Release()
	wantRefusal(t, book(g, ctx).Failure, booking.CodeRateLimited)
}

func TestAReleasedPermitGivesItsRoomBackOnce(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	g := guard.New(&scripted{}, guard.Options{Rate: 0.001, Burst: 1, Clock: func() time.Time { return now }})
	permit, _ := g.Admit(booking.PriorityBook)
	now = now.Add(time.Second)
	permit.Release()
	permit.Release()
	if wait, reason := g.Ready(now); reason != "" {
		t.Fatalf("ready after the release = %v %q, want room", wait, reason)
	}
	if o := book(g, t.Context()); o.Kind != booking.Confirmed {
		t.Fatalf("first call = %+v", o)
	}
	wantRefusal(t, book(g, t.Context()).Failure, booking.CodeRateLimited)
}

func TestScenario14RetryAfterPausesEveryCallOfTheCredential(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := &scripted{failure: &booking.CallError{
		Class: booking.ClassThrottled, Code: "rate_limited", RetryAfter: 90 * time.Second,
	}}
	g := guard.New(p, guard.Options{Rate: 100, Burst: 100, Clock: func() time.Time { return now }})
	book(g, t.Context())
	p.failure = nil
	// Fifty tickets come by while the pause lasts.
	for range 50 {
		wantRefusal(t, g.Cancel(t.Context(), booking.CancelRequest{}).Failure, booking.CodeProviderPaused)
		now = now.Add(time.Second)
	}
	if p.calls != 1 {
		t.Errorf("calls made during the pause = %d, want the first one alone", p.calls)
	}
	if wait, reason := g.Ready(now); wait != 40*time.Second || reason != booking.CodeProviderPaused {
		t.Errorf("ready = %v %q, want 40s of the pause", wait, reason)
	}
	now = now.Add(40 * time.Second)
	if o := book(g, t.Context()); o.Kind != booking.Confirmed {
		t.Errorf("call after the pause = %+v, want Confirmed", o)
	}
}

func TestA429WithoutATimePausesForAWhile(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := &scripted{failure: &booking.CallError{Class: booking.ClassThrottled}}
	g := guard.New(p, guard.Options{Rate: 100, Burst: 100, Clock: func() time.Time { return now }})
	book(g, t.Context())
	if wait, reason := g.Ready(now); wait <= 0 || reason != booking.CodeProviderPaused {
		t.Errorf("ready = %v %q, want a pause", wait, reason)
	}
}

func TestTheBreakerOpensOnOutagesAloneAndCloses(t *testing.T) {
	outage := &booking.CallError{Class: booking.ClassUnknown, Code: booking.CodeTimeout}
	cases := map[string]struct {
		failure *booking.CallError
		want    string
	}{
		"unknown outcomes open it":     {outage, "open"},
		"unavailability opens it":      {&booking.CallError{Class: booking.ClassUnavailable}, "open"},
		"refusals do not":              {&booking.CallError{Class: booking.ClassRefused}, "closed"},
		"a refused credential doesn't": {&booking.CallError{Class: booking.ClassCredential}, "closed"},
		"callers that give up do not":  {&booking.CallError{Class: booking.ClassUnknown, Code: booking.CodeCancelled}, "closed"},
		"requests that can't be do not": {
			&booking.CallError{Class: booking.ClassRefused, Code: booking.CodeInvalidRequest}, "closed",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &scripted{failure: c.failure}
			g := guard.New(p, guard.Options{Rate: 1000, Burst: 1000})
			for range 6 {
				book(g, t.Context())
			}
			if got := g.State(); got != c.want {
				t.Errorf("state after six calls = %s, want %s", got, c.want)
			}
		})
	}
}

func TestAnOpenBreakerTriesOneCallAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{failure: &booking.CallError{Class: booking.ClassUnknown, Code: booking.CodeTimeout}}
		g := guard.New(p, guard.Options{Rate: 1000, Burst: 1000, Failures: 2, OpenFor: time.Minute})
		book(g, t.Context())
		book(g, t.Context())
		refused := book(g, t.Context())
		wantRefusal(t, refused.Failure, booking.CodeBreakerOpen)
		if wait, reason := g.Ready(time.Now()); wait != time.Minute || reason != booking.CodeBreakerOpen {
			t.Errorf("ready = %v %q, want a minute of the open breaker", wait, reason)
		}
		time.Sleep(refused.Failure.RetryAfter + time.Second) //nolint:forbidigo // the bubble's clock: no time passes
		p.failure = nil
		// While the one trial call is under way, no other is let through.
		p.inside = func() {
			p.inside = nil
			wantRefusal(t, book(g, t.Context()).Failure, booking.CodeBreakerOpen)
		}
		if o := book(g, t.Context()); o.Kind != booking.Confirmed {
			t.Fatalf("trial call = %+v", o)
		}
		if o := book(g, t.Context()); o.Kind != booking.Confirmed || p.calls != 4 {
			t.Errorf("call after the trial = %+v, %d calls, want Confirmed and 4", o, p.calls)
		}
	})
}

func TestEveryReadAndWriteIsGuarded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := &scripted{}
	g := guard.New(p, guard.Options{Rate: 0.001, Burst: 1, Clock: func() time.Time { return now }})
	book(g, t.Context())
	ctx := t.Context()
	_, account := g.Account(ctx)
	_, quote := g.Quote(ctx, flightsv1.Order{})
	_, get := g.Get(ctx, "bk-1")
	_, byReference := g.FindByClientReference(ctx, "ref")
	_, byOwner := g.FindByOwner(ctx, "owner")
	change := g.Change(ctx, booking.ChangeRequest{}).Failure
	cancel := g.Cancel(ctx, booking.CancelRequest{}).Failure
	for _, err := range []error{account, quote, get, byReference, byOwner, change, cancel} {
		var e *booking.CallError
		if !errors.As(err, &e) {
			t.Fatalf("call = %v, want a CallError", err)
		}
		wantRefusal(t, e, booking.CodeRateLimited)
	}
	if p.calls != 1 {
		t.Errorf("calls made = %d, want 1", p.calls)
	}
}
