package rest_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/booking/rest"
)

// canned is an answer to every call.
type canned struct {
	status int
	header map[string]string
	body   string
}

// serveCanned serves one answer over TLS.
func serveCanned(t *testing.T, c canned) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range c.header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(c.status)
		_, _ = w.Write([]byte(c.body))
	}))
	t.Cleanup(server.Close)
	return server
}

var (
	asJSON    = map[string]string{"Content-Type": "application/json; charset=utf-8"}
	asProblem = map[string]string{"Content-Type": "application/problem+json"}
)

// bookingJSON is a booking with the names of cannedBook.
func bookingJSON(status string) string {
	return fmt.Sprintf(`{"id":"bk-1","clientReference":"ref-1","owner":"owner-1","status":%q,"version":"\"1\"",
		"order":{"origin":"BOM","destination":"LON","seats":2},"price":{"amount":"99.50","currency":"EUR"},
		"createdAt":"2026-11-30T12:00:00Z","reason":"The airline said no."}`, status)
}

func problemJSON(status int, code string) string {
	return fmt.Sprintf(`{"title":"T","status":%d,"code":%q,"detail":"The provider says why."}`, status, code)
}

func with(header map[string]string, name, value string) map[string]string {
	h := map[string]string{name: value}
	for n, v := range header {
		h[n] = v
	}
	return h
}

func cannedBook() booking.BookRequest {
	return booking.BookRequest{
		Names: booking.Names{ClientReference: "ref-1", Owner: "owner-1"}, Order: testOrder(), OfferID: "q-1",
	}
}

// outcome is what is compared of a booking.Outcome.
type outcome struct {
	Kind     booking.OutcomeKind
	Class    booking.Class
	Code     string
	Replayed bool
}

type outcomeCase struct {
	answer canned
	want   outcome
}

// stillOpen and certainlyNot are the two ways in which a booking isn't confirmed.
func stillOpen(code string) outcome {
	return outcome{booking.Unknown, booking.ClassUnknown, code, false}
}

func certainlyNot(class booking.Class, code string) outcome {
	return outcome{booking.Rejected, class, code, false}
}

func successCases() map[string]outcomeCase {
	confirmed, pending := outcome{Kind: booking.Confirmed}, outcome{Kind: booking.Pending}
	invalid := stillOpen(booking.CodeInvalidAnswer)
	replayedHeader := with(asJSON, "Idempotent-Replayed", "true")
	return map[string]outcomeCase{
		"201 with a confirmed booking":             {canned{201, asJSON, bookingJSON("confirmed")}, confirmed},
		"200 with a confirmed booking":             {canned{200, asJSON, bookingJSON("confirmed")}, confirmed},
		"a replayed answer":                        {canned{200, replayedHeader, bookingJSON("confirmed")}, outcome{Kind: booking.Confirmed, Replayed: true}},
		"202 with a pending booking":               {canned{202, asJSON, bookingJSON("pending")}, pending},
		"201 with a pending booking":               {canned{201, asJSON, bookingJSON("pending")}, pending},
		"201 with a failed booking":                {canned{201, asJSON, bookingJSON("failed")}, certainlyNot(booking.ClassRefused, booking.CodeBookingFailed)},
		"201 with a cancelled booking":             {canned{201, asJSON, bookingJSON("cancelled")}, invalid},
		"201 with a status nobody knows":           {canned{201, asJSON, bookingJSON("ticketed")}, invalid},
		"201 with another client reference":        {canned{201, asJSON, strings.Replace(bookingJSON("confirmed"), "ref-1", "ref-2", 1)}, invalid},
		"201 with another owner":                   {canned{201, asJSON, strings.Replace(bookingJSON("confirmed"), "owner-1", "owner-2", 1)}, invalid},
		"201 without an id":                        {canned{201, asJSON, strings.Replace(bookingJSON("confirmed"), "bk-1", "", 1)}, invalid},
		"201 with an id that is a path":            {canned{201, asJSON, strings.Replace(bookingJSON("confirmed"), "bk-1", "../account", 1)}, invalid},
		"201 that repeats the token":               {canned{201, asJSON, strings.Replace(bookingJSON("confirmed"), "bk-1", testToken, 1)}, invalid},
		"201 that hides the token in escapes":      {canned{201, asJSON, strings.Replace(bookingJSON("confirmed"), "bk-1", `\u0063`+testToken[1:], 1)}, invalid},
		"201 that goes on after its JSON":          {canned{201, asJSON, bookingJSON("confirmed") + "{}"}, invalid},
		"201 with an empty body":                   {canned{201, asJSON, ""}, invalid},
		"201 with a list":                          {canned{201, asJSON, "[]"}, invalid},
		"201 with a web page":                      {canned{201, map[string]string{"Content-Type": "text/html"}, "<p>ok"}, invalid},
		"201 with JSON that is called a page":      {canned{201, map[string]string{"Content-Type": "text/html"}, bookingJSON("confirmed")}, invalid},
		"204":                                      {canned{204, asJSON, ""}, invalid},
		"206 with a booking":                       {canned{206, asJSON, bookingJSON("confirmed")}, invalid},
		"201 with broken JSON deep inside":         {canned{201, asJSON, strings.Repeat("[", 20000)}, invalid},
		"201 with a price in a currency of no one": {canned{201, asJSON, strings.Replace(bookingJSON("confirmed"), "EUR", "???", 1)}, confirmed},
	}
}

