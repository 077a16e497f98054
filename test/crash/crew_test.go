package crash

import (
	"fmt"
	"sync"
	"time"
)

const (
	// sideBySide is how many runs do something at a time.
	sideBySide = 4
	// aside is how many runs may wait at a time, beside those, until an operation can't be sent any more.
	aside = 24
	// longWait is how long a run must have to wait for that, so that another one takes its seat meanwhile.
	longWait = 10 * time.Second
)

// crew has jobs done. It hands out seats to those that do something.
type crew struct {
	seats  chan struct{}
	follow func(result) []job

	mu          sync.Mutex
	changed     *sync.Cond
	quick, slow []job
	slowly      int // slow ones that have begun and not ended
	left        int // those that have not ended
	all         int
}

// each does jobs and what follows from them.
func (s *sweep) each(jobs []job, follow func(result) []job) {
	c := &crew{seats: make(chan struct{}, sideBySide), follow: follow}
	c.changed = sync.NewCond(&c.mu)
	c.add(jobs)
	defer s.progressing(c)()
	var working sync.WaitGroup
	defer working.Wait()
	for {
		j, ok := c.next()
		if !ok {
			return
		}
		at := &seat{of: c.seats}
		at.take()
		working.Go(func() {
			defer at.leave()
			c.ended(s.one(j, at))
		})
	}
}

func (c *crew) add(jobs []job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range jobs {
		if j.slow() {
			c.slow = append(c.slow, j)
		} else {
			c.quick = append(c.quick, j)
		}
	}
	c.left += len(jobs)
	c.all += len(jobs)
	c.changed.Broadcast()
}

// next waits for a job that may begin. False: all have ended. Slow ones go first, so that none is waited for at the end.
func (c *crew) next() (job, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case len(c.slow) > 0 && c.slowly < aside:
			c.slowly++
			return shift(&c.slow), true
		case len(c.quick) > 0:
			return shift(&c.quick), true
		case c.left == 0:
			return job{}, false
		}
		c.changed.Wait()
	}
}

func shift(queue *[]job) job {
	first := (*queue)[0]
	*queue = (*queue)[1:]
	return first
}

func (c *crew) ended(r result) {
	if r.repeats() {
		r.again = true
		c.add([]job{r.job})
	} else {
		c.add(c.follow(r))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.slow() {
		c.slowly--
	}
	c.left--
	c.changed.Broadcast()
}

// seat is held by a run while it does something. Nil is for a run that nobody waits for. It is for one goroutine.
type seat struct {
	of    chan struct{}
	taken bool
}

// take waits until one is free.
func (s *seat) take() {
	if s != nil && !s.taken {
		s.of <- struct{}{}
		s.taken = true
	}
}

// leave has another run take it.
func (s *seat) leave() {
	if s != nil && s.taken {
		<-s.of
		s.taken = false
	}
}

// progressing says how far it is, every now and then, until stop is called.
func (s *sweep) progressing(c *crew) (stop func()) {
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		ticker := time.NewTicker(progressTime)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.say(c)
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		telling.Wait()
	}
}

func (s *sweep) say(c *crew) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	wrong := 0
	for _, r := range s.results {
		if len(r.faults) > 0 {
			wrong++
		}
	}
	fmt.Fprintf(s.progress, "%s: %d of %d runs done, %d of them failed; %d wait\n",
		time.Since(s.began).Round(time.Second), c.all-c.left, c.all, wrong, c.slowly)
}
