package history_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flight-operator/flight-operator/test/stress/history"
)

// bySeats charges a ticket's seats to its cost centre.
func bySeats(limit int64, retain bool) func(history.Ticket, history.Form) []history.Claim {
	return func(t history.Ticket, f history.Form) []history.Claim {
		return []history.Claim{{Place: history.Place{Key: t.CostCenter}, Amount: f.Seats, Limit: limit, Retain: retain}}
	}
}

func rule(generation int64, limit int64, applied, ready, ended uint64) history.Rule {
	return history.Rule{
		Policy: "seats", UID: "p", Generation: generation, Applied: applied, Ready: ready, Ended: ended, Claims: bySeats(limit, false),
	}
}

func at(seconds int) time.Time { return time.Unix(int64(seconds), 0) }

// version is a stored ticket with so many seats, seen at the second of its revision.
func version(revision uint64, name string, seats ...int64) history.Ticket {
	t := history.Ticket{Revision: revision, Seen: at(int(revision)), UID: types.UID(name), Name: name, Generation: 1, CostCenter: "a"}
	for _, s := range seats {
		t.Forms = append(t.Forms, history.Form{Seats: s})
	}
	t.Gone = len(seats) == 0
	return t
}

var place = history.Place{Policy: "seats", UID: "p", Key: "a"}

func TestAnOverAdmissionIsFound(t *testing.T) {
	one := []history.Rule{rule(1, 5, 1, 10, 0)}
	lowered := []history.Rule{rule(1, 5, 1, 10, 20), rule(2, 3, 20, 30, 0)}
	moved := slices.Clone(lowered)
	moved[1].Claims = func(history.Ticket, history.Form) []history.Claim { return nil }
	deleted := []history.Rule{rule(1, 5, 1, 10, 20)}
	deleted[0].Deleted = true
	for name, c := range map[string]struct {
		rules   []history.Rule
		tickets []history.Ticket
		want    []uint64 // revisions
	}{
		"up to the limit":                         {one, []history.Ticket{version(11, "x", 2), version(12, "y", 3)}, nil},
		"one beyond it":                           {one, []history.Ticket{version(11, "x", 2), version(12, "y", 4)}, []uint64{12}},
		"each raise beyond it":                    {one, []history.Ticket{version(11, "x", 6), version(12, "y", 1)}, []uint64{11, 12}},
		"before the policy was ready":             {one, []history.Ticket{version(9, "x", 9)}, nil},
		"one that came before counts later":       {one, []history.Ticket{version(9, "x", 5), version(12, "y", 1)}, []uint64{12}},
		"a ticket that went leaves room":          {one, []history.Ticket{version(11, "x", 5), version(12, "x"), version(13, "y", 5)}, nil},
		"a raise by an update":                    {one, []history.Ticket{version(11, "x", 3), version(12, "y", 1), version(13, "x", 5)}, []uint64{13}},
		"a lower ticket beyond the limit":         {one, []history.Ticket{version(9, "x", 9), version(12, "x", 8)}, nil},
		"the larger of spec and booking counts":   {one, []history.Ticket{version(11, "x", 1, 4), version(12, "y", 2)}, []uint64{12}},
		"a limit that was lowered evicts nobody":  {lowered, []history.Ticket{version(11, "x", 5), version(31, "x", 4)}, nil},
		"and stops every raise":                   {lowered, []history.Ticket{version(11, "x", 4), version(31, "y", 1)}, []uint64{31}},
		"meanwhile the larger limit holds":        {lowered, []history.Ticket{version(21, "x", 5), version(22, "y", 1)}, []uint64{22}},
		"a key that only the old generation has":  {moved, []history.Ticket{version(21, "x", 9)}, nil},
		"after the policy is gone anything goes":  {deleted, []history.Ticket{version(21, "x", 9)}, nil},
		"a policy that never was ready":           {[]history.Rule{rule(1, 5, 1, 0, 0)}, []history.Ticket{version(11, "x", 9)}, nil},
		"a change that is never ready keeps both": {[]history.Rule{lowered[0], rule(2, 3, 20, 0, 0)}, []history.Ticket{version(40, "x", 6)}, []uint64{40}},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.History{Tickets: c.tickets, Rules: c.rules}
			h.Sort()
			var got []uint64
			for _, o := range h.OverAdmissions() {
				got = append(got, o.Revision)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("over-admissions at %v, want %v", got, c.want)
			}
		})
	}
}