func failureCases() map[string]outcomeCase {
	invalid := stillOpen(booking.CodeInvalidAnswer)
	return map[string]outcomeCase{
		"a replayed refusal":                     {canned{422, with(asProblem, "Idempotent-Replayed", "true"), problemJSON(422, "sold_out")}, outcome{booking.Rejected, booking.ClassRefused, "sold_out", true}},
		"302 to another host":                    {canned{302, map[string]string{"Location": "https://169.254.169.254/"}, ""}, stillOpen(booking.CodeRedirectRefused)},
		"303 to what was made":                   {canned{303, map[string]string{"Location": "/bookings/bk-1"}, ""}, stillOpen(booking.CodeRedirectRefused)},
		"304":                                    {canned{304, nil, ""}, stillOpen(booking.CodeRedirectRefused)},
		"307 to where the call is to be made":    {canned{307, map[string]string{"Location": "https://elsewhere.invalid/"}, ""}, certainlyNot(booking.ClassUnavailable, booking.CodeRedirectRefused)},
		"308 to where the call is to be made":    {canned{308, map[string]string{"Location": "https://elsewhere.invalid/"}, ""}, certainlyNot(booking.ClassUnavailable, booking.CodeRedirectRefused)},
		"400 with a problem":                     {canned{400, asProblem, problemJSON(400, "bad_request")}, certainlyNot(booking.ClassRefused, "bad_request")},
		"400 with a web page":                    {canned{400, map[string]string{"Content-Type": "text/html"}, "<p>no"}, invalid},
		"401 with a problem":                     {canned{401, asProblem, problemJSON(401, "token_refused")}, certainlyNot(booking.ClassCredential, "token_refused")},
		"401 with a web page":                    {canned{401, map[string]string{"Content-Type": "text/html"}, "<p>no"}, certainlyNot(booking.ClassCredential, "http_401")},
		"403":                                    {canned{403, asProblem, problemJSON(403, "forbidden")}, certainlyNot(booking.ClassCredential, "forbidden")},
		"404 about the path":                     {canned{404, asProblem, problemJSON(404, "not_found")}, certainlyNot(booking.ClassRefused, "not_found")},
		"408":                                    {canned{408, asProblem, problemJSON(408, "timeout")}, stillOpen("timeout")},
		"409 about the state":                    {canned{409, asProblem, problemJSON(409, "booking_pending")}, certainlyNot(booking.ClassConflict, "booking_pending")},
		"409 while the key's first call runs":    {canned{409, asProblem, problemJSON(409, booking.CodeKeyInProgress)}, stillOpen(booking.CodeKeyInProgress)},
		"409 with a web page":                    {canned{409, nil, "conflict"}, invalid},
		"412":                                    {canned{412, asProblem, problemJSON(412, "version_mismatch")}, certainlyNot(booking.ClassConflict, "version_mismatch")},
		"422":                                    {canned{422, asProblem, problemJSON(422, "sold_out")}, certainlyNot(booking.ClassRefused, "sold_out")},
		"422 with a code that is none":           {canned{422, asProblem, problemJSON(422, "Sold out!")}, certainlyNot(booking.ClassRefused, "http_422")},
		"422 with a code that is a key":          {canned{422, asProblem, problemJSON(422, "a1b2c3d4e5f6a7b8")}, certainlyNot(booking.ClassRefused, "http_422")},
		"422 without a code":                     {canned{422, asProblem, `{"title":"T","status":422}`}, invalid},
		"422 whose problem is called plain JSON": {canned{422, asJSON, problemJSON(422, "sold_out")}, invalid},
		"429 with a problem":                     {canned{429, asProblem, problemJSON(429, "rate_limited")}, certainlyNot(booking.ClassThrottled, "rate_limited")},
		"500":                                    {canned{500, asProblem, problemJSON(500, "internal")}, stillOpen("internal")},
		"502 with a web page":                    {canned{502, map[string]string{"Content-Type": "text/html"}, "<p>bad gateway"}, stillOpen("http_502")},
		"503 with a problem":                     {canned{503, asProblem, problemJSON(503, "unavailable")}, stillOpen("unavailable")},
		"a status that HTTP lacks":               {canned{799, asProblem, problemJSON(799, "odd")}, stillOpen("odd")},
	}
}

