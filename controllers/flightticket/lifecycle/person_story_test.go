package lifecycle_test

import (
	"time"

	"github.com/flight-operator/flight-operator/internal/booking"
)

// personStories are those in which people tell a ticket something, or the provider does something by itself.
var personStories = map[string]func(w *world, s script){
	"adopted and changed to what the spec asks": func(w *world, _ script) {
		w.run(5)
		w.note("the ticket is deleted without its controller and created again for 3 seats")
		w.names.UID, w.ticket = "uid-2", stored{version: 100, generation: 1, wanted: w.ticket.wanted}
		w.ticket.wanted.Seats = 3
		w.restart("the process is started anew")
		w.run(1)
		w.adopt("b-1")
		w.run(3)
		w.remove()
		w.run(5)
	},
	"adoption refused until the other ticket has let go": func(w *world, _ script) {
		w.foreign("prod/team-a/other", booking.StatusConfirmed)
		w.holder = "other"
		w.adopt("b-1")
		w.run(2)
		w.note("the other ticket is gone, and left its booking")
		w.holder = ""
		w.run(1)
	},
	"adoption refused, then booked": func(w *world, _ script) {
		w.foreign("prod/team-b/my-flight-ticket", booking.StatusConfirmed)
		w.foreign("prod/team-a/other", booking.StatusPending)
		for _, id := range []string{"b-9", "b-1", "b-2"} {
			w.adopt(id)
			w.pass()
		}
		w.adopt("")
		w.run(3)
	},
	"resolved by a person as not done": func(w *world, s script) {
		w.lookup, w.api.faults = false, true
		s["what becomes of the Book"] = []int{lostBeforeCommit}
		w.pass()
		w.resolve("op-1 not-done")
		w.run(4)
	},
	"resolved by a person as done": func(w *world, s script) {
		w.lookup, w.api.faults = false, true
		s["what becomes of the Book"] = []int{lostAfterCommit}
		w.foreign("prod/team-a/other", booking.StatusConfirmed)
		w.run(2)
		w.resolve("op-1 done b-1")
		w.run(1)
		w.resolve("op-1 done b-2")
		w.run(3)
	},
	"resolved by a person as not done though it was, and looked up first": func(w *world, s script) {
		w.api.faults = true
		s["what becomes of the Book"] = []int{lostAfterCommit}
		s["is the read answered"] = []int{0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}
		w.run(2)
		w.resolve("op-1 not-done")
		w.run(12)
	},
	"change without versions resolved by a person": func(w *world, s script) {
		w.api.unversioned = true
		w.run(3)
		w.edit(4)
		w.api.faults = true
		s["what becomes of the Change"] = []int{lostBeforeCommit}
		w.run(10)
		w.resolve(w.ticket.status.Operation.ID + " done")
		w.run(3)
	},
	"resolved by a person while it is deleted": func(w *world, s script) {
		w.lookup, w.api.faults = false, true
		s["what becomes of the Book"] = []int{lostAfterCommit}
		w.run(1)
		w.remove()
		w.run(1)
		w.resolve("op-1 done b-1")
		w.run(5)
	},
	"retained while its cancellation is refused": func(w *world, s script) {
		w.run(3)
		w.api.faults = true
		s["what becomes of the Cancel"] = []int{refused}
		w.remove()
		w.run(2)
		w.note("the booking is to stay")
		w.ticket.retained = "b-1"
		w.ticket.version++
		w.run(2)
	},
	"retained with an open operation, which is resolved first": func(w *world, s script) {
		w.api.faults = true
		s["what becomes of the Book"] = []int{carriedOutLate}
		w.run(1)
		w.note("spec.deletionPolicy becomes Retain")
		w.ticket.retain = true
		w.remove()
		w.run(8)
	},
	"suspended with an open operation, which is resolved": func(w *world, s script) {
		w.api.faults = true
		s["what becomes of the Book"] = []int{carriedOutLate}
		w.run(1)
		w.note("spec.suspend becomes true")
		w.ticket.suspend = true
		w.edit(3)
		w.run(8)
	},
	"changed at the provider and changed back": func(w *world, _ script) {
		w.run(3)
		w.meddle(func(b *booking.Booking) { b.Order.Seats = 5 })
		w.look()
		w.look()
		w.meddle(func(b *booking.Booking) { b.Order.Seats = 2 })
		w.look()
	},
	"cancelled at the provider, seen and not bought again": func(w *world, _ script) {
		w.run(3)
		w.meddle(func(b *booking.Booking) { b.Status = booking.StatusCancelled })
		w.look()
		w.look()
		w.remove()
		w.run(3)
	},
	"looked at because a person asks, while the provider is down at first": func(w *world, s script) {
		w.run(3)
		w.api.faults = true
		s["is the read answered"] = []int{1, 1, 0}
		w.request("2026-12-01")
		w.run(4)
		w.note("handled: %s", w.ticket.status.LastHandledReconcileAt)
	},
}

func (w *world) adopt(id string) {
	w.clock = w.clock.Add(time.Minute)
	w.note("the annotation adopt-booking becomes %q", id)
	w.ticket.adopt = id
	w.ticket.version++
}

func (w *world) resolve(word string) {
	w.note("the annotation resolve-operation becomes %q", word)
	w.ticket.resolve = word
	w.ticket.version++
}

func (w *world) request(value string) {
	w.clock = w.clock.Add(time.Minute)
	w.note("the annotation reconcile-requested-at becomes %q", value)
	w.ticket.requested = value
	w.ticket.version++
}

// foreign makes a booking that is not this ticket's.
func (w *world) foreign(owner string, status booking.Status) {
	b := booking.Booking{Names: booking.Names{Owner: owner, ClientReference: "prod/uid-9/1"}, Status: status, Order: w.ticket.wanted}
	w.note("booking %s exists for %s", w.api.commit(b).truth().ID, owner)
}

// meddle edits the ticket's bookings at the provider.
func (w *world) meddle(edit func(*booking.Booking)) {
	w.note("somebody edits the booking at the provider")
	for _, b := range w.api.bookings {
		other := b.truth()
		edit(&other)
		w.api.show(b, other)
	}
}

// look lets a poll interval go by.
func (w *world) look() {
	w.clock = w.clock.Add(pollInterval)
	w.pass()
}
