// Package rest speaks the REST contract of api/booking/openapi.yaml: it implements booking.Provider on the client that
// is generated from it.
//
// It knows HTTP, TLS and which addresses may be dialled, and turns every answer and every failure into the words of the
// package booking. It must not know tickets, limits or retries: each call is sent at most once, and what follows from an
// outcome is decided by the caller.
package rest

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
)

const (
	// defaultTimeout is used where the options name none.
	defaultTimeout = 30 * time.Second
	// defaultUserAgent is used where the options name none.
	defaultUserAgent = "flight-operator"
	// maxBodyBytes caps an answer. The largest lawful one, 100 bookings of nine passengers, stays well below.
	maxBodyBytes = 1 << 20
	// maxTokenBytes is what servers take in one header.
	maxTokenBytes = 8 << 10
)

// Options say how to reach a booking API.
type Options struct {
	// Endpoint is the base URL, https without user, query and fragment.
	Endpoint string
	// CABundle is the PEM of the authorities that may sign the endpoint's certificate; empty means the system's.
	CABundle []byte
	// Token is the bearer token. A Provider keeps its token for life: a rotated credential is a new Provider, because
	// it may belong to another account and has a limiter of its own.
	Token string
	// Timeout of one call with its whole answer; zero means 30 s.
	Timeout time.Duration
	// AllowPrivate permits loopback, link-local and private addresses. Cloud metadata addresses stay forbidden.
	AllowPrivate bool
	// SendKeys says that the provider declares to take idempotency keys; without it none is sent.
	SendKeys bool
	// UserAgent of each request; empty means "flight-operator".
	UserAgent string
	// Now tells the time for a Retry-After that is a date; nil means time.Now.
	Now func() time.Time
}

// Provider is a booking API under one credential. It is safe for concurrent use.
type Provider struct {
	api      *apiClient
	timeout  time.Duration
	sendKeys bool
	token    string
	now      func() time.Time
}

var _ booking.Provider = (*Provider)(nil)

// New checks the options and returns a Provider. It connects to nothing. The errors never contain the token.
func New(o Options) (*Provider, error) {
	endpoint, err := parseEndpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	token, err := cleanToken(o.Token)
	if err != nil {
		return nil, err
	}
	roots, err := parseRoots(o.CABundle)
	if err != nil {
		return nil, err
	}
	p := &Provider{timeout: o.Timeout, sendKeys: o.SendKeys, token: token, now: o.Now}
	if p.timeout <= 0 {
		p.timeout = defaultTimeout
	}
	if p.now == nil {
		p.now = time.Now
	}
	agent := o.UserAgent
	if agent == "" {
		agent = defaultUserAgent
	}
	headers := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept", "application/json, application/problem+json")
		r.Header.Set("User-Agent", agent)
		return nil
	}
	p.api = &apiClient{
		Server: endpoint,
		Client: &http.Client{
			Transport: newTransport(roots, o.AllowPrivate),
			// The credential goes to the host that the admin named, and to no other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		RequestEditors: []RequestEditorFn{headers, neverReplay},
	}
	return p, nil
}

func parseEndpoint(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", errors.New("endpoint is not a URL: use one such as https://flights.example.com/v1")
	}
	if u.Scheme != "https" || u.Host == "" || u.Hostname() == "" {
		return "", errors.New("endpoint is not an https URL with a host: use one such as https://flights.example.com/v1")
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", errors.New("endpoint has a user, query or fragment: remove it, the credential belongs in the Secret")
	}
	if !strings.HasSuffix(endpoint, "/") {
		endpoint += "/"
	}
	return endpoint, nil
}

// CheckToken says why no request can carry a token; nil if one can. The error never contains it.
func CheckToken(token string) error {
	_, err := cleanToken(token)
	return err
}

// cleanToken drops the newline that files and Secrets tend to end with, and refuses what no header can carry.
func cleanToken(token string) (string, error) {
	token = strings.TrimSpace(token)
	if token == "" {
		return "", errors.New("token is empty: store the booking API's bearer token under the Secret's key")
	}
	if len(token) > maxTokenBytes {
		return "", fmt.Errorf("token is longer than %d characters: store the bearer token alone", maxTokenBytes)
	}
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return "", errors.New("token holds spaces, line breaks or characters outside ASCII: store the bearer token alone")
		}
	}
	return token, nil
}

func parseRoots(bundle []byte) (*x509.CertPool, error) {
	if len(bundle) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, errors.New("caBundle holds no PEM certificate: paste the authority's certificate, from BEGIN to END")
	}
	return pool, nil
}

