package simulator

import (
	"fmt"
	"slices"
	"time"

	"github.com/flight-operator/flight-operator/internal/money"
)

// Commit is one change of a booking. It is never taken back.
type Commit struct {
	At time.Time `json:"at"`
	// Cause is Book, Change, Cancel, Settled (processing ended) or Outside (somebody else's doing).
	Cause   string  `json:"cause"`
	Booking Booking `json:"booking"`
}

// Record is a booking that was ever made, with all its commits, the oldest first.
type Record struct {
	Account string   `json:"account"`
	History []Commit `json:"history"`

	settleAt time.Time
	settleTo BookingStatus
}

// Booking is how it stands now, whatever reads show.
func (r Record) Booking() Booking { return r.History[len(r.History)-1].Booking }

func (r Record) live() bool {
	status := r.Booking().Status
	return status == Confirmed || status == Pending
}

// Violation is a state of the ledger that no client may bring about.
type Violation struct {
	At time.Time `json:"at"`
	// Rule is one-live-booking-per-owner or one-booking-per-client-reference.
	Rule string `json:"rule"`
	// Name is the owner or client reference.
	Name       string   `json:"name"`
	BookingIDs []string `json:"bookingIDs"`
}

// Totals sum the ledger up.
type Totals struct {
	Made      int `json:"made"`
	Live      int `json:"live"`
	Pending   int `json:"pending"`
	Cancelled int `json:"cancelled"`
	Failed    int `json:"failed"`
	// Seats of the live bookings.
	Seats int `json:"seats"`
	// Charged is what the live bookings cost, as decimal strings by currency.
	Charged map[string]string `json:"charged"`
}

// Ledger returns every booking ever made, the oldest first.
func (s *Simulator) Ledger() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	records := make([]Record, 0, len(s.records))
	for _, r := range s.records {
		c := *r
		c.History = slices.Clone(r.History)
		records = append(records, c)
	}
	return records
}

// LiveBookings returns the bookings that are confirmed or pending, the oldest first, whatever reads show.
func (s *Simulator) LiveBookings() []Booking {
	return s.liveWhere(func(Booking) bool { return true })
}

// LiveByOwner returns the live bookings of one owner.
func (s *Simulator) LiveByOwner(owner string) []Booking {
	return s.liveWhere(func(b Booking) bool { return b.Owner == owner })
}

func (s *Simulator) liveWhere(keep func(Booking) bool) []Booking {
	var live []Booking
	for _, r := range s.Ledger() {
		if b := r.Booking(); r.live() && keep(b) {
			live = append(live, b)
		}
	}
	return live
}

// Violations returns every breach that ever stood, even if it was mended since.
func (s *Simulator) Violations() []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.breaches)
}

// Totals sums the ledger up.
func (s *Simulator) Totals() Totals {
	totals := Totals{Charged: map[string]string{}}
	charged := map[string]money.Amount{}
	for _, r := range s.Ledger() {
		b := r.Booking()
		totals.Made++
		switch b.Status {
		case Cancelled:
			totals.Cancelled++
		case Failed:
			totals.Failed++
		case Pending:
			totals.Pending++
		case Confirmed: // counted below, as live
		}
		if !r.live() {
			continue
		}
		totals.Live++
		totals.Seats += int(b.Order.Seats)
		if price, err := money.Parse(b.Price.Amount, b.Price.Currency); err == nil {
			price.Minor += charged[price.Currency].Minor
			charged[price.Currency] = price
		}
	}
	for code, sum := range charged {
		totals.Charged[code] = sum.Decimal()
	}
	return totals
}

// Changed returns a channel that is closed at the next commit or call. Tests wait on it instead of sleeping: take the
// channel first, then look, then wait.
func (s *Simulator) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// notify wakes those who wait for a change. The caller holds mu.
func (s *Simulator) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// commit appends a state to a record and judges the ledger. The caller holds mu.
func (s *Simulator) commit(r *Record, cause string, b Booking, at time.Time) Booking {
	b.Version = fmt.Sprintf("%q", fmt.Sprint(len(r.History)+1))
	r.History = append(r.History, Commit{At: at, Cause: cause, Booking: b})
	s.judge(b, at)
	s.notify()
	return b
}

// judge notes a breach that this commit brought about. The caller holds mu.
func (s *Simulator) judge(b Booking, at time.Time) {
	if b.Status != Confirmed && b.Status != Pending {
		return
	}
	rules := map[string]func(Booking) string{
		"one-live-booking-per-owner":       func(b Booking) string { return b.Owner },
		"one-booking-per-client-reference": func(b Booking) string { return b.ClientReference },
	}
	for rule, name := range rules {
		var ids []string
		for _, r := range s.records {
			if other := r.Booking(); r.live() && name(other) == name(b) {
				ids = append(ids, other.Id)
			}
		}
		if len(ids) > 1 {
			s.breaches = append(s.breaches, Violation{At: at, Rule: rule, Name: name(b), BookingIDs: ids})
		}
	}
}

// settle ends the processing of bookings whose time has come. The caller holds mu.
func (s *Simulator) settle() {
	now := s.now()
	for _, r := range s.records {
		if r.settleAt.IsZero() || r.settleAt.After(now) {
			continue
		}
		b := r.Booking()
		b.Status = r.settleTo
		if b.Status == Failed {
			b.Reason = "The airline did not confirm the seats."
		} else {
			b.Reference = s.locator()
		}
		at := r.settleAt
		r.settleAt = time.Time{}
		s.commit(r, "Settled", b, at)
	}
}

// visible is how a read shows a record: as of the read lag ago, which may be not at all. The caller holds mu.
func (s *Simulator) visible(r *Record) (Booking, bool) {
	asOf := s.now().Add(-s.settings.ReadLag.Duration)
	for _, c := range slices.Backward(r.History) {
		if !c.At.After(asOf) {
			return c.Booking, true
		}
	}
	return Booking{}, false
}

// locator makes a record locator: six characters without those that are mistaken for another.
func (s *Simulator) locator() string {
	const letters = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
	id := s.newID()
	code := make([]byte, 6)
	hash := hashOf(id)
	for i := range code {
		code[i] = letters[hash%uint64(len(letters))]
		hash /= uint64(len(letters))
	}
	return string(code)
}
