package lifecycle_test

import (
	"fmt"
	"slices"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
)

// chooser picks one of n possibilities: at random in the walks, by script in the stories.
type chooser func(label string, n int) int

// modelProvider is a booking API in memory, with everything that makes real ones hard: answers that get lost, orders
// that are carried out late, and reads that lag behind.
type modelProvider struct {
	now     func() time.Time
	choose  chooser
	faults  bool
	keys    bool
	timeout time.Duration
	readLag time.Duration
	process time.Duration
	// offers is how long an offer can be booked.
	offers time.Duration

	bookings []*modelBooking
	late     []lateWork
	acting   time.Time
	answers  map[string]answer
	sends    int
	// unversioned bookings can't be changed on a condition.
	unversioned bool
	// broken are failures that last, by call: list, get, quote, send.
	broken map[string]*booking.CallError
	// calls counts those that reach the provider.
	calls int
	// cancelling is told of each cancellation that takes effect.
	cancelling func()
}

// modelBooking keeps every version of a booking with the time from which reads show it.
type modelBooking struct {
	versions []shown
}

type shown struct {
	booking booking.Booking
	from    time.Time
}

type lateWork struct {
	at time.Time
	do func()
}

// keyTTL is how long the model remembers a key.
const keyTTL = 17 * time.Minute

type answer struct {
	done  bool
	out   booking.Outcome
	until time.Time
}

func (b *modelBooking) truth() booking.Booking { return b.versions[len(b.versions)-1].booking }

// settle carries out what is due.
func (p *modelProvider) settle() {
	for {
		i := slices.IndexFunc(p.late, func(w lateWork) bool { return !w.at.After(p.now()) })
		if i < 0 {
			return
		}
		work := p.late[i]
		p.late = slices.Delete(p.late, i, i+1)
		p.acting = work.at
		work.do()
		p.acting = time.Time{}
	}
}

// quiet says that nothing is under way: reads show the truth.
func (p *modelProvider) quiet() bool {
	p.settle()
	return len(p.late) == 0 && !slices.ContainsFunc(p.bookings, func(b *modelBooking) bool {
		return b.versions[len(b.versions)-1].from.After(p.now())
	})
}

// live are the bookings of an owner that exist or may come to exist.
func (p *modelProvider) live(owner string) []booking.Booking {
	var all []booking.Booking
	for _, b := range p.bookings {
		now := b.truth()
		if now.Names.Owner == owner && (now.Status == booking.StatusConfirmed || now.Status == booking.StatusPending) {
			all = append(all, now)
		}
	}
	return all
}

func (p *modelProvider) commit(b booking.Booking) *modelBooking {
	m := &modelBooking{}
	p.bookings = append(p.bookings, m)
	b.ID = fmt.Sprintf("b-%d", len(p.bookings))
	p.show(m, b)
	return m
}

func (p *modelProvider) show(m *modelBooking, b booking.Booking) {
	if b.Version = fmt.Sprintf("v%d", len(m.versions)+1); p.unversioned {
		b.Version = ""
	}
	if b.Status == booking.StatusConfirmed {
		b.Reference = "REF" + b.ID[2:]
	}
	m.versions = append(m.versions, shown{booking: b, from: p.moment().Add(p.lag())})
}

// moment is when something is carried out: late work happens at its own time, not when it is noticed.
func (p *modelProvider) moment() time.Time {
	if !p.acting.IsZero() {
		return p.acting
	}
	return p.now()
}

func (p *modelProvider) lag() time.Duration {
	if !p.faults || p.choose("does the read lag", 2) == 0 {
		return 0
	}
	return p.readLag
}

func (p *modelProvider) visible(m *modelBooking) (booking.Booking, bool) {
	for _, v := range slices.Backward(m.versions) {
		if !v.from.After(p.now()) {
			return v.booking, true
		}
	}
	return booking.Booking{}, false
}

func (p *modelProvider) readFault(call string) *booking.CallError {
	if err := p.broken[call]; err != nil && err.Code == booking.CodeRateLimited {
		return err
	}
	p.calls++
	if err := p.broken[call]; err != nil {
		return err
	}
	if !p.faults {
		return nil
	}
	switch p.choose("is the read answered", 8) {
	case 1:
		return &booking.CallError{Class: booking.ClassUnavailable, Code: "connection_refused", Detail: "connection refused"}
	case 2:
		return &booking.CallError{Class: booking.ClassThrottled, Code: "rate_limited", RetryAfter: 5 * time.Second}
	}
	return nil
}

// room is the answer of the limiter before the provider.
func (p *modelProvider) room() *booking.CallError {
	if p.faults && p.choose("does the limiter have room", 8) == 1 {
		return &booking.CallError{Class: booking.ClassUnavailable, Code: booking.CodeRateLimited, RetryAfter: 3 * time.Second}
	}
	return nil
}

func (p *modelProvider) list(match func(booking.Names) bool) ([]booking.Booking, *booking.CallError) {
	p.settle()
	if err := p.readFault("list"); err != nil {
		return nil, err
	}
	var all []booking.Booking
	for _, m := range slices.Backward(p.bookings) {
		if b, ok := p.visible(m); ok && match(b.Names) {
			all = append(all, b)
		}
	}
	return all, nil
}

func (p *modelProvider) get(id string) (booking.Booking, *booking.CallError) {
	p.settle()
	if err := p.readFault("get"); err != nil {
		return booking.Booking{}, err
	}
	for _, m := range p.bookings {
		if b, ok := p.visible(m); ok && b.ID == id {
			return b, nil
		}
	}
	return booking.Booking{}, &booking.CallError{Class: booking.ClassNotFound, Code: "booking_not_found"}
}

