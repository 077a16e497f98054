package simulator_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a simulator that is called in process, with a clock that the test moves.
type world struct {
	t   *testing.T
	sim *simulator.Simulator
	now time.Time
	api http.Handler
}

func newWorld(t *testing.T, settings simulator.Settings) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	w.sim = simulator.New(simulator.Options{
		Settings: settings, Now: func() time.Time { return w.now },
		Tokens: map[string]string{"s3cret": "acct-7", "other": "acct-8"},
	})
	t.Cleanup(w.sim.Close)
	w.api = w.sim.Handler()
	return w
}

// call makes a call and returns status, header and body. Headers are name, value, name, value.
func (w *world) call(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer s3cret")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	w.api.ServeHTTP(answer, r)
	return answer
}

const orderJSON = `{"origin":"BOM","destination":"LON","seats":2}`

// body makes the body of a booking with a fresh quote.
func (w *world) body(reference, owner string) string {
	w.t.Helper()
	answer := w.call("POST", "/quotes", `{"order":`+orderJSON+`}`)
	var list simulator.QuoteList
	w.decode(answer, 200, &list)
	return `{"quoteId":"` + list.Quotes[0].Id + `","clientReference":"` + reference + `","owner":"` + owner +
		`","order":` + orderJSON + `,"ceiling":{"amount":"9999","currency":"EUR"}}`
}

func (w *world) decode(answer *httptest.ResponseRecorder, status int, into any) {
	w.t.Helper()
	if answer.Code != status {
		w.t.Fatalf("status = %d (%s), want %d", answer.Code, answer.Body, status)
	}
	if err := json.Unmarshal(answer.Body.Bytes(), into); err != nil {
		w.t.Fatalf("decode: %v", err)
	}
}

func (w *world) wantProblem(answer *httptest.ResponseRecorder, status int, code string) {
	w.t.Helper()
	var p simulator.Problem
	w.decode(answer, status, &p)
	if p.Code != code || int(p.Status) != status || answer.Header().Get("Content-Type") != "application/problem+json" {
		w.t.Errorf("problem = %+v of type %s, want %d %s", p, answer.Header().Get("Content-Type"), status, code)
	}
}

func TestTwoLiveBookingsForOneOwnerAreAViolationEvenOnceMended(t *testing.T) {
	w := newWorld(t, simulator.Settings{})
	var second simulator.Booking
	w.decode(w.call("POST", "/bookings", w.body("ref-1", "team-a/x")), 201, new(simulator.Booking))
	if v := w.sim.Violations(); len(v) != 0 {
		t.Fatalf("violations after one booking = %v", v)
	}
	w.decode(w.call("POST", "/bookings", w.body("ref-2", "team-a/x")), 201, &second)
	w.decode(w.call("DELETE", "/bookings/"+second.Id, ""), 200, new(simulator.Booking))
	v := w.sim.Violations()
	if len(v) != 1 || v[0].Rule != "one-live-booking-per-owner" || len(v[0].BookingIDs) != 2 {
		t.Errorf("violations = %+v, want the one that stood", v)
	}
	if live := w.sim.LiveByOwner("team-a/x"); len(live) != 1 {
		t.Errorf("live = %v, want one", live)
	}
}

func TestReadsLagBehindCommits(t *testing.T) {
	w := newWorld(t, simulator.Settings{ReadLag: metav1.Duration{Duration: 20 * time.Second}})
	var made simulator.Booking
	w.decode(w.call("POST", "/bookings", w.body("ref-1", "team-a/x")), 201, &made)
	w.wantProblem(w.call("GET", "/bookings/"+made.Id, ""), 404, "booking_not_found")
	w.now = w.now.Add(20 * time.Second)
	w.decode(w.call("GET", "/bookings/"+made.Id, ""), 200, new(simulator.Booking))
	var cancelled, read simulator.Booking
	w.decode(w.call("DELETE", "/bookings/"+made.Id, ""), 200, &cancelled)
	w.decode(w.call("GET", "/bookings/"+made.Id, ""), 200, &read)
	if cancelled.Status != simulator.Cancelled || read.Status != simulator.Confirmed {
		t.Errorf("cancelled = %s, read = %s, want the read to lag", cancelled.Status, read.Status)
	}
}

func TestABookingIsPendingUntilItsProcessingEnds(t *testing.T) {
	for fails, want := range map[bool]simulator.BookingStatus{false: simulator.Confirmed, true: simulator.Failed} {
		w := newWorld(t, simulator.Settings{Processing: metav1.Duration{Duration: time.Minute}, ProcessingFails: fails})
		answer := w.call("POST", "/bookings", w.body("ref-1", "team-a/x"))
		var b simulator.Booking
		w.decode(answer, 202, &b)
		if b.Status != simulator.Pending || answer.Header().Get("Location") != "/bookings/"+b.Id {
			t.Errorf("accepted = %+v at %s, want it pending with its place", b, answer.Header().Get("Location"))
		}
		w.wantProblem(w.call("DELETE", "/bookings/"+b.Id, ""), 409, "booking_pending")
		w.now = w.now.Add(time.Minute)
		w.decode(w.call("GET", "/bookings/"+b.Id, ""), 200, &b)
		if b.Status != want {
			t.Errorf("status after processing = %s, want %s", b.Status, want)
		}
	}
}

