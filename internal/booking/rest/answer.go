package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// maxRetryAfter caps what a provider may ask for: a wrong date would stop a credential for years.
const maxRetryAfter = time.Hour

// answer is a response that was read to its end or to the cap.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	readErr error // the body broke off, or is larger than the cap
}

var errTooLarge = errors.New("answer is larger than 1 MiB")

func readAnswer(r *http.Response) answer {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBodyBytes+1))
	if err == nil && len(body) > maxBodyBytes {
		err = errTooLarge
	}
	return answer{status: r.StatusCode, header: r.Header, body: body, readErr: err}
}

func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// mediaType is the answer's type without parameters, empty if it has none or an unreadable one.
func (a answer) mediaType() string {
	mediaType, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return mediaType
}

func (a answer) replayed() bool {
	return strings.EqualFold(a.header.Get("Idempotent-Replayed"), "true")
}

// decode reads one JSON value of the wanted type and refuses anything else. An answer that repeats the token anywhere
// is refused whole: its fields go into statuses.
func (p *Provider) decode(a answer, wantType string, into any) error {
	if a.readErr != nil {
		return fmt.Errorf("read answer: %w", a.readErr)
	}
	if a.mediaType() != wantType {
		return errors.New("answer is not " + wantType)
	}
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	if err := decoder.Decode(into); err != nil {
		// The decoder's words quote the body.
		return errors.New("answer is not the JSON that the contract asks for")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("answer goes on after its JSON")
	}
	if wantType == typeJSON && holdsToken(into, p.token) {
		return errors.New("answer repeats the credential")
	}
	return nil
}

const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
)

// holdsToken writes the value out again, so that no way of escaping hides the token.
func holdsToken(value any, token string) bool {
	return bytes.Contains(plainJSON(value), bytes.Trim(plainJSON(token), "\"\n"))
}

func plainJSON(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil
	}
	return out.Bytes()
}

// failure turns an answer outside 2xx into a CallError. It is what the table in the contract says; for a write, what
// the contract doesn't promise to mean "not done" is ClassUnknown.
func (p *Provider) failure(a answer, order *flightsv1.Order, write bool) *booking.CallError {
	open := booking.ClassUnavailable
	if write {
		open = booking.ClassUnknown
	}
	fallback := "http_" + strconv.Itoa(a.status)
	e := &booking.CallError{HTTPStatus: a.status, RetryAfter: p.retryAfter(a.header), Code: fallback}
	var problem Problem
	isProblem := p.decode(a, typeProblem, &problem) == nil && problem.Code != ""
	if isProblem {
		e.Code = p.code(problem.Code, fallback)
		e.Detail = normalise(problem.Detail, p.secrets(order))
	}
	if e.Detail == "" {
		e.Detail = "the provider answered " + strings.TrimSpace(strconv.Itoa(a.status)+" "+http.StatusText(a.status))
	}
	switch {
	case a.status >= 300 && a.status < 400:
		e.Class, e.Code = open, booking.CodeRedirectRefused
		if a.status == http.StatusTemporaryRedirect || a.status == http.StatusPermanentRedirect {
			// These two say that the call is to be made elsewhere. Others may point at what it has brought about.
			e.Class = booking.ClassUnavailable
		}
		e.Detail = "the provider answered with a redirect, which is not followed: name the final address as endpoint"
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		e.Class = booking.ClassCredential
	case a.status == http.StatusTooManyRequests:
		e.Class = booking.ClassThrottled
	case a.status < 200, a.status >= 500, a.status == http.StatusRequestTimeout:
		e.Class = open
	case !isProblem:
		e.Class, e.Code = open, booking.CodeInvalidAnswer
		e.Detail += ", without the problem that the contract asks for: is the endpoint's path right?"
	case e.Code == booking.CodeKeyInProgress:
		e.Class = open
	case a.status == http.StatusNotFound && e.Code == booking.CodeBookingNotFound:
		e.Class = booking.ClassNotFound
	case a.status == http.StatusConflict, a.status == http.StatusPreconditionFailed:
		e.Class = booking.ClassConflict
	default:
		e.Class = booking.ClassRefused
	}
	return e
}

// retryAfter reads seconds or an HTTP date. A date counts from the server's own clock if the answer tells it.
func (p *Provider) retryAfter(h http.Header) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = p.now()
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

func invalidAnswer(detail string) *booking.CallError {
	return &booking.CallError{Class: booking.ClassUnavailable, Code: booking.CodeInvalidAnswer, Detail: detail}
}

// invalidRequest is a call that isn't sent because it can't be right.
func invalidRequest(detail string) *booking.CallError {
	return &booking.CallError{Class: booking.ClassRefused, Code: booking.CodeInvalidRequest, Detail: detail}
}

func rejected(e *booking.CallError) booking.Outcome {
	return booking.Outcome{Kind: booking.Rejected, Failure: e}
}

func unknown(code, detail string) booking.Outcome {
	return booking.Outcome{Kind: booking.Unknown, Failure: &booking.CallError{
		Class: booking.ClassUnknown, Code: code, Detail: detail,
	}}
}
