package conformance

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flight-operator/flight-operator/internal/booking"
)

func lifeOfABooking(t *testing.T, h Harness) {
	ctx := t.Context()
	account, err := h.Provider.Account(ctx)
	if err != nil || account.ID == "" {
		t.Fatalf("account = %+v, %v", account, err)
	}
	b := book(t, h)
	if b.Names != names() || b.Status != booking.StatusConfirmed || b.ID == "" || b.Version == "" || b.Reference == "" {
		t.Fatalf("booking = %+v, want it confirmed with names, id, version and reference", b)
	}
	if diff := cmp.Diff(h.Order, b.Order); diff != "" {
		t.Errorf("booked order (-asked +booked):\n%s", diff)
	}
	read, err := h.Provider.Get(ctx, b.ID)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	if diff := cmp.Diff(b, read); diff != "" {
		t.Errorf("booking (-booked +read):\n%s", diff)
	}
	wantFound(t, h, b)
	changed := h.Provider.Change(ctx, changeRequest(t, h, b))
	if changed.Kind != booking.Confirmed || changed.Booking == nil {
		t.Fatalf("change = %s, want Confirmed (failure: %v)", changed.Kind, changed.Failure)
	}
	if diff := cmp.Diff(h.Changed, changed.Booking.Order); diff != "" || changed.Booking.Version == b.Version {
		t.Errorf("changed booking has version %s after %s and order (-asked +booked):\n%s", changed.Booking.Version, b.Version, diff)
	}
	for _, attempt := range []string{"cancel", "cancel again"} {
		cancelled := h.Provider.Cancel(ctx, booking.CancelRequest{BookingID: b.ID})
		if cancelled.Kind != booking.Confirmed || cancelled.Booking.Status != booking.StatusCancelled {
			t.Fatalf("%s = %s, want Confirmed (failure: %v)", attempt, cancelled.Kind, cancelled.Failure)
		}
	}
	if live := h.Live(names().Owner); live != 0 {
		t.Errorf("live bookings = %d, want none", live)
	}
}

// wantFound fails the test unless both names find exactly this booking.
func wantFound(t *testing.T, h Harness, b booking.Booking) {
	t.Helper()
	byReference, err := h.Provider.FindByClientReference(t.Context(), b.Names.ClientReference)
	if err != nil {
		t.Fatalf("find by client reference: %v", err)
	}
	byOwner, err := h.Provider.FindByOwner(t.Context(), b.Names.Owner)
	if err != nil {
		t.Fatalf("find by owner: %v", err)
	}
	for name, found := range map[string][]booking.Booking{"client reference": byReference, "owner": byOwner} {
		if diff := cmp.Diff([]booking.Booking{b}, found); diff != "" {
			t.Errorf("found by %s (-want +found):\n%s", name, diff)
		}
	}
}

func nothingThere(t *testing.T, h Harness) {
	_, err := h.Provider.Get(t.Context(), "bk-never-made")
	_ = wantClass(t, err, booking.ClassNotFound)
	found, err := h.Provider.FindByOwner(t.Context(), names().Owner)
	if err != nil || len(found) != 0 {
		t.Errorf("find by owner = %v, %v, want none and no error", found, err)
	}
	cancelled := h.Provider.Cancel(t.Context(), booking.CancelRequest{BookingID: "bk-never-made"})
	if cancelled.Kind != booking.Rejected {
		t.Fatalf("cancel = %s, want Rejected", cancelled.Kind)
	}
	_ = wantClass(t, cancelled.Failure, booking.ClassNotFound)
}

func strangersSeeNothing(t *testing.T, h Harness) {
	b := book(t, h)
	ours, err := h.Provider.Account(t.Context())
	if err != nil {
		t.Fatalf("account: %v", err)
	}
	theirs, err := h.Stranger.Account(t.Context())
	if err != nil || theirs == ours {
		t.Fatalf("the stranger's account = %+v, %v, want another than %+v", theirs, err, ours)
	}
	_, err = h.Stranger.Get(t.Context(), b.ID)
	_ = wantClass(t, err, booking.ClassNotFound)
	found, err := h.Stranger.FindByOwner(t.Context(), b.Names.Owner)
	if err != nil || len(found) != 0 {
		t.Errorf("the stranger found %v, %v, want none", found, err)
	}
	if outcome := h.Stranger.Cancel(t.Context(), booking.CancelRequest{BookingID: b.ID}); outcome.Kind != booking.Rejected {
		t.Errorf("the stranger's cancel = %s, want Rejected", outcome.Kind)
	}
	if live := h.Live(b.Names.Owner); live != 1 {
		t.Errorf("live bookings = %d, want 1", live)
	}
}

func staleChange(t *testing.T, h Harness) {
	b := book(t, h)
	if outcome := h.Provider.Change(t.Context(), changeRequest(t, h, b)); outcome.Kind != booking.Confirmed {
		t.Fatalf("change = %s, want Confirmed (failure: %v)", outcome.Kind, outcome.Failure)
	}
	outcome := h.Provider.Change(t.Context(), changeRequest(t, h, b))
	if outcome.Kind != booking.Rejected {
		t.Fatalf("change of the old version = %s, want Rejected", outcome.Kind)
	}
	_ = wantClass(t, outcome.Failure, booking.ClassConflict)
}

func ceiling(t *testing.T, h Harness) {
	r := bookRequest(t, h)
	r.Ceiling.Minor--
	outcome := h.Provider.Book(t.Context(), r)
	if outcome.Kind != booking.Rejected {
		t.Fatalf("book under the price = %s, want Rejected", outcome.Kind)
	}
	_ = wantClass(t, outcome.Failure, booking.ClassRefused)
	if live := h.Live(names().Owner); live != 0 {
		t.Errorf("live bookings = %d, want none", live)
	}
}
