package lifecycle_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// troubles are worlds in which one cause of waiting lasts.
var troubles = map[string]struct {
	cause lifecycle.Cause
	begin func(w *world)
}{
	"an order that is refused": {lifecycle.CauseRefused, func(w *world) {
		w.api.broken["send"] = failure(booking.ClassRefused, "sold_out")
	}},
	"a cancellation that is refused": {lifecycle.CauseRefused, func(w *world) {
		w.run(3)
		w.remove()
		w.api.broken["send"] = failure(booking.ClassRefused, "not_cancellable")
	}},
	"a look-up that the provider doesn't understand": {lifecycle.CauseRefused, func(w *world) {
		w.api.broken["list"] = failure(booking.ClassRefused, "bad_request")
	}},
	"a credential that is refused at the quote": {lifecycle.CauseCredential, func(w *world) {
		w.api.broken["quote"] = failure(booking.ClassCredential, "token_refused")
	}},
	"a credential that is refused at the order": {lifecycle.CauseCredential, func(w *world) {
		w.api.broken["send"] = failure(booking.ClassCredential, "token_refused")
	}},
	"a provider that asks for a second's pause each time": {lifecycle.CauseThrottled, func(w *world) {
		w.api.broken["quote"] = &booking.CallError{Class: booking.ClassThrottled, Code: "slow_down", RetryAfter: time.Second}
	}},
	"a provider that asks for a pause without end": {lifecycle.CauseThrottled, func(w *world) {
		w.api.broken["list"] = failure(booking.ClassThrottled, "slow_down")
	}},
	"a provider that is down": {lifecycle.CauseUnavailable, func(w *world) {
		w.api.broken["list"] = failure(booking.ClassUnavailable, "connection_refused")
	}},
	"a provider whose quotes fail": {lifecycle.CauseUnavailable, func(w *world) {
		w.api.broken["quote"] = failure(booking.ClassUnavailable, "http_503")
	}},
	"a booking that can't be read": {lifecycle.CauseUnavailable, func(w *world) {
		w.run(3)
		w.api.broken["get"] = failure(booking.ClassUnavailable, "http_503")
		w.clock = w.clock.Add(time.Hour)
	}},
	"an order whose outcome is unknown for hours": {lifecycle.CauseUnknown, func(w *world) {
		w.api.process = 3 * time.Hour
		w.api.broken["send"] = failure(booking.ClassUnknown, "timeout")
	}},
	"an offer that expires each time": {lifecycle.CauseAnew, func(w *world) {
		w.api.broken["send"] = failure(booking.ClassRefused, "offer_expired")
	}},
	"a policy that can't be evaluated": {lifecycle.CauseAnew, func(w *world) {
		w.verdict = lifecycle.Verdict{Kind: lifecycle.VerdictError, Messages: []string{"timed out"}}
	}},
	"a policy that refuses": {lifecycle.CauseHeld, func(w *world) {
		w.verdict = lifecycle.Verdict{Kind: lifecycle.VerdictRefused, Messages: []string{"no"}}
	}},
	"an adoption that is refused": {lifecycle.CauseHeld, func(w *world) { w.ticket.adopt = "b-9" }},
	"a quota that has no room":    {lifecycle.CauseFull, func(w *world) { w.seats(1, 0) }},
	"a flight that is full, and offers that expire at once": {lifecycle.CauseFull, func(w *world) {
		w.quota.offers, w.api.offers = true, time.Second
		w.seats(1, 0)
	}},
	"a quota that is being counted for hours": {lifecycle.CauseCounting, func(w *world) { w.quota.counting = true }},
	"a flight that is being counted for hours, and offers that expire at once": {lifecycle.CauseCounting, func(w *world) {
		w.quota.counting, w.quota.offers, w.api.offers = true, true, time.Second
	}},
	"a quota that doesn't let a ticket go": {lifecycle.CauseCounting, func(w *world) {
		w.run(3)
		w.quota.staying = true
		w.remove()
	}},
	"quotas that can't be asked": {lifecycle.CauseAnew, func(w *world) { w.quota.broken = true }},
	"our own limiter": {lifecycle.CauseTurn, func(w *world) {
		w.api.broken["list"] = failure(booking.ClassUnavailable, booking.CodeRateLimited)
		w.api.broken["list"].RetryAfter = time.Second
	}},
	"a booking that is looked after": {lifecycle.CauseLook, func(w *world) { w.run(3) }},
}

func TestAnHourOfEachTroubleStaysWithinItsBudget(t *testing.T) {
	most := map[lifecycle.Cause]int{}
	for name, trouble := range troubles {
		t.Run(name, func(t *testing.T) {
			w := newWorld(script{}.choose)
			trouble.begin(w)
			calls, writes := hour(w)
			most[trouble.cause] = max(most[trouble.cause], calls)
			if budget := lifecycle.PaceOf(trouble.cause).CallsAnHour; calls > budget {
				t.Errorf("%d calls in an hour, the budget is %d", calls, budget)
			}
			if writes > 0 {
				t.Errorf("the status was written %d times though neither state, reason nor message changed", writes)
			}
		})
	}
	for _, cause := range lifecycle.Causes() {
		if budget := lifecycle.PaceOf(cause).CallsAnHour; cause != lifecycle.CauseLook && 2*most[cause] < budget {
			t.Errorf("%s: no trouble takes more than %d calls, and the budget is %d", cause, most[cause], budget)
		}
	}
}