func (p *modelProvider) quote() (booking.Offer, *booking.CallError) {
	if err := p.readFault("quote"); err != nil {
		return booking.Offer{}, err
	}
	if p.faults && p.choose("is there an offer", 16) == 1 {
		return booking.Offer{}, &booking.CallError{Class: booking.ClassRefused, Code: "no_offers"}
	}
	return booking.Offer{ID: "q-1", Price: money.Amount{Minor: 91240, Currency: "EUR"}, ExpiresAt: p.now().Add(p.offers)}, nil
}

// send is what happens to one write on its way: refused, carried out, lost before, lost after, or carried out late.
func (p *modelProvider) send(op flightsv1.OperationStatus) booking.Outcome {
	p.settle()
	p.sends++
	p.calls++
	if err := p.broken["send"]; err != nil && err.Class == booking.ClassUnknown {
		return booking.Outcome{Kind: booking.Unknown, Failure: err}
	} else if err != nil {
		return booking.Outcome{Kind: booking.Rejected, Failure: err}
	}
	if p.remembers(op) {
		if a, known := p.answers[op.ID]; known && p.now().Before(a.until) {
			if !a.done {
				return unknown("idempotency_key_in_progress")
			}
			a.out.Replayed = true
			return a.out
		}
	}
	fate := 0
	if p.faults {
		fate = p.choose("what becomes of the "+string(op.Kind), 9)
	}
	switch fate {
	default:
		return p.carryOut(op)
	case 2:
		p.carryOut(op)
		return unknown("timeout")
	case 3:
		return unknown("connection_reset")
	case 4:
		p.later(op)
		return unknown("timeout")
	case 5:
		return rejected(booking.ClassRefused, "sold_out")
	case 6:
		return rejected(booking.ClassThrottled, "rate_limited")
	case 7:
		return rejected(booking.ClassUnavailable, "connection_refused")
	case 8:
		return p.accept(op)
	}
}

// remembers says whether the provider takes the key of an operation, and was sent one.
func (p *modelProvider) remembers(op flightsv1.OperationStatus) bool { return p.keys && op.Keyed }

func unknown(code string) booking.Outcome {
	return booking.Outcome{Kind: booking.Unknown, Failure: &booking.CallError{Class: booking.ClassUnknown, Code: code}}
}

func rejected(class booking.Class, code string) booking.Outcome {
	return booking.Outcome{Kind: booking.Rejected, Failure: &booking.CallError{Class: class, Code: code}}
}

// later carries an operation out after its caller has given up, as late as it may happen at all.
func (p *modelProvider) later(op flightsv1.OperationStatus) {
	if p.remembers(op) {
		p.answers[op.ID] = answer{until: p.now().Add(keyTTL)}
	}
	at := p.now().Add(p.timeout + p.process)
	p.late = append(p.late, lateWork{at: at, do: func() { p.carryOut(op) }})
}

// accept answers 202; the booking is confirmed or fails later.
func (p *modelProvider) accept(op flightsv1.OperationStatus) booking.Outcome {
	if op.Kind != flightsv1.OperationBook {
		p.later(op)
		return booking.Outcome{Kind: booking.Pending}
	}
	b := p.order(op)
	b.Status = booking.StatusPending
	m := p.commit(b)
	final := booking.StatusConfirmed
	if p.choose("is the accepted order fulfilled", 3) == 2 {
		final = booking.StatusFailed
	}
	p.late = append(p.late, lateWork{at: p.now().Add(p.process), do: func() {
		done := m.truth()
		if done.Status == booking.StatusPending {
			done.Status = final
			p.show(m, done)
		}
	}})
	now := m.truth()
	out := booking.Outcome{Kind: booking.Pending, Booking: &now}
	if p.remembers(op) {
		p.answers[op.ID] = answer{done: true, out: out, until: p.now().Add(keyTTL)}
	}
	return out
}

func (p *modelProvider) order(op flightsv1.OperationStatus) booking.Booking {
	return booking.Booking{
		Names: booking.Names{ClientReference: op.ClientReference, Owner: op.Owner}, Status: booking.StatusConfirmed,
		Order: *op.Order, Price: money.Amount{Minor: 91240, Currency: "EUR"}, CreatedAt: p.now(),
	}
}

func (p *modelProvider) carryOut(op flightsv1.OperationStatus) booking.Outcome {
	out := p.effect(op)
	if p.remembers(op) {
		p.answers[op.ID] = answer{done: true, out: out, until: p.now().Add(keyTTL)}
	}
	return out
}

func (p *modelProvider) effect(op flightsv1.OperationStatus) booking.Outcome {
	if op.Kind == flightsv1.OperationBook {
		done := p.commit(p.order(op)).truth()
		return booking.Outcome{Kind: booking.Confirmed, Booking: &done}
	}
	for _, m := range p.bookings {
		now := m.truth()
		if now.ID != op.BookingID {
			continue
		}
		switch {
		case op.Kind == flightsv1.OperationCancel:
			now.Status = booking.StatusCancelled
			p.cancelling()
		case now.Status != booking.StatusConfirmed:
			return rejected(booking.ClassConflict, "booking_cancelled")
		case now.Version != op.BookingVersion:
			out := rejected(booking.ClassConflict, "version_mismatch")
			out.Failure.HTTPStatus = 412
			return out
		default:
			now.Order = *op.Order
		}
		p.show(m, now)
		done := m.truth()
		return booking.Outcome{Kind: booking.Confirmed, Booking: &done}
	}
	return rejected(booking.ClassNotFound, "booking_not_found")
}
