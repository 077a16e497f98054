package store

import "time"

// The pace of one bucket's writes. A write costs the API server more than the admission it is for, and one that another
// replica or the controller overtakes is lost; so what arrives soon after a write waits a little, and goes with the next.
// A bucket that was not written for as long is written at once.
const (
	// quickPace is between two writes while nobody else writes the bucket, and slowPace while others do. Replicas that keep
	// the same pace fall into turns: after a collision each writes when the others rest.
	quickPace = 20 * time.Millisecond
	slowPace  = 180 * time.Millisecond
	// doubt is after how many writes that nobody overtook a bucket is one's own again.
	doubt = 20
	// lingering is how long a worker that has nothing to do knows its bucket and its pace.
	lingering = time.Second
)

// pace is when a worker may write its bucket again.
type pace struct {
	others int       // how many writes more may collide with others'
	began  time.Time // when the last attempt did
}

// kept follows a write that was stored.
func (p *pace) kept() { p.others = max(p.others-1, 0) }

// lost follows a write that another one had overtaken.
func (p *pace) lost() { p.others = doubt }

// shared says whether others were seen to write the bucket lately: what is known of it is probably old.
func (p *pace) shared() bool { return p.others > 0 }

// next is when the bucket may be written again.
func (p *pace) next() time.Time {
	if p.shared() {
		return p.began.Add(slowPace)
	}
	return p.began.Add(quickPace)
}

// gather waits until somebody comes, and then until the bucket may be written again. It ends at once when the store
// closes, and after a while when nobody comes.
func (s *Store) gather(l *lane, p *pace) {
	select {
	case <-l.arrival:
	case <-time.After(lingering):
		return
	case <-s.closing:
		return
	}
	select {
	case <-time.After(time.Until(p.next())):
	case <-s.closing:
	}
}