func TestAKeyRepeatsItsStoredAnswerUntilItExpires(t *testing.T) {
	w := newWorld(t, simulator.Settings{IdempotencyKeyTTL: metav1.Duration{Duration: time.Hour}})
	body := w.body("ref-1", "team-a/x")
	first := w.call("POST", "/bookings", body, "Idempotency-Key", "k")
	again := w.call("POST", "/bookings", body, "Idempotency-Key", "k")
	if again.Header().Get("Idempotent-Replayed") != "true" || again.Body.String() != first.Body.String() || again.Code != 201 {
		t.Errorf("repeat = %d %s, want the first answer, marked", again.Code, again.Body)
	}
	w.wantProblem(w.call("POST", "/bookings", w.body("ref-2", "team-a/x"), "Idempotency-Key", "k"), 422, "idempotency_key_reused")
	if n := len(w.sim.LiveBookings()); n != 1 {
		t.Errorf("live bookings = %d, want 1", n)
	}
	w.now = w.now.Add(2 * time.Hour)
	w.decode(w.call("POST", "/bookings", w.body("ref-3", "team-b/y"), "Idempotency-Key", "k"), 201, new(simulator.Booking))
}

func TestAProviderWithoutKeysBooksTwice(t *testing.T) {
	w := newWorld(t, simulator.Settings{})
	body := w.body("ref-1", "team-a/x")
	for range 2 {
		w.decode(w.call("POST", "/bookings", body, "Idempotency-Key", "k"), 201, new(simulator.Booking))
	}
	if v := w.sim.Violations(); len(v) != 2 {
		t.Errorf("violations = %+v, want one for the owner and one for the reference", v)
	}
}

func TestAKeyWhoseFirstCallRunsIsInProgress(t *testing.T) {
	w := newWorld(t, simulator.Settings{IdempotencyKeyTTL: metav1.Duration{Duration: time.Hour}})
	release := make(chan struct{})
	body := w.body("ref-1", "team-a/x")
	if err := w.sim.Inject(simulator.Fault{
		Operation: simulator.OpBook, Effect: simulator.EffectDelayBefore, Times: 1, Release: release,
	}); err != nil {
		t.Fatalf("inject: %v", err)
	}
	var first sync.WaitGroup
	first.Go(func() { w.call("POST", "/bookings", body, "Idempotency-Key", "k") })
	for {
		changed := w.sim.Changed()
		if calls := w.sim.Calls(); calls[len(calls)-1].Held {
			break
		}
		<-changed
	}
	second := w.call("POST", "/bookings", body, "Idempotency-Key", "k")
	w.wantProblem(second, 409, "idempotency_key_in_progress")
	close(release)
	first.Wait()
}

func TestRefusalsSayWhatIsWrong(t *testing.T) {
	w := newWorld(t, simulator.Settings{})
	order := func(edit string) string { return `{"order":` + edit + `}` }
	cases := map[string]struct {
		answer *httptest.ResponseRecorder
		status int
		code   string
	}{
		"a lower-case place":       {w.call("POST", "/quotes", order(`{"origin":"bom","destination":"LON","seats":2}`)), 422, "invalid_place"},
		"one place twice":          {w.call("POST", "/quotes", order(`{"origin":"BOM","destination":"BOM","seats":2}`)), 422, "invalid_place"},
		"no seats":                 {w.call("POST", "/quotes", order(`{"origin":"BOM","destination":"LON","seats":0}`)), 422, "invalid_seats"},
		"a cabin of no kind":       {w.call("POST", "/quotes", order(`{"origin":"BOM","destination":"LON","seats":1,"cabin":"Roof"}`)), 422, "invalid_cabin"},
		"a day that doesn't exist": {w.call("POST", "/quotes", order(`{"origin":"BOM","destination":"LON","seats":1,"departureDate":"2027-02-30"}`)), 422, "invalid_date"},
		"broken JSON":              {w.call("POST", "/quotes", `{`), 400, "bad_request"},
		"no name":                  {w.call("POST", "/bookings", w.body("", "team-a/x")), 422, "invalid_name"},
		"an offer of nobody":       {w.call("POST", "/bookings", strings.Replace(w.body("r", "o"), `"q-`, `"p-`, 1)), 422, "offer_not_found"},
		"another order":            {w.call("POST", "/bookings", strings.Replace(w.body("r", "o"), `"seats":2`, `"seats":3`, 1)), 422, "order_mismatch"},
		"a low ceiling":            {w.call("POST", "/bookings", strings.Replace(w.body("r", "o"), "9999", "1", 1)), 422, "price_above_ceiling"},
		"another currency":         {w.call("POST", "/bookings", strings.Replace(w.body("r", "o"), "EUR", "USD", 1)), 422, "price_above_ceiling"},
		"no name to find":          {w.call("GET", "/bookings", ""), 400, "bad_request"},
		"two names to find":        {w.call("GET", "/bookings?owner=a&clientReference=b", ""), 400, "bad_request"},
		"a huge page":              {w.call("GET", "/bookings?owner=a&limit=101", ""), 400, "bad_request"},
		"a change of no version":   {w.call("PUT", "/bookings/bk-1", `{}`), 400, "bad_request"},
		"no such path":             {w.call("GET", "/nowhere", ""), 404, "not_found"},
		"a wrong token":            {w.call("GET", "/account", "", "Authorization", "Bearer wrong"), 401, "token_refused"},
		"no bearer":                {w.call("GET", "/account", "", "Authorization", "s3cret"), 401, "token_refused"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { (&world{t: t}).wantProblem(c.answer, c.status, c.code) })
	}
	body := w.body("r", "o")
	w.now = w.now.Add(time.Hour)
	w.wantProblem(w.call("POST", "/bookings", body), 422, "offer_expired")
	if n := len(w.sim.Ledger()); n != 0 {
		t.Errorf("bookings made = %d, want none", n)
	}
}