func TestALeakIsFound(t *testing.T) {
	bucket := func(used, reserved, retained int64, entries ...history.Entry) history.Bucket {
		return history.Bucket{Revision: 50, Place: place, Used: used, Reserved: reserved, Retained: retained, Entries: entries}
	}
	gone := bucket(9, 0, 0)
	gone.Gone = true
	retaining := rule(1, 5, 1, 10, 0)
	retaining.Claims = bySeats(5, true)
	live := []history.Ticket{version(11, "x", 2), version(12, "y", 3), version(13, "y")}
	booked := slices.Clone(live)
	booked[2].Booked = true
	for name, c := range map[string]struct {
		rules   []history.Rule
		tickets []history.Ticket
		buckets []history.Bucket
		want    string
	}{
		"to the unit":                              {nil, live, []history.Bucket{bucket(2, 0, 0)}, ""},
		"one too many":                             {nil, live, []history.Bucket{bucket(3, 0, 0)}, "more is used than tickets claim"},
		"one too few":                              {nil, live, []history.Bucket{bucket(1, 0, 0)}, "less is used than tickets claim"},
		"no bucket though tickets claim":           {nil, live, nil, "less is used than tickets claim"},
		"a bucket that is gone":                    {nil, live, []history.Bucket{gone}, "less is used than tickets claim"},
		"an entry that stays":                      {nil, live, []history.Bucket{bucket(2, 0, 0, history.Entry{Nonce: "n"})}, "entries are left"},
		"something reserved by no entry":           {nil, live, []history.Bucket{bucket(2, 1, 0)}, "entries are left"},
		"something retained for nothing":           {nil, live, []history.Bucket{bucket(2, 0, 1)}, "what is retained is not what tickets left"},
		"what a ticket left is retained":           {[]history.Rule{retaining}, booked, []history.Bucket{bucket(2, 0, 3)}, ""},
		"what a ticket left is forgotten":          {[]history.Rule{retaining}, booked, []history.Bucket{bucket(2, 0, 0)}, "what is retained is not what tickets left"},
		"one that was never booked leaves nothing": {[]history.Rule{retaining}, live, []history.Bucket{bucket(2, 0, 0)}, ""},
		"one that was never booked is retained":    {[]history.Rule{retaining}, live, []history.Bucket{bucket(2, 0, 3)}, "what is retained is not what tickets left"},
		"a bucket of a policy that is gone": {
			[]history.Rule{rule(1, 5, 1, 10, 20)}, live, []history.Bucket{bucket(2, 0, 0)}, "more is used than tickets claim",
		},
		"a bucket of a policy that no rule names": {
			nil, live, []history.Bucket{bucket(2, 0, 0), {Revision: 51, Place: history.Place{Policy: "other", UID: "o", Key: "a"}, Used: 9}}, "",
		},
		"a bucket of an earlier policy of that name": {
			nil, live, []history.Bucket{bucket(2, 0, 0), {Revision: 51, Place: history.Place{Policy: "seats", UID: "earlier", Key: "a"}, Used: 9}},
			"more is used than tickets claim",
		},
		"an empty bucket that is left": {nil, []history.Ticket{version(11, "x", 1), version(12, "x")}, []history.Bucket{bucket(0, 0, 0)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.History{Tickets: c.tickets, Buckets: c.buckets, Rules: c.rules}
			if c.rules == nil {
				h.Rules = []history.Rule{rule(1, 5, 1, 10, 0)}
			}
			got := ""
			for _, l := range h.Leaks() {
				got += l.Problem
			}
			if got != c.want {
				t.Errorf("leaks: %q, want %q", got, c.want)
			}
		})
	}
}