func TestAnAnswerToABookingComesToOneOutcome(t *testing.T) {
	cases := successCases()
	maps.Copy(cases, failureCases())
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := dial(t, serveCanned(t, c.answer), nil)
			answered := p.Book(t.Context(), cannedBook())
			got := outcome{Kind: answered.Kind, Replayed: answered.Replayed}
			if f := answered.Failure; f != nil {
				got.Class, got.Code = f.Class, f.Code
				if f.HTTPStatus != c.answer.status || f.Detail == "" || strings.Contains(f.Error(), testToken) {
					t.Errorf("failure = %+v, want status %d, a sentence and no token", f, c.answer.status)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if done := got.Kind == booking.Confirmed || got.Kind == booking.Pending; done && answered.Booking == nil {
				t.Error("outcome has no booking")
			}
		})
	}
}

func TestAnAnswerToAReadComesToOneClass(t *testing.T) {
	cases := map[string]struct {
		answer canned
		class  booking.Class
		code   string
	}{
		"404 about the booking":           {canned{404, asProblem, problemJSON(404, "booking_not_found")}, booking.ClassNotFound, "booking_not_found"},
		"404 about the path":              {canned{404, asProblem, problemJSON(404, "not_found")}, booking.ClassRefused, "not_found"},
		"404 of a gateway":                {canned{404, nil, "no such page"}, booking.ClassUnavailable, booking.CodeInvalidAnswer},
		"500":                             {canned{500, asProblem, problemJSON(500, "internal")}, booking.ClassUnavailable, "internal"},
		"408":                             {canned{408, nil, ""}, booking.ClassUnavailable, "http_408"},
		"201":                             {canned{201, asJSON, bookingJSON("confirmed")}, booking.ClassUnavailable, booking.CodeInvalidAnswer},
		"200 with another booking":        {canned{200, asJSON, strings.Replace(bookingJSON("confirmed"), "bk-1", "bk-2", 1)}, booking.ClassUnavailable, booking.CodeInvalidAnswer},
		"200 with a web page":             {canned{200, map[string]string{"Content-Type": "text/html"}, "<p>hello"}, booking.ClassUnavailable, booking.CodeInvalidAnswer},
		"200 with a status nobody knows":  {canned{200, asJSON, bookingJSON("ticketed")}, booking.ClassUnavailable, booking.CodeInvalidAnswer},
		"302":                             {canned{302, map[string]string{"Location": "/elsewhere"}, ""}, booking.ClassUnavailable, booking.CodeRedirectRefused},
		"403":                             {canned{403, nil, ""}, booking.ClassCredential, "http_403"},
		"409 while another call runs":     {canned{409, asProblem, problemJSON(409, booking.CodeKeyInProgress)}, booking.ClassUnavailable, booking.CodeKeyInProgress},
		"429 without anything but itself": {canned{429, nil, ""}, booking.ClassThrottled, "http_429"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := dial(t, serveCanned(t, c.answer), nil)
			_, err := p.Get(t.Context(), "bk-1")
			e := callError(t, err)
			if e.Class != c.class || e.Code != c.code {
				t.Errorf("error = %+v, want %s %s", e, c.class, c.code)
			}
		})
	}
}