func TestTheSameOrderCostsTheSame(t *testing.T) {
	price := func() simulator.Money {
		w := newWorld(t, simulator.Settings{})
		var list simulator.QuoteList
		w.decode(w.call("POST", "/quotes", `{"order":`+orderJSON+`}`), 200, &list)
		return list.Quotes[0].Price
	}
	if a, b := price(), price(); a != b || a.Amount == "" {
		t.Errorf("prices = %v and %v, want the same", a, b)
	}
}

func TestTokensAreRotatedWithoutARestart(t *testing.T) {
	w := newWorld(t, simulator.Settings{})
	w.sim.AddToken("new", "acct-7")
	w.sim.RevokeToken("s3cret")
	w.wantProblem(w.call("GET", "/account", ""), 401, "token_refused")
	var account simulator.Account
	w.decode(w.call("GET", "/account", "", "Authorization", "Bearer new"), 200, &account)
	if account.Id != "acct-7" {
		t.Errorf("account of the new token = %s, want the same", account.Id)
	}
}

func TestTheAdminHandlerSwitchesAndShows(t *testing.T) {
	w := newWorld(t, simulator.Settings{})
	admin := httptest.NewServer(w.sim.AdminHandler())
	t.Cleanup(admin.Close)
	ask := func(method, path, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, admin.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatalf("make request: %v", err)
		}
		answer, err := admin.Client().Do(r)
		if err != nil {
			t.Fatalf("ask: %v", err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		return answer.StatusCode, string(text)
	}
	steps := []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/_simulator/faults", `{"operation":"Book","effect":"refuse","times":1}`, 204},
		{"POST", "/_simulator/faults", `{"operation":"Book","effect":"explode"}`, 400},
		{"POST", "/_simulator/faults", `{"operation":"Fly","effect":"refuse"}`, 400},
		{"POST", "/_simulator/faults", `{"efect":"refuse"}`, 400},
		{"PUT", "/_simulator/settings", `{"currency":"USD","readLag":"5s"}`, 204},
		{"PUT", "/_simulator/tokens", `{"canary":"acct-9"}`, 204},
		{"PUT", "/_simulator/settings", `{"rateLimit":-1}`, 400},
		{"PUT", "/_simulator/settings", `{"latency":"-1s"}`, 400},
		{"POST", "/_simulator/bookings/bk-none/cancel", "", 404},
		{"POST", "/_simulator/bookings/bk-none/change", orderJSON, 404},
		{"POST", "/_simulator/bookings/bk-none/change", `{"origin":"BOM"}`, 422},
		{"GET", "/_simulator/ledger", "", 200},
		{"DELETE", "/_simulator/faults", "", 204},
	}
	for _, s := range steps {
		if status, text := ask(s.method, s.path, s.body); status != s.status || strings.Contains(text, "canary") {
			t.Errorf("%s %s = %d %s, want %d", s.method, s.path, status, text, s.status)
		}
	}
	if got := w.sim.Settings(); got.Currency != "USD" || got.ReadLag.Duration != 5*time.Second || len(w.sim.Faults()) != 0 {
		t.Errorf("settings = %+v, faults %v", got, w.sim.Faults())
	}
	foreign := httptest.NewRecorder()
	w.sim.AdminHandler().ServeHTTP(foreign, httptest.NewRequest("GET", "http://evil.example.com/_simulator/ledger", nil))
	w.wantProblem(foreign, 403, "forbidden")
}