func TestARefusalIsExplained(t *testing.T) {
	seen := func(revision uint64, used, reserved int64, counted uint64, entries ...history.Entry) history.Bucket {
		return history.Bucket{
			Revision: revision, Seen: at(int(revision)), Place: place, Used: used, Reserved: reserved, Counted: counted, Entries: entries,
		}
	}
	refused := func(used, reserved int64) history.Refusal {
		return history.Refusal{Place: place, Asked: at(30), Answered: at(31), Requested: 2, Limit: 5, Used: used, Reserved: reserved}
	}
	four := []history.Ticket{version(11, "x", 4)}
	went := append(slices.Clone(four), version(25, "x"))
	for name, c := range map[string]struct {
		tickets []history.Ticket
		buckets []history.Bucket
		refusal history.Refusal
		want    history.Reason
	}{
		"the stored tickets leave no room":           {four, []history.Bucket{seen(20, 4, 0, 15)}, refused(4, 0), history.Full},
		"an entry takes the room":                    {nil, []history.Bucket{seen(20, 0, 4, 15, history.Entry{Nonce: "n", Amount: 4})}, refused(0, 4), history.InFlight},
		"more is said to be reserved than is":        {nil, []history.Bucket{seen(20, 0, 1, 15, history.Entry{Nonce: "n", Amount: 1})}, refused(0, 4), history.Unexplained},
		"a ticket that went isn't counted off yet":   {went, []history.Bucket{seen(20, 4, 0, 15)}, refused(4, 0), history.Behind},
		"a ticket that went long before":             {went, []history.Bucket{seen(20, 4, 0, 15), seen(28, 4, 0, 27)}, refused(4, 0), history.Unexplained},
		"no version says what the answer says":       {nil, []history.Bucket{seen(20, 0, 0, 15)}, refused(4, 0), history.Unexplained},
		"the numbers of the answer leave room":       {nil, []history.Bucket{seen(20, 1, 0, 15)}, refused(1, 0), history.Unexplained},
		"a bucket that nobody wrote, and too much":   {nil, nil, history.Refusal{Place: place, Requested: 9, Limit: 5}, history.Full},
		"a bucket that nobody wrote, and room in it": {nil, nil, history.Refusal{Place: place, Requested: 1, Limit: 5}, history.Unexplained},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.History{Tickets: c.tickets, Buckets: c.buckets, Rules: []history.Rule{rule(1, 5, 1, 10, 0)}}
			if got := h.Explain([]history.Refusal{c.refusal}, 0)[0]; got != c.want {
				t.Errorf("explained by %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatWasChargedForNothingIsMeasured(t *testing.T) {
	mine, lost, still := history.Entry{Nonce: "mine", Ticket: "x", Generation: 1, Amount: 1},
		history.Entry{Nonce: "lost", Ticket: "y", Generation: 1, Amount: 1}, history.Entry{Nonce: "still", Ticket: "z", Generation: 1, Amount: 1}
	h := history.History{
		Tickets: []history.Ticket{version(11, "x", 1)},
		Buckets: []history.Bucket{
			{Revision: 10, Seen: at(10), Place: place, Entries: []history.Entry{mine, lost}},
			{Revision: 12, Seen: at(12), Place: place, Entries: []history.Entry{lost}},
			{Revision: 99, Seen: at(99), Place: place, Entries: []history.Entry{still}},
		},
	}
	charges, open := h.ChargedForNothing()
	if len(charges) != 1 || charges[0].Took() != 89*time.Second || !slices.Equal(open, []string{"still"}) {
		t.Fatalf("charges %v, open %v", charges, open)
	}
	if took := charges[0].Since([]time.Time{at(5), at(20), at(30), at(200)}); took != 69*time.Second {
		t.Errorf("since the last controller's start it took %s", took)
	}
	if sizes := h.Batches(); !slices.Equal(sizes, []int{2, 1}) {
		t.Errorf("batches %v", sizes)
	}
}

func TestARefusalIsReadFromItsWords(t *testing.T) {
	text := `admission webhook "validate.flighttickets.flights.com" denied the request: team-a: quota "2027-03" has no room: requested 2, ` +
		`limit 4, used 0, reserved 3, left 1; it resets at 2027-04-01 00:00 UTC; ask for less; stress-kept: quota "kept-1" has no room: ` +
		`requested 3 in place of 2, limit 10, used 5, reserved 1, kept for tickets that are gone 4, left 0; it never resets`
	got := history.Refusals(text, "team", at(1), at(2))
	want := []history.Refusal{
		{
			Place: history.Place{Policy: "team-a", Key: "2027-03", Namespace: "team"}, Asked: at(1), Answered: at(2),
			Requested: 2, Limit: 4, Reserved: 3,
		},
		{
			Place: history.Place{Policy: "stress-kept", Key: "kept-1", Namespace: "team"}, Asked: at(1), Answered: at(2),
			Requested: 3, Old: 2, Limit: 10, Used: 5, Reserved: 1, Retained: 4,
		},
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %+v", got)
	}
}
