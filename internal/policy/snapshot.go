package policy

import (
	"slices"
	"sync"
)

// snapshot is all policies at one moment. It never changes.
type snapshot struct {
	policies []*held // sorted by name
	// index finds the policies that may concern a namespace. It is made at the first question: while the policies of a
	// cluster are loaded one by one, nobody asks.
	index func() index
}

// index are positions in a snapshot, sorted.
type index struct {
	named  map[string][]int // of policies that concern only namespaces that they list by name
	others []int            // of all other policies
}

func newSnapshot(policies []*held) *snapshot {
	return &snapshot{policies: policies, index: sync.OnceValue(func() index { return newIndex(policies) })}
}

func newIndex(policies []*held) index {
	ix := index{named: map[string][]int{}}
	for i, h := range policies {
		m := &h.inForce().match
		if !m.limited || len(m.namespaces.prefixes) > 0 {
			ix.others = append(ix.others, i)
			continue
		}
		for name := range m.namespaces.names {
			ix.named[name] = append(ix.named[name], i)
		}
	}
	return ix
}

// concerning lists the policies that match a request, sorted by name.
func (s *snapshot) concerning(r *Request) []*held {
	ix := s.index()
	var positions []int
	for _, list := range [][]int{ix.named[r.Namespace.Name], ix.others} {
		for _, i := range list {
			if s.policies[i].inForce().match.matches(r) {
				positions = append(positions, i)
			}
		}
	}
	slices.Sort(positions)
	policies := make([]*held, len(positions))
	for n, i := range positions {
		policies[n] = s.policies[i]
	}
	return policies
}
