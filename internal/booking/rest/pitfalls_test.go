package rest_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/booking/rest"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

func callError(t *testing.T, err error) *booking.CallError {
	t.Helper()
	var e *booking.CallError
	if !errors.As(err, &e) {
		t.Fatalf("error = %v, want a CallError", err)
	}
	return e
}

// onCommand is a context whose deadline passes when the test says so.
type onCommand struct {
	context.Context
	passed chan struct{}
}

func (c onCommand) Done() <-chan struct{} { return c.passed }

func (c onCommand) Err() error {
	select {
	case <-c.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// clock is a simulator's clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// waitFor waits until the simulator is as wanted. The test's own timeout ends a wait that never ends.
func waitFor(sim *simulator.Simulator, wanted func() bool) {
	for {
		changed := sim.Changed()
		if wanted() {
			return
		}
		<-changed
	}
}

func TestScenario13ATimeoutThatHadSucceededIsUnknownAndFoundLater(t *testing.T) {
	c := &clock{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	sim, server := start(t, simulator.Options{Now: c.Now, Settings: simulator.Settings{
		ReadLag: metav1.Duration{Duration: 20 * time.Second}, IdempotencyKeyTTL: metav1.Duration{Duration: time.Hour},
	}})
	p := dial(t, server, func(o *rest.Options) { o.SendKeys = true })
	r := request(t, p, "ref-1")
	inject(t, sim, simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectDelayAfter, Times: 1})
	ctx := onCommand{Context: t.Context(), passed: make(chan struct{})}
	sent := make(chan booking.Outcome)
	go func() { sent <- p.Book(ctx, r) }()
	waitFor(sim, func() bool { return len(sim.LiveBookings()) == 1 })
	close(ctx.passed)
	outcome := <-sent
	if outcome.Kind != booking.Unknown || outcome.Failure.Code != booking.CodeTimeout {
		t.Fatalf("outcome = %+v (%v), want Unknown by timeout", outcome, outcome.Failure)
	}
	find := func() []booking.Booking {
		found, err := p.FindByClientReference(t.Context(), "ref-1")
		if err != nil {
			t.Fatalf("find: %v", err)
		}
		return found
	}
	if found := find(); len(found) != 0 {
		t.Fatalf("found within the read lag = %v, want none", found)
	}
	replay := p.Book(t.Context(), r)
	if replay.Kind != booking.Confirmed || !replay.Replayed {
		t.Errorf("same key again = %+v (%v), want a replayed confirmation", replay, replay.Failure)
	}
	c.advance(20 * time.Second)
	if found := find(); len(found) != 1 || len(sim.LiveBookings()) != 1 || len(sim.Violations()) != 0 {
		t.Errorf("found after the lag = %v, live %v, violations %v, want one booking", found, sim.LiveBookings(), sim.Violations())
	}
}

func TestScenario12ACallThatIsGivenUpIsUnknown(t *testing.T) {
	sim, server := start(t, simulator.Options{})
	p := dial(t, server, nil)
	r := request(t, p, "ref-1")
	inject(t, sim, simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectDelayBefore, Times: 1})
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan booking.Outcome)
	go func() { sent <- p.Book(ctx, r) }()
	waitFor(sim, func() bool { return sim.Count(simulator.OpBook) == 1 })
	cancel()
	if outcome := <-sent; outcome.Kind != booking.Unknown || outcome.Failure.Code != booking.CodeCancelled {
		t.Errorf("outcome = %+v (%v), want Unknown", outcome, outcome.Failure)
	}
}

func inject(t *testing.T, sim *simulator.Simulator, f simulator.Fault) {
	t.Helper()
	if err := sim.Inject(f); err != nil {
		t.Fatalf("inject: %v", err)
	}
}

func TestScenario14ARefusalWithANewTraceIDEachTimeReadsTheSame(t *testing.T) {
	sim, server := start(t, simulator.Options{})
	p := dial(t, server, nil)
	r := request(t, p, "ref-1")
	inject(t, sim, simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectEcho})
	first, second := p.Book(t.Context(), r), p.Book(t.Context(), r)
	if first.Kind != booking.Rejected || first.Failure.Error() != second.Failure.Error() {
		t.Errorf("refusals = %v and %v, want the same words", first.Failure, second.Failure)
	}
}

