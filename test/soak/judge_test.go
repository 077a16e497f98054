package soak

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

const (
	// workers is how many tickets the controller works on at once.
	workers = 4
	// looks is what the provider's own controller may ask for each thing that goes wrong.
	looks = 5
	// failures in a row open the breaker.
	failures = 5
)

// judgeLedger compares what is booked with what the tickets say: the ledger is the truth.
func (s *soak) judgeLedger() {
	s.Helper()
	for _, v := range s.Simulator.Violations() {
		s.Errorf("the ledger was violated: %+v", v)
	}
	tickets := map[string]*flightsv1.FlightTicket{}
	for _, t := range s.follower.Tickets() {
		tickets[t.Name] = t
	}
	for _, b := range s.Simulator.LiveBookings() {
		name := b.Owner[strings.LastIndex(b.Owner, "/")+1:]
		t := tickets[name]
		switch {
		case t == nil:
			s.Errorf("booking %s of %s is live, and its ticket is gone", b.Id, b.Owner)
		case t.Status.Booking == nil || t.Status.Booking.ID != b.Id:
			s.Errorf("booking %s of %s is live, and its ticket knows of %+v", b.Id, b.Owner, t.Status.Booking)
		}
	}
	drifted := 0
	for _, t := range tickets {
		drifted += s.judgeTicket(t)
	}
	s.say("ledger: %+v; %d tickets, %d of them drifted", s.Simulator.Totals(), len(tickets), drifted)
}

// judgeTicket fails unless a ticket that is ready has what its spec asks for. Drifted is 1 if it says that somebody else
// changed its booking.
func (s *soak) judgeTicket(t *flightsv1.FlightTicket) (drifted int) {
	s.Helper()
	for _, c := range t.Status.Conditions {
		switch {
		case c.Type != flightsv1.ConditionReady:
		case c.Reason == flightsv1.ReasonDrifted:
			return 1
		case c.Status != "True":
			return 0 // suspended, before it was booked or changed
		}
	}
	for _, b := range s.Simulator.LiveBookings() {
		if t.Status.Booking == nil || b.Id != t.Status.Booking.ID {
			continue
		}
		if b.Order.Seats != t.Spec.Number || string(b.Order.Cabin) != string(t.Spec.Cabin) {
			s.Errorf("%s is ready with %d seats %s, and the provider has %+v", t.Name, t.Spec.Number, t.Spec.Cabin, b.Order)
		}
		return 0
	}
	s.Errorf("%s is ready, and the provider has no live booking of it: %+v", t.Name, t.Status.Booking)
	return 0
}

// class is how a call went, as its caller saw it.
func class(c simulator.Call) string {
	spoilt := []simulator.Effect{
		simulator.EffectErrorAfter, simulator.EffectDropAfter, simulator.EffectResetAfter, simulator.EffectTruncate,
		simulator.EffectGarbage, simulator.EffectHTML, simulator.EffectNoID, simulator.EffectHuge,
	}
	switch {
	case c.Status == http.StatusUnauthorized:
		return "credential"
	case c.Status == http.StatusTooManyRequests:
		return "throttled"
	case slices.Contains(spoilt, c.Fault):
		return "unknown"
	case c.Status == 0, c.Status >= 500, c.Status >= 300 && c.Status < 400, c.Fault == simulator.EffectDelayAfter, c.Fault == simulator.EffectDelayBefore:
		return "unavailable"
	case c.Status >= 400:
		return "refused"
	default:
		return "answered"
	}
}

// judgeCalls compares the calls with what people asked for and what went wrong.
func (s *soak) judgeCalls() {
	s.Helper()
	count, kinds := map[string]int{}, map[string]int{}
	for _, call := range s.Simulator.Calls() {
		count[class(call)]++
		kinds[string(call.Operation)]++
	}
	bad := count["refused"] + count["throttled"] + count["unavailable"] + count["unknown"] + count["credential"]
	polls := int(time.Since(s.began)/chosen.poll+1) * (chosen.tickets + 1)
	budgets := map[string]struct {
		allowed int
		why     string
	}{
		"answered":    {3*s.counts.wishes() + s.counts.asked + 6*bad + polls, "3 for each wish, 1 for each reconcile that was asked for, 6 after each call that went badly, a look at each booking in each poll interval"},
		"refused":     {s.broken.strikes + s.counts.wishes()/10, "1 for each armed fault, 1 for ten wishes that came at the wrong time"},
		"credential":  {s.broken.turnedAway*(2*workers+looks) + chosen.tickets, "twice what is under way and 5 of the provider's own, each time the credential was refused; 1 a ticket"},
		"throttled":   {s.broken.rounds * (workers + 1), "what is under way, in each round of Retry-After"},
		"unavailable": {s.broken.strikes + s.broken.outages*(failures+workers+looks), "1 for each armed fault; until the breaker opens, what is under way and 5 of the provider's own, each time nothing was answered"},
		"unknown":     {s.broken.strikes, "1 for each armed fault"},
	}
	table := tabwriter.NewWriter(os.Stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\ncalls\tcount\tbudget\twhich is")
	for _, name := range slices.Sorted(maps.Keys(budgets)) {
		b := budgets[name]
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", name, count[name], b.allowed, b.why)
		if count[name] > b.allowed {
			s.Errorf("%d calls were %s, the budget is %d", count[name], name, b.allowed)
		}
	}
	_ = table.Flush() // to the terminal, best effort
	s.say("calls by kind: %v; people: %+v; trouble: %+v\n", kinds, s.counts, s.broken)
}

// ailing is how many tickets may be told of another ailment of their provider, in a run that is too short for a share.
const ailing = 20

// judgeWrites fails if many status writes are no transitions. Some put the same thing in new words, and should: a ticket that
// waits for its provider says what ails it, for its owner may not read the provider, and one ailment follows another. That
// is all there was in a full run, 444 of 11,302 writes, and 14 of 128 in a short one. A write for nothing else at all, such
// as a time, is a fault.
func (s *soak) judgeWrites() {
	s.Helper()
	writes, transitions := s.follower.Counts()
	list, idle := s.follower.Reworded(), s.follower.Idle()
	s.say("status writes: %d, transitions: %d, other words: %d (%.1f %%), for nothing: %d",
		writes, transitions, len(list), 100*float64(len(list))/float64(max(writes, 1)), len(idle))
	if len(list) > writes/10+ailing {
		s.Errorf("%d of %d status writes are no transitions, such as %q", len(list), writes, list[:min(5, len(list))])
	}
	if len(idle) > 0 {
		s.Errorf("%d status writes say nothing new, such as %q", len(idle), idle[:min(5, len(idle))])
	}
}

// load is what the controller holds.
type load struct{ goroutines, memory float64 }

// judgeLoad fails if the controller holds more in the end than it did with the same tickets in the beginning.
func (s *soak) judgeLoad(start, end load) {
	s.Helper()
	s.say("controller: %.0f goroutines and %.0f MiB at the start, %.0f and %.0f MiB in the end",
		start.goroutines, start.memory/(1<<20), end.goroutines, end.memory/(1<<20))
	if end.goroutines > start.goroutines+20 {
		s.Errorf("the controller's goroutines grew from %.0f to %.0f", start.goroutines, end.goroutines)
	}
	if end.memory > 1.5*start.memory+64<<20 {
		s.Errorf("the controller's memory grew from %.0f to %.0f bytes", start.memory, end.memory)
	}
}
