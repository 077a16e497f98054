package crash

import (
	"cmp"
	"fmt"
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
	// sideBySide is how many runs go on at a time.
	sideBySide = 4
	// few is how many points of a mode are in the short form.
	few = 2
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
		s.each([]job{j})
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

// all does everything: each tale undisturbed, then each point of it, then pairs of points.
func (s *sweep) all() {
	var references []job
	for _, m := range modes() {
		references = append(references, job{tale: taleNamed("whole-life"), mode: m, person: true})
	}
	lookup := modes()[slices.IndexFunc(modes(), func(m mode) bool { return m.name == "lookup-only" })]
	for _, t := range tales()[1:] {
		references = append(references, job{tale: t, mode: lookup})
	}
	slowly := job{tale: taleNamed("whole-life"), mode: lookup, watchDelay: watchDelay}
	var singles []job
	for _, r := range s.each(append(references, slowly)) {
		singles = append(singles, r.points()...)
	}
	var pairs []job
	for _, r := range s.each(slowFirst(singles)) {
		pairs = append(pairs, r.pairs()...)
	}
	s.each(slowFirst(pairs))
}

// sample does a few runs of each mode, none of which has to wait until an operation can't be sent any more.
func (s *sweep) sample() {
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(seedVariable), "1"), 10, 64)
	if err != nil {
		s.Fatalf("%s: %v", seedVariable, err)
	}
	dice := rand.New(rand.NewPCG(seed, seed))
	var references, chosen []job
	for _, m := range modes() {
		references = append(references, job{tale: taleNamed("whole-life"), mode: m})
	}
	for _, r := range s.each(references) {
		for _, p := range always() {
			chosen = append(chosen, r.with(p))
		}
		quick := slices.DeleteFunc(r.points(), func(j job) bool {
			return j.slow() || slices.ContainsFunc(always(), j.points[0].same)
		})
		dice.Shuffle(len(quick), func(i, k int) { quick[i], quick[k] = quick[k], quick[i] })
		chosen = append(chosen, quick[:min(few, len(quick))]...)
	}
	s.Logf("%s=%d", seedVariable, seed)
	s.each(chosen)
}

// always are the points that are in every sample: what is paid for happens there.
func always() []point {
	return []point{
		{name: "Book", ordinal: 1, fate: committed}, {name: "Change", ordinal: 1, fate: before},
		{name: "Change", ordinal: 1, fate: committed}, {name: "Cancel", ordinal: 1, fate: before},
		{name: "Cancel", ordinal: 1, fate: committed},
	}
}

// each does jobs, some at a time, and returns what came of them in their order.
func (s *sweep) each(jobs []job) []result {
	stop := s.progressing(len(jobs))
	defer stop()
	results := make([]result, len(jobs))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(sideBySide, len(jobs)) {
		workers.Go(func() {
			for i := range next {
				results[i] = s.one(jobs[i])
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	workers.Wait()
	return results
}

// one does one job as a test of its own.
func (s *sweep) one(j job) result {
	r := result{job: j}
	ok := s.Run(j.String(), func(t *testing.T) { r.verdict = j.do(t) })
	if !ok && len(r.faults) == 0 {
		r.faults = map[string]int{broken: 1}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, r)
	return r
}

// progressing says how far a round is, every now and then, until stop is called.
func (s *sweep) progressing(jobs int) (stop func()) {
	began := len(s.results)
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		ticker := time.NewTicker(progressTime)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.say(began, jobs)
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

func (s *sweep) say(began, jobs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wrong := 0
	for _, r := range s.results {
		if len(r.faults) > 0 {
			wrong++
		}
	}
	fmt.Fprintf(s.progress, "%s: %d of %d runs of this round done, %d of all failed\n",
		time.Since(s.began).Round(time.Second), len(s.results)-began, jobs, wrong)
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
		if e.chapter != chapter || e.Name == "Account" || strings.Contains(e.Name, "provider") {
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

// slowFirst puts those runs at the front that take longest, so that none of them is waited for at the end.
func slowFirst(jobs []job) []job {
	slices.SortStableFunc(jobs, func(a, b job) int {
		rank := map[bool]int{true: 0, false: 1}
		return rank[a.slow()] - rank[b.slow()]
	})
	return jobs
}
