package history

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Charge is an entry whose review stored nothing, with when it came and when it went.
type Charge struct{ Began, Ended time.Time }

// Took is how long it stood.
func (c Charge) Took() time.Duration { return c.Ended.Sub(c.Began) }

// Since is how long it stood after the last of some moments that lies in its time.
func (c Charge) Since(moments []time.Time) time.Duration {
	from := c.Began
	for _, m := range moments {
		if m.After(from) && m.Before(c.Ended) {
			from = m
		}
	}
	return c.Ended.Sub(from)
}

// ChargedForNothing returns the entries that left their bucket and whose reviews stored nothing, and those that are there
// at the end of the history, by their nonces.
func (h History) ChargedForNothing() (charges []Charge, open []string) {
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
				charges = append(charges, Charge{l.began, b.Seen})
			}
		}
		lives[b.Place] = now
	}
	for _, entries := range lives {
		for nonce := range entries {
			open = append(open, nonce)
		}
	}
	return charges, open
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

// Places is how many buckets there ever were.
func (h History) Places() int {
	places := map[Place]bool{}
	for _, b := range h.Buckets {
		places[b.Place] = true
	}
	return len(places)
}
