package store

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flight-operator/flight-operator/internal/quota"
)

// lane is the queue of one bucket. One worker serves it, which ends when the queue has been empty for a while.
type lane struct {
	waiting []*request
	arrival chan struct{} // holds one when somebody came
}

// request is one reservation or one release that waits for its bucket.
type request struct {
	ctx     context.Context // of the admission request: when it ends, nobody waits any more
	cancel  func()          // releases ctx; nil where the caller does
	arrived uint64          // when it came in, by the store's count

	reservation *quota.Reservation // nil: release
	nonce       string             // what to release

	// uncertain says that a write carried the reservation and its answer was lost: the entry may be stored.
	uncertain bool
	// result takes exactly one answer, and doesn't block.
	result chan answer
}

// answer is what becomes of a request.
type answer struct {
	notice    *quota.Notice
	err       error
	uncertain bool
}

func (r *request) answer(a answer) {
	a.uncertain = r.uncertain
	r.result <- a
	if r.cancel != nil {
		r.cancel()
	}
}

// reserve waits until a reservation is held or refused, or until the request ends. Then the entry may be stored.
func (s *Store) reserve(ctx context.Context, r quota.Reservation) answer {
	waiting := &request{ctx: ctx, reservation: &r, result: make(chan answer, 1)}
	if !s.submit(s.place(r), waiting) {
		return answer{err: busy(r, "the webhook is shutting down", nil)}
	}
	select {
	case a := <-waiting.result:
		return a
	case <-ctx.Done():
		return answer{err: busy(r, "no answer came in the time of the request", ctx.Err()), uncertain: true}
	}
}

// takeBack removes the entry of a nonce from a bucket, later.
func (s *Store) takeBack(place types.NamespacedName, nonce string) {
	// The review has ended, and its context with it; nobody waits for this.
	ctx, cancel := context.WithTimeout(context.Background(), takeBackTime)
	if !s.submit(place, &request{ctx: ctx, cancel: cancel, nonce: nonce, result: make(chan answer, 1)}) {
		cancel()
	}
}

// submit puts a request into its lane and sees that the lane is served; false after Close.
func (s *Store) submit(place types.NamespacedName, r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.arrived++
	r.arrived = s.arrived
	l, served := s.lanes[place]
	if !served {
		l = &lane{arrival: make(chan struct{}, 1)}
		s.lanes[place] = l
		s.workers.Go(func() { s.serve(place, l) })
	}
	l.waiting = append(l.waiting, r)
	select {
	case l.arrival <- struct{}{}:
	default: // the worker hasn't seen the last one yet
	}
	return true
}

// take empties a lane. A worker that has nothing left to do gives its lane up.
func (s *Store) take(place types.NamespacedName, l *lane, idle bool) (batch []*request, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch, l.waiting = l.waiting, nil
	select {
	case <-l.arrival:
	default:
	}
	if idle && len(batch) == 0 {
		delete(s.lanes, place)
		return nil, true
	}
	return batch, false
}

// now counts on, so that what is read from now on is after every request that has come in.
func (s *Store) now() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived++
	return s.arrived
}

// serve works until nobody waits. What came in during a try that failed joins the next one.
func (s *Store) serve(place types.NamespacedName, l *lane) {
	w := &worker{store: s, place: place}
	var batch []*request
	for try := 0; ; try++ {
		if len(batch) == 0 {
			try, w.trail = 0, nil
			s.gather(l, &w.pace)
			w.known = w.known && !w.pace.shared()
		}
		arrived, ended := s.take(place, l, len(batch) == 0)
		if ended {
			return
		}
		batch = w.timely(append(batch, arrived...))
		if len(batch) > 0 {
			batch = w.tryOnce(batch, try)
		}
	}
}

// deadlineOf is when the last of some requests ends.
func deadlineOf(batch []*request) time.Time {
	var last time.Time
	for _, r := range batch {
		if d, _ := r.ctx.Deadline(); d.After(last) {
			last = d
		}
	}
	return last
}
