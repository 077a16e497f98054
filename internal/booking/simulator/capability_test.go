package simulator_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

func TestABookingCancelledOutsideIsNotLive(t *testing.T) {
	w := newWorld(t, simulator.Settings{})
	var b simulator.Booking
	w.decode(w.call("POST", "/bookings", w.body("ref-1", "team-a/x")), 201, &b)
	if totals := w.sim.Totals(); totals.Live != 1 || totals.Seats != 2 || totals.Charged["EUR"] != b.Price.Amount {
		t.Errorf("totals = %+v, want one booking of %s", totals, b.Price.Amount)
	}
	if err := w.sim.CancelOutside(b.Id); err != nil {
		t.Fatalf("cancel outside: %v", err)
	}
	if w.sim.CancelOutside(b.Id) == nil {
		t.Error("a booking that isn't live was cancelled again")
	}
	if totals := w.sim.Totals(); totals.Live != 0 || totals.Cancelled != 1 {
		t.Errorf("totals = %+v, want it cancelled", totals)
	}
}

func TestABookingChangedOutsideIsAsTheOrderSaysUnderANewVersion(t *testing.T) {
	w := newWorld(t, simulator.Settings{})
	var b, read simulator.Booking
	w.decode(w.call("POST", "/bookings", w.body("ref-1", "team-a/x")), 201, &b)
	order := simulator.Order{Origin: "BOM", Destination: "LON", Seats: 4}
	if err := w.sim.ChangeOutside(b.Id, order); err != nil {
		t.Fatalf("change outside: %v", err)
	}
	w.decode(w.call("GET", "/bookings/"+b.Id, ""), 200, &read)
	if read.Order.Seats != 4 || read.Version == b.Version || read.Price == b.Price || read.ClientReference != "ref-1" {
		t.Errorf("booking = %+v, want four seats under a new version and price and the same reference", read)
	}
	if last := w.sim.Ledger()[0].History; len(last) != 2 || last[1].Cause != "Outside" {
		t.Errorf("history = %+v, want one commit from outside", last)
	}
	if err := w.sim.CancelOutside(b.Id); err != nil {
		t.Fatalf("cancel outside: %v", err)
	}
	if w.sim.ChangeOutside(b.Id, order) == nil {
		t.Error("a booking that isn't live was changed")
	}
}

func TestAnotherAccountSeesNothingOfABooking(t *testing.T) {
	w := newWorld(t, simulator.Settings{})
	var b simulator.Booking
	w.decode(w.call("POST", "/bookings", w.body("ref-1", "team-a/x")), 201, &b)
	stranger := []string{"Authorization", "Bearer other"}
	w.wantProblem(w.call("GET", "/bookings/"+b.Id, "", stranger...), 404, "booking_not_found")
	w.wantProblem(w.call("DELETE", "/bookings/"+b.Id, "", stranger...), 404, "booking_not_found")
	var list simulator.BookingList
	w.decode(w.call("GET", "/bookings?clientReference=ref-1", "", stranger...), 200, &list)
	if len(list.Bookings) != 0 || len(w.sim.LiveBookings()) != 1 {
		t.Errorf("another account's list = %+v, live %d, want nothing and one", list, len(w.sim.LiveBookings()))
	}
}

func TestAProviderWithoutLookupSaysSoAndReadsByID(t *testing.T) {
	w := newWorld(t, simulator.Settings{NoLookup: true})
	var b simulator.Booking
	w.decode(w.call("POST", "/bookings", w.body("ref-1", "team-a/x")), 201, &b)
	w.wantProblem(w.call("GET", "/bookings?owner=team-a/x", ""), 501, "no_lookup")
	w.decode(w.call("GET", "/bookings/"+b.Id, ""), 200, new(simulator.Booking))
}

func TestCallsBeyondTheRateAreToldWhenToComeBack(t *testing.T) {
	w := newWorld(t, simulator.Settings{RateLimit: 0.5, RateBurst: 2})
	for range 2 {
		w.decode(w.call("GET", "/account", ""), 200, new(simulator.Account))
	}
	refused := w.call("GET", "/account", "")
	w.wantProblem(refused, 429, "rate_limited")
	if after := refused.Header().Get("Retry-After"); after != "2" {
		t.Errorf("Retry-After = %q, want the 2 seconds of one call", after)
	}
	w.decode(w.call("GET", "/account", "", "Authorization", "Bearer other"), 200, new(simulator.Account))
	w.now = w.now.Add(2 * time.Second)
	w.decode(w.call("GET", "/account", ""), 200, new(simulator.Account))
	w.wantProblem(w.call("GET", "/account", ""), 429, "rate_limited")
	w.sim.SetSettings(simulator.Settings{})
	for range 10 {
		w.decode(w.call("GET", "/account", ""), 200, new(simulator.Account))
	}
}

func TestARefusedCallBooksNothingAndRemembersNoKey(t *testing.T) {
	w := newWorld(t, simulator.Settings{RateLimit: 1, IdempotencyKeyTTL: metav1.Duration{Duration: time.Hour}})
	body := w.body("ref-1", "team-a/x") // the quote takes the one call
	w.wantProblem(w.call("POST", "/bookings", body, "Idempotency-Key", "k"), 429, "rate_limited")
	w.now = w.now.Add(time.Second)
	answer := w.call("POST", "/bookings", body, "Idempotency-Key", "k")
	w.decode(answer, 201, new(simulator.Booking))
	if answer.Header().Get("Idempotent-Replayed") != "" {
		t.Error("the refusal was stored under the key")
	}
}

func TestASlowProviderCommitsBeforeItAnswers(t *testing.T) {
	w := newWorld(t, simulator.Settings{})
	body := w.body("ref-1", "team-a/x")
	w.sim.SetSettings(simulator.Settings{Latency: metav1.Duration{Duration: time.Hour}})
	answered := make(chan int)
	go func() { answered <- w.call("POST", "/bookings", body).Code }()
	for {
		changed := w.sim.Changed()
		if len(w.sim.LiveBookings()) == 1 {
			break
		}
		<-changed
	}
	select {
	case <-answered:
		t.Error("the answer came before its time")
	default:
	}
	w.sim.Close() // ends the wait
	if status := <-answered; status != 201 {
		t.Errorf("status = %d, want 201", status)
	}
}

func TestAResetIsTheEndOfAConnectionBeforeOrAfterTheCommit(t *testing.T) {
	for effect, made := range map[simulator.Effect]int{simulator.EffectResetBefore: 0, simulator.EffectResetAfter: 1} {
		t.Run(string(effect), func(t *testing.T) {
			w := newWorld(t, simulator.Settings{})
			server := httptest.NewTLSServer(w.api)
			t.Cleanup(server.Close)
			body := w.body("ref-1", "team-a/x")
			if err := w.sim.Inject(simulator.Fault{Effect: effect, Times: 1}); err != nil {
				t.Fatalf("inject: %v", err)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/bookings", strings.NewReader(body))
			if err != nil {
				t.Fatalf("make request: %v", err)
			}
			r.Header.Set("Authorization", "Bearer s3cret")
			r.Header.Set("Content-Type", "application/json")
			answer, err := server.Client().Do(r)
			if err == nil {
				_ = answer.Body.Close()
				t.Fatalf("status = %d, want no answer", answer.StatusCode)
			}
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("error = %v, want a reset", err)
			}
			if got := len(w.sim.LiveBookings()); got != made {
				t.Errorf("bookings = %d, want %d", got, made)
			}
		})
	}
}
