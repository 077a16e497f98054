package crash

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flight-operator/flight-operator/test/apiproxy"
)

// fate is what happens to a request of the controller, or to the controller, at a point.
type fate string

const (
	// before: killed; what it was about to send never arrives.
	before fate = "before"
	// late: killed; what it was about to send arrives when its successor is at work already.
	late fate = "late"
	// committed: killed before it hears that it was done.
	committed fate = "committed"
	// answered: killed when it has heard, before it does anything more.
	answered fate = "answered"
	// unanswered: it lives; the request is carried out, and the connection breaks before the answer.
	unanswered fate = "unanswered"
	// overtaken: it lives; the API server refuses the write with a conflict.
	overtaken fate = "overtaken"
)

// phase says when a fate strikes.
func (f fate) phase() apiproxy.Phase {
	switch f {
	case before, late, overtaken:
		return apiproxy.Before
	case answered:
		return apiproxy.Answered
	default:
		return apiproxy.Committed
	}
}

// kills says whether the controller dies of it.
func (f fate) kills() bool { return f != unanswered && f != overtaken }

// point is one request of a controller's life, and what happens there. The life counts from the last kill.
type point struct {
	name string
	// ordinal counts the requests of that name; zero is the next one.
	ordinal int
	fate    fate
	// unproven says that a booking call may have been sent, and was not: the run takes longer where only absence proves it.
	// It is for the order of runs only.
	unproven bool
}

// same says whether two points are one.
func (p point) same(other point) bool { return p.String() == other.String() }

// atPace says whether it is a look at the provider, of which there are more or fewer in a run: how many is a matter of time.
func (p point) atPace() bool { return p.name == "Account" || strings.Contains(p.name, "provider") }

// String is fit for the name of a test: letters, digits and dashes.
func (p point) String() string {
	return fmt.Sprintf("%s-%d-%s", strings.ReplaceAll(p.name, " ", "-"), p.ordinal, p.fate)
}

// entry is a request that was seen.
type entry struct {
	apiproxy.Exchange
	chapter string
	at      time.Time
}

// cue is what the world does when a request is about to be sent for the first time.
type cue struct {
	name string
	do   func()
}

// script has the controller meet its fates. It numbers lives, and remembers what was done in each.
type script struct {
	// struck tells of a life that has met its end: the controller is to be killed, and buried be called.
	struck chan int

	mu      sync.Mutex
	armed   []point // those still to come, the next first
	cues    []cue
	chapter string
	seen    []entry
	lives   map[int]*life
	over    chan struct{}
	changed chan struct{}
}

// life is what is known of the controller between two kills.
type life struct {
	dying bool
	dead  chan struct{} // closed once it is
	first chan struct{} // closed at its first request
}

func newScript(points ...point) *script {
	return &script{
		struck: make(chan int, 1), armed: slices.Clone(points), lives: map[int]*life{},
		over: make(chan struct{}), changed: make(chan struct{}),
	}
}

// at is asked by the proxies.
func (s *script) at(e apiproxy.Exchange, phase apiproxy.Phase) apiproxy.Verdict {
	s.act(e, phase)
	switch f, dead := s.meet(e, phase); {
	case f == "" && dead == nil:
		return apiproxy.Pass
	case f == unanswered:
		return apiproxy.Cut
	case f == overtaken:
		return apiproxy.Refuse
	case !s.wait(dead):
		return apiproxy.Cut
	case f == late && s.wait(s.born(e.Life+1)):
		return apiproxy.Pass
	default:
		return apiproxy.Cut
	}
}

// act carries out the cue of a request.
func (s *script) act(e apiproxy.Exchange, phase apiproxy.Phase) {
	if phase != apiproxy.Before {
		return
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.cues, func(c cue) bool { return c.name == e.Name })
	var do func()
	if i >= 0 {
		do = s.cues[i].do
		s.cues = slices.Delete(s.cues, i, i+1)
	}
	s.mu.Unlock()
	if do != nil {
		do()
	}
}

// meet says what happens to a request. A channel means that its controller is dying or dead: nothing more of it goes on.
func (s *script) meet(e apiproxy.Exchange, phase apiproxy.Phase) (fate, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.life(e.Life)
	if l.dying {
		return "", l.dead
	}
	if phase == apiproxy.Before {
		s.note(l, e)
	}
	if len(s.armed) == 0 {
		return "", nil
	}
	next := s.armed[0]
	if next.name != e.Name || next.ordinal > 0 && next.ordinal != e.Ordinal || next.fate.phase() != phase {
		return "", nil
	}
	s.armed = s.armed[1:]
	s.notify()
	if !next.fate.kills() {
		return next.fate, nil
	}
	l.dying = true
	s.struck <- e.Life
	return next.fate, l.dead
}

// note remembers a request. The caller holds mu.
func (s *script) note(l *life, e apiproxy.Exchange) {
	s.seen = append(s.seen, entry{e, s.chapter, time.Now()})
	if l.first != nil {
		close(l.first)
		l.first = nil
	}
}

// life finds a life. The caller holds mu.
func (s *script) life(number int) *life {
	l := s.lives[number]
	if l == nil {
		l = &life{dead: make(chan struct{}), first: make(chan struct{})}
		s.lives[number] = l
	}
	return l
}

// buried says that the controller of a life is dead.
func (s *script) buried(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.life(number).dead)
	s.notify()
}

// born is closed at the first request of a life.
func (s *script) born(number int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.life(number); l.first != nil {
		return l.first
	}
	done := make(chan struct{})
	close(done)
	return done
}

// wait waits for something, or until the script is closed, and then says false.
func (s *script) wait(what <-chan struct{}) bool {
	select {
	case <-what:
		return true
	case <-s.over:
		return false
	}
}

// close lets go of everything that is held.
func (s *script) close() { close(s.over) }

// arm adds a point.
func (s *script) arm(p point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = append(s.armed, p)
}

// turn begins a chapter: what is done from now on belongs to it.
func (s *script) turn(chapter string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chapter = chapter
}

// when adds a cue.
func (s *script) when(name string, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cues = append(s.cues, cue{name, do})
}

// missed are the points that were not reached.
func (s *script) missed() []point {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.armed)
}

// done returns the requests of a life.
func (s *script) done(number int) []entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.seen), func(e entry) bool { return e.Life != number })
}

// news returns a channel that is closed at the next blow or burial.
func (s *script) news() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// notify wakes those who wait for news. The caller holds mu.
func (s *script) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}
