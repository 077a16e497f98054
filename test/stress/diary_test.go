package stress

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flight-operator/flight-operator/test/stress/history"
)

// answer is what became of a request, in one word.
type answer string

const (
	admitted    answer = "admitted"
	noRoom      answer = "refused by a quota"
	other       answer = "refused by the other webhook"
	again       answer = "told to try again"
	taken       answer = "name in use"
	absent      answer = "no such ticket"
	leaving     answer = "ticket is leaving"
	overtaken   answer = "overtaken by another write"
	unreachable answer = "webhook killed or late"
	unexpected  answer = "UNEXPECTED"
)

// diary is what the clients were answered.
type diary struct {
	mu       sync.Mutex
	counts   map[action]map[answer]int
	took     []time.Duration // of admissions: creates and changes that got through
	refusals []history.Refusal
	strange  map[string]int // unexpected answers
}

func newDiary() *diary {
	return &diary{counts: map[action]map[answer]int{}, strange: map[string]int{}}
}

func (d *diary) note(what action, namespace string, asked time.Time, err error) {
	answered := time.Now()
	a := meaning(err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts[what] == nil {
		d.counts[what] = map[answer]int{}
	}
	d.counts[what][a]++
	switch {
	case a == noRoom:
		d.refusals = append(d.refusals, history.Refusals(err.Error(), namespace, asked, answered)...)
	case a == unexpected:
		d.strange[err.Error()]++
	case a == admitted && what != deletes && what != tries:
		d.took = append(d.took, answered.Sub(asked))
	}
}

// meaning reads an answer.
func meaning(err error) answer {
	if err == nil {
		return admitted
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "has no room"):
		return noRoom
	case strings.Contains(text, otherRefused):
		return other
	case apierrors.IsAlreadyExists(err):
		return taken
	case apierrors.IsNotFound(err):
		return absent
	case apierrors.IsConflict(err):
		return overtaken
	case strings.Contains(text, "failed calling webhook"), errors.Is(err, errNoAnswer(err)):
		return unreachable
	case apierrors.IsTooManyRequests(err), strings.Contains(text, "nothing was stored, retry"):
		return again
	case strings.Contains(text, "being deleted"):
		return leaving
	}
	return unexpected
}

// errNoAnswer is err where it is no answer of the API server but the end of the wait for one.
func errNoAnswer(err error) error {
	if apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || strings.Contains(err.Error(), "context deadline exceeded") {
		return err
	}
	return errors.New("an answer")
}

// placed completes the buckets of the refusals: their policy's UID, and no namespace for those of the whole cluster. Of
// policies of one name it is the one whose bucket was made last before the answer.
func (d *diary) placed(h history.History) []history.Refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	type made struct {
		at    time.Time
		place history.Place
	}
	name := func(p history.Place) string { return p.Policy + " " + p.Namespace + " " + p.Key }
	known, seen := map[string][]made{}, map[history.Place]bool{}
	for _, b := range h.Buckets {
		if !seen[b.Place] {
			seen[b.Place] = true
			known[name(b.Place)] = append(known[name(b.Place)], made{b.Seen, b.Place})
		}
	}
	all := slices.Clone(d.refusals)
	for i, r := range all {
		everywhere := r.Place
		everywhere.Namespace = ""
		for _, m := range append(known[name(r.Place)], known[name(everywhere)]...) {
			if !m.at.After(r.Answered.Add(slack)) {
				all[i].Place = m.place
			}
		}
	}
	return all
}

// total adds up an answer over some actions, or over all.
func (d *diary) total(a answer, of ...action) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for what, counts := range d.counts {
		if len(of) == 0 || slices.Contains(of, what) {
			n += counts[a]
		}
	}
	return n
}

// table says how often each action was answered in which way.
func (d *diary) table() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(d.counts)) {
		fmt.Fprintf(&b, "  %-26s", what)
		for _, a := range slices.Sorted(maps.Keys(d.counts[what])) {
			fmt.Fprintf(&b, "%s %d; ", a, d.counts[what][a])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// oddities are the unexpected answers.
func (d *diary) oddities() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.strange)
}

// percentile is the value that so many of 100 don't exceed; 0 of none.
func percentile[T cmp.Ordered](values []T, percent int) T {
	var none T
	if len(values) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