// Account implements booking.Provider.
func (p *Provider) Account(ctx context.Context) (booking.Account, error) {
	var body Account
	if err := p.read(ctx, nil, &body, func(ctx context.Context) (*http.Response, error) {
		return p.api.GetAccount(ctx)
	}); err != nil {
		return booking.Account{}, err
	}
	if !isText(body.Id, 128) {
		return booking.Account{}, invalidAnswer("the account has no usable id")
	}
	return booking.Account{ID: body.Id}, nil
}

// Quote implements booking.Provider.
func (p *Provider) Quote(ctx context.Context, order flightsv1.Order) (booking.Offer, error) {
	var body QuoteList
	if err := p.read(ctx, &order, &body, func(ctx context.Context) (*http.Response, error) {
		return p.api.CreateQuotes(ctx, QuoteRequest{Order: toOrder(order)})
	}); err != nil {
		return booking.Offer{}, err
	}
	return cheapest(body.Quotes)
}

// Get implements booking.Provider.
func (p *Provider) Get(ctx context.Context, bookingID string) (booking.Booking, error) {
	if !isBookingID(bookingID) {
		return booking.Booking{}, invalidRequest("the booking's id is not one of this contract")
	}
	var body Booking
	if err := p.read(ctx, nil, &body, func(ctx context.Context) (*http.Response, error) {
		return p.api.GetBooking(ctx, bookingID)
	}); err != nil {
		return booking.Booking{}, err
	}
	found, err := p.fromBooking(body)
	if err != nil {
		return booking.Booking{}, invalidAnswer(err.Error())
	}
	if found.ID != bookingID {
		return booking.Booking{}, invalidAnswer("the answer is another booking than the one asked for")
	}
	return found, nil
}

// Book implements booking.Provider.
func (p *Provider) Book(ctx context.Context, r booking.BookRequest) booking.Outcome {
	body := BookingRequest{
		QuoteId: r.OfferID, ClientReference: r.Names.ClientReference, Owner: r.Names.Owner,
		Order: toOrder(r.Order), Ceiling: toMoney(r.Ceiling),
	}
	expect := func(b booking.Booking, accepted bool) booking.Outcome {
		if b.Names != r.Names {
			return unknown(booking.CodeInvalidAnswer, "the answer is a booking of another name")
		}
		return bookOutcome(b, accepted)
	}
	return p.write(ctx, &r.Order, expect, func(ctx context.Context) (*http.Response, error) {
		return p.api.CreateBooking(ctx, &CreateBookingParams{IdempotencyKey: p.key(r.IdempotencyKey)}, body)
	})
}

// Change implements booking.Provider. A request without IfVersion is rejected without being sent.
func (p *Provider) Change(ctx context.Context, r booking.ChangeRequest) booking.Outcome {
	if !isBookingID(r.BookingID) {
		return rejected(invalidRequest("the booking's id is not one of this contract"))
	}
	if !isText(r.IfVersion, 128) {
		return rejected(invalidRequest("a change needs the version that it applies to: read the booking first"))
	}
	body := BookingChange{QuoteId: r.OfferID, Order: toOrder(r.Order), Ceiling: toMoney(r.Ceiling)}
	expect := func(b booking.Booking, accepted bool) booking.Outcome {
		if b.ID != r.BookingID {
			return unknown(booking.CodeInvalidAnswer, "the answer is another booking than the one changed")
		}
		return doneOutcome(b, accepted, booking.StatusConfirmed)
	}
	return p.write(ctx, &r.Order, expect, func(ctx context.Context) (*http.Response, error) {
		params := &ChangeBookingParams{IfMatch: r.IfVersion, IdempotencyKey: p.key(r.IdempotencyKey)}
		return p.api.ChangeBooking(ctx, r.BookingID, params, body)
	})
}

// Cancel implements booking.Provider.
func (p *Provider) Cancel(ctx context.Context, r booking.CancelRequest) booking.Outcome {
	if !isBookingID(r.BookingID) {
		return rejected(invalidRequest("the booking's id is not one of this contract"))
	}
	expect := func(b booking.Booking, accepted bool) booking.Outcome {
		if b.ID != r.BookingID {
			return unknown(booking.CodeInvalidAnswer, "the answer is another booking than the one cancelled")
		}
		return doneOutcome(b, accepted, booking.StatusCancelled)
	}
	return p.write(ctx, nil, expect, func(ctx context.Context) (*http.Response, error) {
		params := &CancelBookingParams{IdempotencyKey: p.key(r.IdempotencyKey)}
		return p.api.CancelBooking(ctx, r.BookingID, params)
	})
}

func (p *Provider) key(key string) *IdempotencyKey {
	if !p.sendKeys || key == "" {
		return nil
	}
	return &key
}

// String hides the token from anything that prints a Provider.
func (p *Provider) String() string { return fmt.Sprintf("rest.Provider(%s)", p.api.Server) }

// GoString hides the token from %#v too.
func (p *Provider) GoString() string { return p.String() }
