package policy

import (
	"fmt"
	"testing"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

func BenchmarkDecide(b *testing.B) {
	const rego = "package a\n\ndeny contains msg if {\n\tinput.ticket.spec.number > %d\n\tmsg := sprintf(\"%%d seats\", [input.ticket.spec.number])\n}\n"
	matching := func(i int) *flightsv1.FlightPolicy {
		return regoPolicy(fmt.Sprintf("matching-%d", i), fmt.Sprintf(rego, 3+i))
	}
	other := func(i int) *flightsv1.FlightPolicy {
		p := regoPolicy(fmt.Sprintf("other-%d", i), fmt.Sprintf(rego, 3))
		p.Spec.Match.Namespaces = []string{fmt.Sprintf("elsewhere-%d", i)}
		return p
	}
	for _, c := range []struct {
		name            string
		matching, other int
	}{
		{"none", 0, 0}, {"1 policy", 1, 0}, {"100 policies", 100, 0}, {"1 policy and 10000 that don't match", 1, 10000},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := NewEngine()
			for i := range c.matching {
				mustSet(b, e, matching(i))
			}
			setLike(b, e, c.other, other)
			r := request()
			b.ReportAllocs()
			for b.Loop() {
				d, err := e.Decide(b.Context(), r)
				if err != nil || !d.Allowed() || len(d.Evaluated) != c.matching {
					b.Fatal(d, err)
				}
			}
		})
	}
}

func mustSet(tb testing.TB, e *Engine, p *flightsv1.FlightPolicy) {
	tb.Helper()
	if err := e.Set(tb.Context(), p); err != nil {
		tb.Fatalf("set %s: %v", p.Name, err)
	}
}

// setLike fills an engine with many policies that share one compiled module: compiling each would take minutes.
func setLike(tb testing.TB, e *Engine, n int, build func(int) *flightsv1.FlightPolicy) {
	tb.Helper()
	if n == 0 {
		return
	}
	first, err := compilation{limits: e.limits}.compile(tb.Context(), build(0))
	if err != nil {
		tb.Fatal(err)
	}
	policies := append([]*held{}, e.snapshot.Load().policies...)
	for i := range n {
		p := build(i)
		match, _ := newMatcher(p.Spec.Match)
		policies = append(policies, &held{name: p.Name, serving: &revision{name: p.Name, enforcement: first.enforcement,
			match: match, executable: first.executable}})
	}
	e.snapshot.Store(newSnapshot(policies))
}
