package booking

import (
	"fmt"
	"time"
)

// OutcomeKind is one of the four things that can come of a write.
type OutcomeKind string

const (
	// Confirmed: done, the booking is attached.
	Confirmed OutcomeKind = "Confirmed"
	// Rejected: certainly not done by this send; Failure says why. Its class tells what follows: Refused, Conflict and
	// NotFound are the provider's answer, while Credential, Throttled and Unavailable close no operation.
	Rejected OutcomeKind = "Rejected"
	// Pending: accepted, not final; the booking is attached if the provider gave one.
	Pending OutcomeKind = "Pending"
	// Unknown: sent, or perhaps sent, and no usable answer came: a broken connection, a time-out, any 5xx once the
	// body went, "key in progress", a truncated 2xx, a 2xx without an id.
	Unknown OutcomeKind = "Unknown"
)

// Outcome is what came of a write.
type Outcome struct {
	Kind    OutcomeKind
	Booking *Booking
	// Failure is set for Rejected and Unknown.
	Failure *CallError
	// Replayed says that the provider marked the answer as the stored result of the same key.
	Replayed bool
}

// Class says how a failed call is to be treated. Each class has its own pace.
type Class string

const (
	// ClassRefused: the provider understood and said no (validation, sold out, price). A repeat gets the same answer.
	ClassRefused Class = "Refused"
	// ClassConflict: the booking has another version than the call names (412), or a state that forbids the call (409).
	ClassConflict Class = "Conflict"
	// ClassNotFound: the account has no such booking (a 404 with CodeBookingNotFound; another 404 speaks of the path). It
	// proves absence only at the account that booked.
	ClassNotFound Class = "NotFound"
	// ClassCredential: 401 or 403. It never fails a ticket and closes no operation.
	ClassCredential Class = "Credential"
	// ClassThrottled: 429; RetryAfter says how long. It closes no operation.
	ClassThrottled Class = "Throttled"
	// ClassUnavailable: not sent at all (refused connection, name not found, breaker open, forbidden address), or a read
	// that failed. Safe to repeat.
	ClassUnavailable Class = "Unavailable"
	// ClassUnknown: a write that was sent, or perhaps sent, without a usable answer. Never safe to repeat blindly.
	ClassUnknown Class = "Unknown"
)

// CallError is a failed call in our own words. Code and Detail come from the provider only after they were normalised,
// capped and redacted: no token, no header, no raw body.
type CallError struct {
	Class Class
	// Code is the provider's machine-readable code ("sold_out"), or ours ("timeout", "connection_reset").
	Code string
	// Detail is one short sentence for a person. It is kept stable between repeats as far as a foreign text can be: what
	// must not flap compares Class and Code.
	Detail string
	// HTTPStatus is zero when there was no answer.
	HTTPStatus int
	// RetryAfter is how long the provider asked to wait, at most an hour; zero when it did not. Where our own guard
	// answered (CodeRateLimited, CodeProviderPaused, CodeBreakerOpen) it is how long until a call has room.
	RetryAfter time.Duration
}

// Error tells class, code and detail.
func (e *CallError) Error() string {
	return fmt.Sprintf("%s (%s): %s", e.Class, e.Code, e.Detail)
}
