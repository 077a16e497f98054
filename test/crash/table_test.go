package crash

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// row sums the runs of one mode up.
type row struct {
	runs, points, pairs, kills, unknown, missed int
	faults                                      map[string]int
}

// table shows what came of all runs, and fails the sweep if anything went wrong that its runs did not fail for: a point that
// was never reached proves nothing.
func (s *sweep) table() {
	s.Helper()
	var text bytes.Buffer
	for _, r := range s.results {
		if !r.missed || r.repeats() {
			continue
		}
		fmt.Fprintf(&text, "not reached in two runs: %s\n", r.job)
		if !slices.ContainsFunc(r.job.points, point.atPace) {
			s.Errorf("the run %s did not come to its points, twice", r.job)
		}
	}
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "mode\truns\tpoints\tpairs\tkills\tduplicates\torphans\tlost\tstuck\tbroken\tOutcomeUnknown\tnot reached\t")
	for _, m := range modes() {
		r := s.sum(m)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", m.name, r.runs, r.points, r.pairs, r.kills,
			r.faults[duplicate], r.faults[orphan], r.faults[lost], r.faults[stuck], r.faults[broken], r.unknown, r.missed)
		if r.unknown > 0 && !m.blind() {
			s.Errorf("%d runs of the mode %s rest with an unknown outcome", r.unknown, m.name)
		}
	}
	if err := w.Flush(); err != nil {
		s.Error(err)
	}
	fmt.Fprintf(&text, "%d runs in %s", len(s.results), time.Since(s.began).Round(time.Second))
	s.Log("\n" + text.String())
}

func (s *sweep) sum(m mode) row {
	sum := row{faults: map[string]int{}}
	for _, r := range s.results {
		if r.mode != m {
			continue
		}
		sum.runs++
		sum.kills += r.kills
		for kind := range r.faults {
			sum.faults[kind]++
		}
		switch {
		case r.repeats():
			continue
		case r.missed:
			sum.missed++
		case len(r.job.points) == 1:
			sum.points++
		case len(r.job.points) == 2:
			sum.pairs++
		}
		if r.unknown {
			sum.unknown++
		}
	}
	return sum
}

// parseJob reads the name of a run.
func parseJob(name string) (job, error) {
	slow := strings.HasSuffix(name, slowWatches)
	parts := strings.Split(strings.TrimSuffix(name, slowWatches), "/")
	if len(parts) != 3 {
		return job{}, fmt.Errorf("%q is not MODE/TALE/POINTS", name)
	}
	var j job
	mode := slices.IndexFunc(modes(), func(m mode) bool { return m.name == parts[0] })
	tale := slices.IndexFunc(tales(), func(t tale) bool { return t.name == parts[1] })
	if mode < 0 || tale < 0 {
		return job{}, fmt.Errorf("%q names no mode and tale", name)
	}
	j.mode, j.tale, j.person = modes()[mode], tales()[tale], true
	if slow {
		j.watchDelay = watchDelay
	}
	if parts[2] == undisturbed {
		return j, nil
	}
	for _, text := range strings.Split(parts[2], then) {
		p, err := parsePoint(text)
		if err != nil {
			return job{}, err
		}
		j.points = append(j.points, p)
	}
	return j, nil
}

func parsePoint(text string) (point, error) {
	words := strings.Split(text, "-")
	if len(words) < 3 {
		return point{}, fmt.Errorf("%q is not REQUEST-NUMBER-FATE", text)
	}
	last := len(words) - 1
	ordinal, err := strconv.Atoi(words[last-1])
	if err != nil {
		return point{}, fmt.Errorf("%q is not REQUEST-NUMBER-FATE: %w", text, err)
	}
	return point{name: strings.Join(words[:last-1], " "), ordinal: ordinal, fate: fate(words[last])}, nil
}
