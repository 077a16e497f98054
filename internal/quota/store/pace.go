package store

import "time"

// The pace of one bucket's writes. A write costs the API server more than the admission it is for, and one that another
// replica or the controller overtakes is lost; so what arrives soon after a write waits a little, and goes with the next.
// A bucket that was not written for as long is written at once.
const (
	// quickPace is between two writes while nobody else writes the bucket, and slowPace the longest when others do. Replicas
	// that keep the same pace fall into turns: after a collision each writes when the others rest.
	quickPace = 60 * time.Millisecond
	slowPace  = 200 * time.Millisecond
	// paceStep is how much sooner the next write may be after one that nobody overtook.
	paceStep = 20 * time.Millisecond
	// lingering is how long a worker that has nothing to do knows its bucket and its pace.
	lingering = time.Second
)

// pace is when a worker may write its bucket again.
type pace struct {
	between time.Duration
	next    time.Time
}

// kept follows a write that was stored at a time.
func (p *pace) kept(at time.Time) {
	p.between = max(p.between-paceStep, quickPace)
	p.next = at.Add(p.between)
}

// lost follows a write that another one had overtaken.
func (p *pace) lost() { p.between = min(2*max(p.between, quickPace), slowPace) }

// shared says whether others were seen to write the bucket lately: what is known of it is probably old.
func (p *pace) shared() bool { return p.between > quickPace }

// gather waits until somebody does, and then until the bucket may be written again. It ends at once when the store closes,
// and after a while when nobody comes.
func (s *Store) gather(l *lane, p *pace) {
	select {
	case <-l.arrival:
	case <-time.After(lingering):
		return
	case <-s.closing:
		return
	}
	select {
	case <-time.After(time.Until(p.next)):
	case <-s.closing:
	}
}
