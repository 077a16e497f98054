package booking

// Codes of our own in a CallError. A provider's code stands beside them as it came, checked and capped.
const (
	// CodeEndpointForbidden: the endpoint resolves to an address that nothing may be sent to. Not sent.
	CodeEndpointForbidden = "endpoint_forbidden"
	// CodeNameNotFound: the endpoint's host name can't be resolved. Not sent.
	CodeNameNotFound = "name_not_found"
	// CodeConnectionRefused: nothing listens at the endpoint. Not sent.
	CodeConnectionRefused = "connection_refused"
	// CodeTLSFailed: no trusted TLS connection came about. Not sent.
	CodeTLSFailed = "tls_failed"
	// CodeConnectionFailed: the connection could not be made or broke, for a reason without a code of its own.
	CodeConnectionFailed = "connection_failed"
	// CodeConnectionReset: the connection broke before the whole answer had come.
	CodeConnectionReset = "connection_reset"
	// CodeTimeout: no whole answer within the time of one call.
	CodeTimeout = "timeout"
	// CodeCancelled: the caller gave up.
	CodeCancelled = "cancelled"
	// CodeRedirectRefused: the answer sends the caller elsewhere, where the admin didn't point.
	CodeRedirectRefused = "redirect_refused"
	// CodeInvalidAnswer: the answer is not what the contract says: HTML, broken or huge JSON, no id, another name.
	CodeInvalidAnswer = "invalid_answer"
	// CodeInvalidRequest: the call can't be made as asked (no version, an id that is none). Not sent.
	CodeInvalidRequest = "invalid_request"
	// CodeBookingFailed: the provider accepted the order and says now that it was certainly not booked.
	CodeBookingFailed = "booking_failed"
	// CodeTooManyBookings: more bookings carry one name than are read; no answer is built on a part of them.
	CodeTooManyBookings = "too_many_bookings"
	// CodeRateLimited: our own limiter has no room for the call now; RetryAfter says when it has. Not sent.
	CodeRateLimited = "rate_limited"
	// CodeProviderPaused: the provider asked for a pause (429) that isn't over; RetryAfter is the rest. Not sent.
	CodeProviderPaused = "provider_paused"
	// CodeBreakerOpen: calls failed in a row, and none is made for a while; RetryAfter is the rest. Not sent.
	CodeBreakerOpen = "breaker_open"
)

// Codes of the contract (api/booking/openapi.yaml) that decide what a failure means.
const (
	// CodeBookingNotFound is the one code of a 404 that speaks of the booking; another 404 speaks of the path.
	CodeBookingNotFound = "booking_not_found"
	// CodeKeyInProgress is the code of a 409 whose first call with the same key is still running.
	CodeKeyInProgress = "idempotency_key_in_progress"
)