func TestACancellationIsDoneOnceTheBookingIsCancelled(t *testing.T) {
	cases := map[string]struct {
		answer canned
		want   booking.OutcomeKind
	}{
		"cancelled":                {canned{200, asJSON, bookingJSON("cancelled")}, booking.Confirmed},
		"accepted":                 {canned{202, asJSON, bookingJSON("confirmed")}, booking.Pending},
		"done, but still there":    {canned{200, asJSON, bookingJSON("confirmed")}, booking.Unknown},
		"the answer of another id": {canned{200, asJSON, strings.Replace(bookingJSON("cancelled"), "bk-1", "bk-2", 1)}, booking.Unknown},
		"no content":               {canned{204, nil, ""}, booking.Unknown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := dial(t, serveCanned(t, c.answer), nil)
			if got := p.Cancel(t.Context(), booking.CancelRequest{BookingID: "bk-1"}); got.Kind != c.want {
				t.Errorf("outcome = %+v, want %s", got, c.want)
			}
		})
	}
}

func TestScenario14RetryAfterIsReadAsSecondsAndAsADateAndCapped(t *testing.T) {
	const date = "Mon, 30 Nov 2026 12:00:00 GMT"
	cases := map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"absent":                         {map[string]string{}, 0},
		"seconds":                        {map[string]string{"Retry-After": "90"}, 90 * time.Second},
		"negative seconds":               {map[string]string{"Retry-After": "-5"}, 0},
		"more than an hour":              {map[string]string{"Retry-After": "86400"}, time.Hour},
		"more than an integer holds":     {map[string]string{"Retry-After": "99999999999999999999"}, 0},
		"a date by the server's clock":   {map[string]string{"Date": date, "Retry-After": "Mon, 30 Nov 2026 12:02:00 GMT"}, 2 * time.Minute},
		"a date that is over":            {map[string]string{"Date": date, "Retry-After": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0},
		"a date in ten years":            {map[string]string{"Date": date, "Retry-After": "Mon, 30 Nov 2036 12:00:00 GMT"}, time.Hour},
		"a date without a server's date": {map[string]string{"Date": "soon", "Retry-After": "Mon, 30 Nov 2026 12:05:00 GMT"}, 5 * time.Minute},
		"words":                          {map[string]string{"Retry-After": "a while"}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := dial(t, serveCanned(t, canned{429, c.header, ""}), func(o *rest.Options) {
				o.Now = func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }
			})
			_, err := p.Account(t.Context())
			if e := callError(t, err); e.Class != booking.ClassThrottled || e.RetryAfter != c.want {
				t.Errorf("error = %+v, want Throttled for %s", e, c.want)
			}
		})
	}
}
