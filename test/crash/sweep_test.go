package crash

import (
	"cmp"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// sweepVariable chooses how much of the sweep is run: "all", or the name of one run; empty is a few runs of each mode.
	sweepVariable = "CRASH"
	// seedVariable chooses which few.
	seedVariable = "CRASH_SEED"
	// few is how many points of a mode are in the short form.
	few = 1
	// progressTime is how often the sweep says how far it is.
	progressTime = 10 * time.Second
	// statusWrite is what the proxy calls a write of a ticket's status.
	statusWrite = "PUT ticket status"
)

// The controller dies at each point of its life, before another provider each time, and the world is the same in the end.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	s := &sweep{T: t, began: time.Now(), progress: io.Discard}
	switch wanted := os.Getenv(sweepVariable); wanted {
	case "":
		s.sample()
	case "all":
		s.progress = os.Stderr
		s.all()
	default:
		j, err := parseJob(wanted)
		if err != nil {
			t.Fatalf("%s: %v", sweepVariable, err)
		}
		s.each([]job{j}, alone)
	}
	s.table()
}

// sweep does many jobs, and counts what comes of them.
type sweep struct {
	*testing.T
	progress io.Writer
	began    time.Time

	mu      sync.Mutex
	results []result
}

type result struct {
	job
	verdict
}

// repeats says whether a run is done again, since it did not come to its points.
func (r result) repeats() bool { return r.missed && !r.again && len(r.faults) == 0 }

// all does everything: each tale undisturbed, then each point of it, then pairs of points. Nothing waits for the end of a
// round: what follows from a run is done as soon as it is over.
func (s *sweep) all() {
	lookup := modes()[slices.IndexFunc(modes(), func(m mode) bool { return m.name == "lookup-only" })]
	var references []job
	for _, t := range tales()[1:] { // first those whose pairs take longest
		references = append(references, job{tale: t, mode: lookup})
	}
	references = append(references, job{tale: taleNamed("whole-life"), mode: lookup, watchDelay: watchDelay})
	for _, m := range modes() {
		references = append(references, job{tale: taleNamed("whole-life"), mode: m, person: true})
	}
	s.each(references, func(r result) []job {
		if len(r.job.points) == 0 {
			return r.points()
		}
		return r.pairs()
	})
}

// sample does a few runs of each mode, none of which has to wait until an operation can't be sent any more.
func (s *sweep) sample() {
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(seedVariable), "1"), 10, 64)
	if err != nil {
		s.Fatalf("%s: %v", seedVariable, err)
	}
	s.Logf("%s=%d", seedVariable, seed)
	var references []job
	for _, m := range modes() {
		references = append(references, job{tale: taleNamed("whole-life"), mode: m})
	}
	s.each(references, func(r result) []job {
		if len(r.job.points) > 0 {
			return nil
		}
		var chosen []job
		for _, p := range always() {
			chosen = append(chosen, r.with(p))
		}
		quick := slices.DeleteFunc(r.points(), func(j job) bool {
			return j.slow() || slices.ContainsFunc(always(), j.points[0].same)
		})
		// Dice of its own for each mode: which one is over first is left to chance.
		dice := rand.New(rand.NewPCG(seed, uint64(slices.Index(modes(), r.mode)))) //nolint:gosec // an index
		dice.Shuffle(len(quick), func(i, k int) { quick[i], quick[k] = quick[k], quick[i] })
		return append(chosen, quick[:min(few, len(quick))]...)
	})
}

// always are the points that are in every sample: what is paid for happens there.
func always() []point {
	return []point{
		{name: "Book", ordinal: 1, fate: committed}, {name: "Change", ordinal: 1, fate: before},
		{name: "Change", ordinal: 1, fate: committed}, {name: "Cancel", ordinal: 1, fate: before},
		{name: "Cancel", ordinal: 1, fate: committed},
	}
}

// alone is a run from which nothing follows.
func alone(result) []job { return nil }

// one does one job as a test of its own.
func (s *sweep) one(j job, at *seat) result {
	r := result{job: j}
	ok := s.Run(j.String(), func(t *testing.T) { r.verdict = j.do(t, at) })
	if !ok && len(r.faults) == 0 {
		r.faults = map[string]int{broken: 1}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, r)
	return r
}

// points are the jobs in which something happens at one request of an undisturbed run.
func (r result) points() []job {
	var jobs []job
	for i, e := range r.done() {
		for _, f := range r.fatesOf(e) {
			jobs = append(jobs, r.with(point{e.Name, e.Ordinal, f, unproven(r.done(), i, f)}))
		}
	}
	return jobs
}

// unproven says whether a booking call may have been sent, and was not, when a fate strikes a request.
func unproven(all []entry, i int, f fate) bool {
	if all[i].Name == "Book" {
		return f == before
	}
	next := slices.IndexFunc(all[i:], func(e entry) bool { return e.Name == "Book" })
	if next < 0 || all[i].Name != statusWrite || f == before || f == overtaken {
		return false
	}
	// It is the operation that is written, if nothing else is before the call.
	return !slices.ContainsFunc(all[i+1:i+next], func(e entry) bool { return e.Name == statusWrite })
}

// done are the requests of a run's last life.
func (r result) done() []entry {
	if len(r.lives) == 0 {
		return nil
	}
	return r.lives[len(r.lives)-1]
}

// with is the same job with one thing more that happens.
func (r result) with(p point) job {
	j := r.job
	j.points = append(slices.Clone(j.points), p)
	return j
}

// fatesOf says what can happen at a request.
func (r result) fatesOf(e entry) []fate {
	kubernetes := strings.Contains(e.Name, " ")
	switch {
	case r.watchDelay > 0 && kubernetes:
		return []fate{unanswered}
	case r.watchDelay > 0:
		return nil
	case r.tale.name != "whole-life":
		return []fate{before, committed}
	case kubernetes:
		return []fate{before, committed, answered, unanswered, overtaken}
	case e.Name == "Book", e.Name == "Change", e.Name == "Cancel":
		return []fate{before, late, committed, answered, unanswered}
	default:
		return []fate{before, committed, answered, unanswered}
	}
}

// pairs are the jobs in which the successor dies too, in the same chapter: while it creates, or while it cancels.
func (r result) pairs() []job {
	if r.tale.name != "there-and-back" || r.mode.name != "lookup-only" || r.kills != 1 || len(r.lives) != 2 {
		return nil
	}
	chapter := r.chapterOf(r.job.points[0])
	var jobs []job
	for i, e := range r.lives[1] {
		if e.chapter != chapter || (point{name: e.Name}).atPace() {
			continue
		}
		for _, f := range r.fatesOf(e) {
			jobs = append(jobs, r.with(point{e.Name, e.Ordinal, f, unproven(r.lives[1], i, f)}))
		}
	}
	return jobs
}

func (r result) chapterOf(p point) string {
	i := slices.IndexFunc(r.lives[0], func(e entry) bool { return e.Name == p.name && e.Ordinal == p.ordinal })
	if i < 0 {
		return ""
	}
	return r.lives[0][i].chapter
}
