package simulator

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"
)

var (
	placeCode = regexp.MustCompile(`^[A-Z]{3}$`)
	cabins    = []Cabin{"", Economy, PremiumEconomy, Business, First}
)

// api implements the generated server interface on the ledger.
type api struct{ *Simulator }

func (s *Simulator) api() StrictServerInterface { return api{s} }

// accountKey is the context key of the caller's account.
type accountKey struct{}

func accountOf(ctx context.Context) string {
	account, _ := ctx.Value(accountKey{}).(string)
	return account
}

// GetAccount implements StrictServerInterface.
func (a api) GetAccount(ctx context.Context, _ GetAccountRequestObject) (GetAccountResponseObject, error) {
	return GetAccount200JSONResponse{Id: accountOf(ctx), Name: "Account " + accountOf(ctx)}, nil
}

// CreateQuotes implements StrictServerInterface.
func (a api) CreateQuotes(ctx context.Context, r CreateQuotesRequestObject) (CreateQuotesResponseObject, error) {
	if err := checkOrder(r.Body.Order); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.forget(now)
	return CreateQuotes200JSONResponse{Quotes: a.offers(accountOf(ctx), r.Body.Order, now)}, nil
}

// CreateBooking implements StrictServerInterface.
func (a api) CreateBooking(ctx context.Context, r CreateBookingRequestObject) (CreateBookingResponseObject, error) {
	body := r.Body
	if err := checkOrder(body.Order); err != nil {
		return nil, err
	}
	if !isName(body.ClientReference) || !isName(body.Owner) {
		return nil, refusal("invalid_name", "clientReference and owner have 1 to 512 characters.")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	offer, err := a.take(accountOf(ctx), body.QuoteId, body.Order, body.Ceiling)
	if err != nil {
		return nil, err
	}
	b := a.book(accountOf(ctx), *body, offer)
	location := "/bookings/" + b.Id
	if b.Status == Pending {
		return CreateBooking202JSONResponse{Body: b, Headers: CreateBooking202ResponseHeaders{Location: location}}, nil
	}
	return CreateBooking201JSONResponse{
		Body: b, Headers: CreateBooking201ResponseHeaders{Location: location, ETag: b.Version},
	}, nil
}

// book adds a booking to the ledger. The caller holds mu.
func (s *Simulator) book(account string, request BookingRequest, offer Quote) Booking {
	now := s.now()
	b := Booking{
		Id: "bk-" + s.newID(), ClientReference: request.ClientReference, Owner: request.Owner,
		Order: request.Order, Price: offer.Price, Segments: offer.Segments, CreatedAt: now.UTC(),
	}
	record := &Record{Account: account}
	if processing := s.settings.Processing.Duration; processing > 0 {
		b.Status = Pending
		record.settleAt, record.settleTo = now.Add(processing), Confirmed
		if s.settings.ProcessingFails {
			record.settleTo = Failed
		}
	} else {
		b.Status, b.Reference = Confirmed, s.locator()
	}
	// The commit judges the records, this one among them.
	record.History = make([]Commit, 0, 2)
	s.records = append(s.records, record)
	return s.commit(record, string(OpBook), b, now)
}

// ListBookings implements StrictServerInterface.
func (a api) ListBookings(ctx context.Context, r ListBookingsRequestObject) (ListBookingsResponseObject, error) {
	p := r.Params
	if (p.ClientReference == nil) == (p.Owner == nil) {
		return nil, newProblem(http.StatusBadRequest, "bad_request", "Give exactly one of clientReference and owner.")
	}
	limit, before, err := page(p)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	if a.settings.NoLookup {
		return nil, newProblem(http.StatusNotImplemented, "no_lookup", "This provider lists no bookings.")
	}
	list := BookingList{Bookings: []Booking{}}
	for i, record := range slices.Backward(a.records) {
		if i >= before || record.Account != accountOf(ctx) {
			continue
		}
		b, ok := a.visible(record)
		if !ok || p.Owner != nil && b.Owner != *p.Owner || p.ClientReference != nil && b.ClientReference != *p.ClientReference {
			continue
		}
		if len(list.Bookings) == limit {
			list.NextCursor = strconv.Itoa(before)
			break
		}
		list.Bookings = append(list.Bookings, b)
		before = i
	}
	return ListBookings200JSONResponse(list), nil
}

// page reads limit and cursor. A cursor is the index of the last record shown; the records only grow.
func page(p ListBookingsParams) (limit, before int, err error) {
	limit, before = 20, int(^uint(0)>>1)
	if p.Limit != nil {
		limit = int(*p.Limit)
	}
	if limit < 1 || limit > 100 {
		return 0, 0, newProblem(http.StatusBadRequest, "bad_request", "limit is 1 to 100.")
	}
	if p.Cursor != nil {
		if before, err = strconv.Atoi(*p.Cursor); err != nil {
			return 0, 0, newProblem(http.StatusBadRequest, "bad_request", "cursor is not one that was given out.")
		}
	}
	return limit, before, nil
}

// GetBooking implements StrictServerInterface.
func (a api) GetBooking(ctx context.Context, r GetBookingRequestObject) (GetBookingResponseObject, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	record, err := a.find(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	b, ok := a.visible(record)
	if !ok {
		return nil, errNoBooking()
	}
	return GetBooking200JSONResponse{Body: b, Headers: GetBooking200ResponseHeaders{ETag: b.Version}}, nil
}

// ChangeBooking implements StrictServerInterface.
func (a api) ChangeBooking(ctx context.Context, r ChangeBookingRequestObject) (ChangeBookingResponseObject, error) {
	if err := checkOrder(r.Body.Order); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	record, err := a.find(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	b := record.Booking()
	if b.Status != Confirmed {
		return nil, newProblem(http.StatusConflict, "booking_"+string(b.Status), "Only a confirmed booking can be changed.")
	}
	if r.Params.IfMatch != b.Version {
		return nil, newProblem(http.StatusPreconditionFailed, "version_mismatch", "The booking has another version.")
	}
	offer, err := a.take(accountOf(ctx), r.Body.QuoteId, r.Body.Order, r.Body.Ceiling)
	if err != nil {
		return nil, err
	}
	b.Order, b.Price, b.Segments = r.Body.Order, offer.Price, offer.Segments
	b = a.commit(record, string(OpChange), b, a.now())
	return ChangeBooking200JSONResponse{Body: b, Headers: ChangeBooking200ResponseHeaders{ETag: b.Version}}, nil
}

// CancelBooking implements StrictServerInterface.
func (a api) CancelBooking(ctx context.Context, r CancelBookingRequestObject) (CancelBookingResponseObject, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	record, err := a.find(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	b := record.Booking()
	switch b.Status {
	case Pending:
		return nil, newProblem(http.StatusConflict, "booking_pending", "The booking is not final yet; try again once it is.")
	case Failed:
		return nil, newProblem(http.StatusConflict, "not_cancellable", "The booking was never made.")
	case Cancelled: // again: the answer is the same
	case Confirmed:
		b.Status = Cancelled
		b = a.commit(record, string(OpCancel), b, a.now())
	}
	return CancelBooking200JSONResponse{Body: b, Headers: CancelBooking200ResponseHeaders{ETag: b.Version}}, nil
}

// find returns a record of the caller's account; another account's is as absent as none. The caller holds mu.
func (s *Simulator) find(ctx context.Context, id string) (*Record, error) {
	for _, r := range s.records {
		if r.Booking().Id == id && r.Account == accountOf(ctx) {
			return r, nil
		}
	}
	return nil, errNoBooking()
}

func errNoBooking() error {
	return newProblem(http.StatusNotFound, "booking_not_found", "This account has no such booking.")
}

func isName(name string) bool { return len(name) >= 1 && len(name) <= 512 }

func checkOrder(o Order) error {
	switch {
	case !placeCode.MatchString(o.Origin) || !placeCode.MatchString(o.Destination):
		return refusal("invalid_place", "Origin and destination are IATA codes of three capital letters.")
	case o.Origin == o.Destination:
		return refusal("invalid_place", "Origin and destination are the same.")
	case o.Seats < 1 || o.Seats > 9:
		return refusal("invalid_seats", "An order has 1 to 9 seats.")
	case len(o.Passengers) > int(o.Seats):
		return refusal("invalid_passengers", "More passengers than seats.")
	case !slices.Contains(cabins, o.Cabin):
		return refusal("invalid_cabin", "There is no such cabin.")
	case !isDay(o.DepartureDate) || !isDay(o.ReturnDate):
		return refusal("invalid_date", "A date is a day as in 2027-03-14.")
	case o.ReturnDate != "" && (o.DepartureDate == "" || o.ReturnDate < o.DepartureDate):
		return refusal("invalid_date", "The return is before the departure.")
	}
	return nil
}

func isDay(day string) bool {
	_, err := time.Parse(time.DateOnly, day)
	return day == "" || err == nil
}