// hour lets an hour of passes go by, and counts calls that reach the provider, and writes that are no transition.
func hour(w *world) (calls, writes int) {
	w.watcher = func(from, to flightsv1.FlightTicketStatus, step lifecycle.Step) {
		_, moved := wayOf(from, to, step)
		if !moved && readyMessage(from) == readyMessage(to) && !equality.Semantic.DeepEqual(from, to) {
			writes++
		}
	}
	before := w.api.calls
	for end := w.clock.Add(time.Hour); w.clock.Before(end); {
		w.clock = w.clock.Add(w.pass())
	}
	return w.api.calls - before, writes
}

func TestAPauseIsAsLongAsTheTicketHasWaitedHoweverManyPassesThereWere(t *testing.T) {
	failed := func(o *lifecycle.Observation) {
		o.Heard.Owner = &lifecycle.Listing{Err: failure(booking.ClassUnavailable, "connection_refused")}
	}
	for waited, want := range map[time.Duration]time.Duration{
		0: time.Second, 500 * time.Millisecond: time.Second, 7 * time.Second: 7 * time.Second, time.Hour: 5 * time.Minute,
		-time.Hour: time.Second, // the clock was set back
	} {
		o := with(unbooked(), failed)
		o.Waits = lifecycle.Waits{lifecycle.CauseUnavailable: o.Now.Add(-waited)}
		for range 5 {
			step := lifecycle.Next(o)
			if step.After != want {
				t.Errorf("after %s it rests %s, want %s", waited, step.After, want)
			}
			o.Waits = o.Waits.After(step, o.Now)
		}
	}
}

func TestWaitsEndWhenTheProviderAnswersAndNotWhenItFailsOtherwise(t *testing.T) {
	began := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	later := began.Add(time.Hour)
	waiting := func(c lifecycle.Cause) lifecycle.Step { return lifecycle.Step{Action: lifecycle.Wait, Cause: c} }
	w := lifecycle.Waits(nil).After(waiting(lifecycle.CauseUnavailable), began)
	w = w.After(waiting(lifecycle.CauseThrottled), later).After(waiting(lifecycle.CauseUnavailable), later)
	if w[lifecycle.CauseUnavailable] != began || w[lifecycle.CauseThrottled] != later {
		t.Errorf("a provider that fails now this way, now that way, is asked as if it failed for the first time: %v", w)
	}
	for _, c := range []lifecycle.Cause{lifecycle.CauseTurn, lifecycle.CauseCredential} {
		if len(w.After(waiting(c), later)) != 2 {
			t.Errorf("%s ends waits, though the provider didn't answer", c)
		}
	}
	for _, c := range []lifecycle.Cause{lifecycle.CauseHeld, lifecycle.CauseLook, lifecycle.CauseRefused} {
		if len(w.After(waiting(c), later)) != 0 {
			t.Errorf("%s doesn't end waits", c)
		}
	}
	if len(w.After(lifecycle.Step{Action: lifecycle.Record}, later)) != 0 {
		t.Error("a booking doesn't end waits")
	}
}

func TestAFailureInOtherWordsIsNoTransition(t *testing.T) {
	asked := func(detail, code string) func(*lifecycle.Observation) {
		return func(o *lifecycle.Observation) {
			o.Heard.Owner = &lifecycle.Listing{Err: &booking.CallError{Class: booking.ClassUnavailable, Code: code, Detail: detail}}
		}
	}
	o := with(unbooked(), asked("trace 17", "http_503"))
	first := lifecycle.Next(o)
	o.Ticket.Status = first.Status
	if again := lifecycle.Next(with(o, asked("trace 18", "http_503"))); texts(again)[0] != texts(first)[0] {
		t.Errorf("another trace is told of: %s", texts(again))
	}
	if other := lifecycle.Next(with(o, asked("trace 19", "http_500"))); texts(other)[0] == texts(first)[0] {
		t.Errorf("another code is not told of: %s", texts(other))
	}
}

func TestThePageOfErrorClassesHasEachBudget(t *testing.T) {
	page, err := os.ReadFile("../../../docs/error-classes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, cause := range lifecycle.Causes() {
		row := regexp.MustCompile(`(?m)^\| ` + string(cause) + ` \|[^|]*\|[^|]*\| (\d+) \|`).FindSubmatch(page)
		if want := strconv.Itoa(lifecycle.PaceOf(cause).CallsAnHour); row == nil || string(row[1]) != want {
			t.Errorf("the row of %s doesn't say %s calls an hour: %s", cause, want, row)
		}
	}
}
