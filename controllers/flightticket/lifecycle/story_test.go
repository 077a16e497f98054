package lifecycle_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flight-operator/flight-operator/internal/booking"
)

// updateVariable, when it is set, has the stories written anew.
const updateVariable = "UPDATE_GOLDEN"

// script answers choices by label, in order; what it doesn't name goes well.
type script map[string][]int

func (s script) choose(label string, _ int) int {
	list := s[label]
	if len(list) == 0 {
		return 0
	}
	s[label] = list[1:]
	return list[0]
}

// The fates of a write in modelProvider.send.
const (
	lostAfterCommit  = 2
	lostBeforeCommit = 3
	carriedOutLate   = 4
	refused          = 5
	throttled        = 6
	notSent          = 7
	acceptedOnly     = 8
)

// stories are played step by step, and what happens is compared with a log that a person can read.
var stories = map[string]func(w *world, s script){
	"booked changed and cancelled": func(w *world, _ script) {
		w.run(5)
		w.edit(3)
		w.run(5)
		w.remove()
		w.run(5)
	},
	"answer lost and the process dies, found by its reference": func(w *world, s script) {
		s["what becomes of the Book"] = []int{lostAfterCommit}
		w.api.faults = true
		w.run(1)
		w.restart("the process is started anew")
		w.run(5)
	},
	"order lost, proven absent, booked anew": func(w *world, s script) {
		s["what becomes of the Book"] = []int{lostBeforeCommit}
		w.api.faults = true
		w.run(12)
	},
	"order carried out late, found": func(w *world, s script) {
		s["what becomes of the Book"] = []int{carriedOutLate}
		w.api.faults = true
		w.run(12)
	},
	"answer lost, replayed under the same key": func(w *world, s script) {
		w.api.keys, w.declares, w.api.faults = true, true, true
		s["what becomes of the Book"] = []int{lostAfterCommit}
		w.run(5)
	},
	"answer lost with neither keys nor look-up, left to a person": func(w *world, s script) {
		w.lookup, w.api.faults = false, true
		s["what becomes of the Book"] = []int{lostAfterCommit}
		w.run(4)
	},
	"created again, not bought again": func(w *world, _ script) {
		w.run(5)
		w.note("the ticket is deleted without its controller and created again")
		w.names.UID, w.ticket = "uid-2", stored{version: 100, generation: 1, wanted: w.ticket.wanted}
		w.run(2)
	},
	"accepted and then failed": func(w *world, s script) {
		w.api.faults = true
		s["what becomes of the Book"] = []int{acceptedOnly}
		s["is the accepted order fulfilled"] = []int{2}
		w.run(9)
	},
	"refused, then tried again for another spec": func(w *world, s script) {
		w.api.faults = true
		s["what becomes of the Book"] = []int{refused}
		w.run(3)
		w.edit(1)
		w.run(3)
	},
	"throttled and not reached, then sent by the same process": func(w *world, s script) {
		w.api.faults = true
		s["what becomes of the Book"] = []int{throttled, notSent}
		w.run(6)
	},
	"deleted with the credential of another account": func(w *world, _ script) {
		w.run(3)
		w.note("the credential is that of another account")
		w.identity.Account = "acct-8"
		w.remove()
		w.run(1)
		w.note("the credential is put back")
		w.identity.Account = "acct-7"
		w.run(3)
	},
	"changed while somebody else changed it": func(w *world, s script) {
		w.run(3)
		w.edit(4)
		for _, b := range w.api.bookings {
			other := b.truth()
			other.Order.Seats = 5
			w.api.show(b, other)
		}
		w.api.faults = true
		s["what becomes of the Change"] = []int{lostAfterCommit}
		w.run(12)
	},
	"deleted while its order is unresolved": func(w *world, s script) {
		w.api.faults = true
		s["what becomes of the Book"] = []int{lostAfterCommit}
		w.run(1)
		w.remove()
		w.run(5)
	},
	"cancelled with the answer lost": func(w *world, s script) {
		w.run(3)
		w.api.faults = true
		s["what becomes of the Cancel"] = []int{lostBeforeCommit, lostAfterCommit}
		w.remove()
		w.run(6)
	},
	"cancelled at the provider, edited afterwards": func(w *world, _ script) {
		w.run(3)
		for _, b := range w.api.bookings {
			other := b.truth()
			other.Status = booking.StatusCancelled
			w.api.show(b, other)
		}
		w.edit(4)
		w.run(2)
	},
}

// allStories are all of them by name.
func allStories() map[string]func(w *world, s script) {
	all := maps.Clone(stories)
	maps.Copy(all, personStories)
	maps.Copy(all, quotaStories)
	return all
}

func TestStories(t *testing.T) {
	for name, play := range allStories() {
		t.Run(name, func(t *testing.T) {
			s := script{}
			w := newWorld(s.choose)
			play(w, s)
			got := strings.Join(append(w.log, w.ending()...), "\n") + "\n"
			file := filepath.Join("testdata", strings.NewReplacer(",", "", "'", "", " ", "-").Replace(name)+".golden")
			if os.Getenv(updateVariable) != "" {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the story went differently (-want +got); run with UPDATE_GOLDEN=1 if that is meant:\n%s", diff)
			}
		})
	}
}

// ending tells how things stand at the end of a story.
func (w *world) ending() []string {
	end := []string{"", "live bookings at the provider: none"}
	if live := w.api.live(w.names.Owner()); len(live) > 0 {
		end[1] = "live bookings at the provider:"
		for _, b := range live {
			end[1] += " " + b.ID + " as " + b.Names.ClientReference
		}
	}
	if w.ticket.gone() {
		return append(end, "the ticket is gone")
	}
	end = append(end, "state "+string(w.ticket.status.State))
	for _, c := range w.ticket.status.Conditions {
		end = append(end, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	slices.Sort(end[3:])
	return end
}

func (w *world) edit(seats int32) {
	w.clock = w.clock.Add(time.Hour)
	w.note("spec.number becomes %d", seats)
	w.ticket.wanted.Seats = seats
	w.ticket.generation++
	w.ticket.version++
}

func (w *world) remove() {
	w.clock = w.clock.Add(time.Minute)
	w.note("the ticket is deleted")
	w.ticket.deleting = true
	w.ticket.generation++
	w.ticket.version++
}
