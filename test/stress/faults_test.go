package stress

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"

	"github.com/flight-operator/flight-operator/test/apiproxy"
)

// faults decides what becomes of writes of buckets, and counts them.
type faults struct {
	mu     sync.Mutex
	dice   *rand.Rand
	refuse float64 // the share of writes that meet a conflict that nobody caused
	lose   float64 // the share of answers that are lost

	writes, refused, lost int
}

func newFaults(seed uint64) *faults {
	return &faults{dice: rand.New(rand.NewPCG(seed, 3))} //nolint:gosec // repeatable
}

// set says what goes wrong from now on.
func (f *faults) set(refuse, lose float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse, f.lose = refuse, lose
}

// at implements Options.At of a proxy.
func (f *faults) at(_ apiproxy.Exchange, phase apiproxy.Phase) apiproxy.Verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch phase {
	case apiproxy.Before:
		f.writes++
		if f.dice.Float64() < f.refuse {
			f.refused++
			return apiproxy.Refuse
		}
	case apiproxy.Committed:
		if f.dice.Float64() < f.lose {
			f.lost++
			return apiproxy.Cut
		}
	case apiproxy.Answered:
	}
	return apiproxy.Pass
}

// counts returns how many writes of buckets were sent, met an invented conflict, and lost their answer.
func (f *faults) counts() (writes, refused, lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes, f.refused, f.lost
}

// nameOfBucketWrite names the writes of buckets alone.
func nameOfBucketWrite(r *http.Request) string {
	if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/quotabuckets") {
		return ""
	}
	return r.Method + " bucket"
}
