package simulator

import "net/http"

// causeOutside marks a commit that no caller of the API asked for.
const causeOutside = "Outside"

// CancelOutside cancels a live booking as the airline or somebody with another program would. It fails on a booking
// that isn't live.
func (s *Simulator) CancelOutside(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.liveRecord(id)
	if err != nil {
		return err
	}
	b := r.Booking()
	b.Status = Cancelled
	s.commit(r, causeOutside, b, s.now())
	return nil
}

// ChangeOutside makes a live booking as an order says, at the price of the cheapest offer, as somebody with another
// program would. It fails on a booking that isn't live and on an order that can't be.
func (s *Simulator) ChangeOutside(id string, order Order) error {
	if err := checkOrder(order); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.liveRecord(id)
	if err != nil {
		return err
	}
	now := s.now()
	offer := s.offers(r.Account, order, now)[0]
	b := r.Booking()
	b.Order, b.Price, b.Segments = order, offer.Price, offer.Segments
	s.commit(r, causeOutside, b, now)
	return nil
}

// liveRecord finds a live booking of any account. The caller holds mu.
func (s *Simulator) liveRecord(id string) (*Record, error) {
	s.settle()
	for _, r := range s.records {
		switch {
		case r.Booking().Id != id:
		case !r.live():
			return nil, newProblem(http.StatusConflict, "not_live", "The booking is not live.")
		default:
			return r, nil
		}
	}
	return nil, newProblem(http.StatusNotFound, "booking_not_found", "The ledger has no such booking.")
}
