package rest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

// sender makes one request of the generated client.
type sender func(context.Context) (*http.Response, error)

// read makes a call that changes nothing and decodes a 200 into the value.
func (p *Provider) read(ctx context.Context, order *flightsv1.Order, into any, send sender) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	a, _, err := exchange(ctx, send)
	if err == nil && a.ok() {
		err = a.readErr
	}
	switch {
	case err != nil && !errors.Is(err, errTooLarge):
		return connectionError(ctx, err, booking.ClassUnavailable)
	case !a.ok():
		return p.failure(a, order, false)
	case a.status != http.StatusOK:
		return invalidAnswer("the provider answered a read with a status that the contract lacks")
	}
	if err := p.decode(a, typeJSON, into); err != nil {
		return invalidAnswer(err.Error())
	}
	return nil
}

// write makes a call that may change something. Its outcome is Rejected only if that can't have happened.
func (p *Provider) write(ctx context.Context, order *flightsv1.Order,
	expect func(b booking.Booking, accepted bool) booking.Outcome, send sender,
) booking.Outcome {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	a, sent, err := exchange(ctx, send)
	if err != nil && !sent {
		return rejected(connectionError(ctx, err, booking.ClassUnavailable))
	}
	if err != nil {
		return booking.Outcome{Kind: booking.Unknown, Failure: connectionError(ctx, err, booking.ClassUnknown)}
	}
	outcome := p.answered(ctx, a, order, expect)
	outcome.Replayed = a.replayed()
	if outcome.Failure != nil {
		outcome.Failure.HTTPStatus = a.status
	}
	return outcome
}

// answered reads the outcome from an answer.
func (p *Provider) answered(ctx context.Context, a answer, order *flightsv1.Order,
	expect func(b booking.Booking, accepted bool) booking.Outcome,
) booking.Outcome {
	if !a.ok() {
		failure := p.failure(a, order, true)
		if failure.Class == booking.ClassUnknown {
			return booking.Outcome{Kind: booking.Unknown, Failure: failure}
		}
		return rejected(failure)
	}
	if a.readErr != nil && !errors.Is(a.readErr, errTooLarge) {
		return booking.Outcome{Kind: booking.Unknown, Failure: connectionError(ctx, a.readErr, booking.ClassUnknown)}
	}
	var body Booking
	if err := p.decode(a, typeJSON, &body); err != nil {
		return unknown(booking.CodeInvalidAnswer, err.Error())
	}
	b, err := p.fromBooking(body)
	if err != nil {
		return unknown(booking.CodeInvalidAnswer, err.Error())
	}
	switch a.status {
	case http.StatusOK, http.StatusCreated:
		return expect(b, false)
	case http.StatusAccepted:
		return expect(b, true)
	default:
		return unknown(booking.CodeInvalidAnswer, "the provider answered a write with a status that the contract lacks")
	}
}

// bookOutcome is the outcome of a book call that was answered with this booking.
func bookOutcome(b booking.Booking, accepted bool) booking.Outcome {
	if b.Status == booking.StatusFailed {
		detail := b.Reason
		if detail == "" {
			detail = "the provider accepted the order and did not book it"
		}
		return booking.Outcome{Kind: booking.Rejected, Booking: &b, Failure: &booking.CallError{
			Class: booking.ClassRefused, Code: booking.CodeBookingFailed, Detail: detail,
		}}
	}
	return doneOutcome(b, accepted, booking.StatusConfirmed)
}

// doneOutcome is the outcome of a write that is done once the booking has the wanted status.
func doneOutcome(b booking.Booking, accepted bool, want booking.Status) booking.Outcome {
	switch {
	case accepted, b.Status == booking.StatusPending:
		return booking.Outcome{Kind: booking.Pending, Booking: &b}
	case b.Status == want:
		return booking.Outcome{Kind: booking.Confirmed, Booking: &b}
	default:
		outcome := unknown(booking.CodeInvalidAnswer, "the provider says done, and its booking has another status")
		outcome.Booking = &b
		return outcome
	}
}

// exchange sends one request and reads its answer. sent says that a connection stood, so that bytes may have left.
func exchange(ctx context.Context, send sender) (a answer, sent bool, err error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	response, err := send(httptrace.WithClientTrace(ctx, trace))
	if err != nil {
		return answer{}, connected.Load(), err
	}
	a = readAnswer(response)
	// Nothing depends on how closing goes: the answer is read, or its failure is noted.
	_ = response.Body.Close()
	return a, true, nil
}

// connectionError tells in our own words what became of a connection. The transport's words hold URLs and addresses.
func connectionError(ctx context.Context, err error, class booking.Class) *booking.CallError {
	code, detail := explain(ctx, err)
	return &booking.CallError{Class: class, Code: code, Detail: detail}
}

func explain(ctx context.Context, err error) (code, detail string) {
	var forbidden *forbiddenAddress
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &forbidden):
		return booking.CodeEndpointForbidden, "the endpoint resolves to " + forbidden.kind
	case errors.Is(err, context.Canceled):
		return booking.CodeCancelled, "the call was given up before its answer came"
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return booking.CodeTimeout, "no answer came within the provider's timeout"
	case errors.As(err, &dns):
		return booking.CodeNameNotFound, "the endpoint's host name can't be resolved: check the endpoint and the cluster's DNS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return booking.CodeConnectionRefused, "nothing listens at the endpoint"
	case isTLS(err):
		return booking.CodeTLSFailed, explainTLS(err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return booking.CodeConnectionReset, "the connection broke before the whole answer had come"
	default:
		return booking.CodeConnectionFailed, "the connection to the endpoint failed"
	}
}

func isTLS(err error) bool {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var operation *net.OpError
	// crypto/tls reports an alert of the other side as this operation; the alert's own type isn't exported.
	remote := errors.As(err, &operation) && operation.Op == "remote error"
	return errors.As(err, &verification) || errors.As(err, &record) || remote
}

func explainTLS(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		return "the endpoint's certificate is signed by an authority that is not trusted: put it into caBundle"
	case errors.As(err, &host):
		return "the endpoint's certificate is for another host name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the endpoint's certificate has expired or is not valid yet"
	default:
		return "no trusted TLS connection came about: does the endpoint speak TLS 1.2 or later?"
	}
}
