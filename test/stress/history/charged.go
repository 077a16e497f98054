package history

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ChargedForNothing returns how long each entry stood in its bucket whose review stored nothing, and those that still do
// at the end of the history, by their nonces.
func (h History) ChargedForNothing() (took []time.Duration, open []string) {
	was := map[types.UID]int64{} // the latest generation
	for _, t := range h.Tickets {
		was[t.UID] = max(was[t.UID], t.Generation)
	}
	type life struct {
		began time.Time
		entry Entry
	}
	lives := map[Place]map[string]life{}
	for _, b := range h.Buckets {
		before, now := lives[b.Place], map[string]life{}
		for _, e := range b.Entries {
			if began, there := before[e.Nonce]; there && !b.Gone {
				now[e.Nonce] = began
			} else if !b.Gone {
				now[e.Nonce] = life{b.Seen, e}
			}
		}
		for nonce, l := range before {
			if _, still := now[nonce]; !still && was[l.entry.Ticket] < l.entry.Generation {
				took = append(took, b.Seen.Sub(l.began))
			}
		}
		lives[b.Place] = now
	}
	for _, entries := range lives {
		for nonce := range entries {
			open = append(open, nonce)
		}
	}
	return took, open
}

// Batches returns how many entries each write of a bucket brought, for the writes that brought any.
func (h History) Batches() []int {
	var sizes []int
	before := map[Place]map[string]bool{}
	for _, b := range h.Buckets {
		was, is, fresh := before[b.Place], map[string]bool{}, 0
		for _, e := range b.Entries {
			is[e.Nonce] = true
			if !was[e.Nonce] {
				fresh++
			}
		}
		if fresh > 0 && !b.Gone {
			sizes = append(sizes, fresh)
		}
		before[b.Place] = is
	}
	return sizes
}