func TestScenario16TheServersWordsLeakNothing(t *testing.T) {
	sim, server := start(t, simulator.Options{})
	p := dial(t, server, nil)
	r := request(t, p, "ref-1")
	r.Order.Passengers = append(r.Order.Passengers, passenger())
	inject(t, sim, simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectEcho, Times: 1})
	echoed := p.Book(t.Context(), r).Failure.Error()
	inject(t, sim, simulator.Fault{
		Effect: simulator.EffectRefuse, Status: 422, Code: strings.ToLower(strings.ReplaceAll(testToken, "-", "_")),
		Detail: "Ada LOVELACE <ada@example.com> may not fly; see https://inside.example.com/?t=" + testToken + "\x1b[31m\u202e",
	})
	refused := p.Book(t.Context(), r).Failure.Error()
	_, err := p.Account(t.Context())
	for _, words := range []string{echoed, refused, err.Error()} {
		for _, leak := range []string{testToken, testToken[7:], "Bearer", "@example", "inside.example.com", "\x1b", "\u202e"} {
			if strings.Contains(strings.ToLower(words), strings.ToLower(leak)) {
				t.Errorf("words %q hold %q", words, leak)
			}
		}
	}
	for _, name := range []string{"ada", "lovelace"} {
		if strings.Contains(strings.ToLower(refused), name) {
			t.Errorf("the refusal of a booking names its passenger: %q", refused)
		}
	}
	if !strings.Contains(refused, "may not fly") {
		t.Errorf("the refusal %q lost the provider's reason", refused)
	}
}

func TestScenario16ARedirectIsNotFollowed(t *testing.T) {
	var reached atomic.Int32
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(inside.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		p := dial(t, serveCanned(t, canned{status, map[string]string{"Location": inside.URL + "/account"}, ""}), nil)
		_, err := p.Account(t.Context())
		if e := callError(t, err); e.Code != booking.CodeRedirectRefused {
			t.Errorf("%d = %v, want it refused", status, e)
		}
		if outcome := p.Book(t.Context(), cannedBook()); outcome.Booking != nil || outcome.Failure.Code != booking.CodeRedirectRefused {
			t.Errorf("%d to a booking = %+v, want it refused", status, outcome)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("calls that reached the place redirected to = %d, want none", n)
	}
}

func TestScenario16AnEndpointThatResolvesInwardIsNotCalled(t *testing.T) {
	sim, server := start(t, simulator.Options{})
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatalf("read address: %v", err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "169.254.169.254"} {
		p := dial(t, server, func(o *rest.Options) { o.Endpoint, o.AllowPrivate = "https://"+host+":"+port, false })
		outcome := p.Book(t.Context(), cannedBook())
		if outcome.Kind != booking.Rejected || outcome.Failure.Class != booking.ClassUnavailable ||
			outcome.Failure.Code != booking.CodeEndpointForbidden {
			t.Errorf("%s = %+v (%v), want it forbidden", host, outcome, outcome.Failure)
		}
	}
	metadata := dial(t, server, func(o *rest.Options) { o.Endpoint = "https://169.254.169.254:" + port })
	_, err = metadata.Account(t.Context())
	if e := callError(t, err); e.Code != booking.CodeEndpointForbidden {
		t.Errorf("metadata address with allowPrivate = %v, want it forbidden", e)
	}
	if n := sim.Count(""); n != 0 {
		t.Errorf("calls that arrived = %d, want none", n)
	}
}

func TestScenario17ACancellationIsGoneOnlyForItsOwnAccount(t *testing.T) {
	sim, server := start(t, simulator.Options{
		Tokens: map[string]string{testToken: testAccount, "other-token": "acct-8"},
	})
	p := dial(t, server, nil)
	booked := p.Book(t.Context(), request(t, p, "ref-1"))
	if booked.Kind != booking.Confirmed {
		t.Fatalf("book = %+v (%v)", booked, booked.Failure)
	}
	cancel := booking.CancelRequest{BookingID: booked.Booking.ID}
	stranger := dial(t, server, func(o *rest.Options) { o.Token = "other-token" })
	if o := stranger.Cancel(t.Context(), cancel); o.Kind != booking.Rejected || o.Failure.Class != booking.ClassNotFound {
		t.Errorf("cancel with another account's token = %+v, want NotFound", o)
	}
	if account, err := stranger.Account(t.Context()); err != nil || account.ID == testAccount {
		t.Errorf("account = %v, %v: a caller can't tell that the 404 came from another account", account, err)
	}
	inject(t, sim, simulator.Fault{
		Operation: simulator.OpCancel, Effect: simulator.EffectRefuse, Status: 409, Code: "not_cancellable", Times: 1,
	})
	if o := p.Cancel(t.Context(), cancel); o.Kind != booking.Rejected || o.Failure.Class != booking.ClassConflict {
		t.Errorf("cancel answered with 409 = %+v, want Conflict", o)
	}
	read, err := p.Get(t.Context(), booked.Booking.ID)
	if err != nil || read.Status != booking.StatusConfirmed {
		t.Errorf("booking after both = %+v, %v, want it confirmed", read, err)
	}
}
