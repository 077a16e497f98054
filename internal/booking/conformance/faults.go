package conformance

import (
	"testing"
	"time"

	"github.com/flight-operator/flight-operator/internal/booking"
)

// faultCase says what a struck call has to come to.
type faultCase struct {
	fault Fault
	kind  booking.OutcomeKind // for writes
	class booking.Class
	done  bool // whether the provider did what was asked
}

func writeCases() []faultCase {
	return []faultCase{
		{Refuse, booking.Rejected, booking.ClassRefused, false},
		{Unauthorized, booking.Rejected, booking.ClassCredential, false},
		{Throttle, booking.Rejected, booking.ClassThrottled, false},
		{Redirect, booking.Rejected, booking.ClassUnavailable, false},
		{ErrorBefore, booking.Unknown, booking.ClassUnknown, false},
		{ErrorAfter, booking.Unknown, booking.ClassUnknown, true},
		{DropBefore, booking.Unknown, booking.ClassUnknown, false},
		{DropAfter, booking.Unknown, booking.ClassUnknown, true},
		{Truncate, booking.Unknown, booking.ClassUnknown, true},
		{Garbage, booking.Unknown, booking.ClassUnknown, true},
		{HTML, booking.Unknown, booking.ClassUnknown, true},
		{NoID, booking.Unknown, booking.ClassUnknown, true},
		{Huge, booking.Unknown, booking.ClassUnknown, true},
	}
}

func readCases() []faultCase {
	return []faultCase{
		{fault: Refuse, class: booking.ClassRefused},
		{fault: Unauthorized, class: booking.ClassCredential},
		{fault: Throttle, class: booking.ClassThrottled},
		{fault: Redirect, class: booking.ClassUnavailable},
		{fault: ErrorBefore, class: booking.ClassUnavailable},
		{fault: DropBefore, class: booking.ClassUnavailable},
		{fault: Truncate, class: booking.ClassUnavailable},
		{fault: Garbage, class: booking.ClassUnavailable},
		{fault: HTML, class: booking.ClassUnavailable},
		{fault: NoID, class: booking.ClassUnavailable},
		{fault: Huge, class: booking.ClassUnavailable},
	}
}

// brokenWrite makes one write go wrong and checks what it is called, that it was sent once, and that the truth can be
// found out afterwards.
func brokenWrite(t *testing.T, h Harness, call Call, c faultCase) {
	var b booking.Booking
	var send func() booking.Outcome
	switch call {
	case CallBook:
		r := bookRequest(t, h)
		send = func() booking.Outcome { return h.Provider.Book(t.Context(), r) }
	case CallChange:
		b = book(t, h)
		r := changeRequest(t, h, b)
		send = func() booking.Outcome { return h.Provider.Change(t.Context(), r) }
	default:
		b = book(t, h)
		send = func() booking.Outcome { return h.Provider.Cancel(t.Context(), booking.CancelRequest{BookingID: b.ID}) }
	}
	h.Break(call, c.fault)
	outcome := send()
	if outcome.Kind != c.kind {
		t.Fatalf("outcome = %s (%v), want %s", outcome.Kind, outcome.Failure, c.kind)
	}
	e := wantClass(t, outcome.Failure, c.class)
	if c.fault == Throttle && e.RetryAfter != ThrottleSeconds*time.Second {
		t.Errorf("retry after = %s, want %d s", e.RetryAfter, ThrottleSeconds)
	}
	if n := h.Arrived(call); n != 1 {
		t.Errorf("%s calls that arrived = %d, want exactly one", call, n)
	}
	wantTruth(t, h, call, c, b)
}

// wantTruth looks up what became of a write, as a caller with an unknown outcome does.
func wantTruth(t *testing.T, h Harness, call Call, c faultCase, before booking.Booking) {
	t.Helper()
	found, err := h.Provider.FindByClientReference(t.Context(), names().ClientReference)
	if err != nil {
		t.Fatalf("find: %v", err)
	}
	if call == CallBook {
		if made := len(found) == 1; made != c.done || h.Live(names().Owner) != len(found) {
			t.Errorf("found %d bookings, %d live, want made: %v", len(found), h.Live(names().Owner), c.done)
		}
		return
	}
	if len(found) != 1 {
		t.Fatalf("found %d bookings, want 1", len(found))
	}
	if changed := found[0].Version != before.Version; changed != c.done {
		t.Errorf("booking moved from %s to %s, want done: %v", before.Version, found[0].Version, c.done)
	}
}

func brokenRead(t *testing.T, h Harness, call Call, c faultCase) {
	b := book(t, h)
	before := h.Arrived(call)
	h.Break(call, c.fault)
	ctx := t.Context()
	var err error
	switch call {
	case CallAccount:
		_, err = h.Provider.Account(ctx)
	case CallQuote:
		_, err = h.Provider.Quote(ctx, h.Order)
	case CallGet:
		_, err = h.Provider.Get(ctx, b.ID)
	default:
		_, err = h.Provider.FindByOwner(ctx, b.Names.Owner)
	}
	e := wantClass(t, err, c.class)
	if c.fault == Throttle && e.RetryAfter != ThrottleSeconds*time.Second {
		t.Errorf("retry after = %s, want %d s", e.RetryAfter, ThrottleSeconds)
	}
	if n := h.Arrived(call) - before; n != 1 {
		t.Errorf("%s calls that arrived = %d, want exactly one", call, n)
	}
}
