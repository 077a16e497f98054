package lifecycle_test

// quotaStories are those in which quotas hold a ticket back.
var quotaStories = map[string]func(w *world, s script){
	"no room in a quota, booked once there is": func(w *world, _ script) {
		w.seats(10, 9)
		w.run(2)
		w.seats(10, 8)
		w.run(2)
	},
	"no room for the offer, whose flight is full": func(w *world, _ script) {
		w.quota.offers = true
		w.seats(3, 2)
		w.run(2)
		w.seats(4, 2)
		w.run(2)
	},
	"a quota that is being counted is asked again soon": func(w *world, _ script) {
		w.quota.counting = true
		w.run(4)
		w.note("the quota is counted")
		w.quota.counting = false
		w.run(2)
	},
	"quotas that can't be asked, and nothing is bought": func(w *world, _ script) {
		w.quota.broken = true
		w.run(3)
		w.note("the quotas answer again")
		w.quota.broken = false
		w.run(2)
	},
	"a lowered limit evicts nobody, stops a raise and lets a ticket shrink": func(w *world, _ script) {
		w.run(3)
		w.seats(1, 0)
		w.edit(4)
		w.run(2)
		w.edit(1)
		w.run(3)
	},
	"deleted while its quotas have no room, and goes once what outlives it is kept": func(w *world, _ script) {
		w.run(3)
		w.seats(1, 0)
		w.quota.staying = true
		w.remove()
		w.run(4)
		w.note("what outlives the ticket is in its quotas")
		w.quota.staying = false
		w.run(2)
	},
	"retained, and goes once its quotas have kept its seats": func(w *world, _ script) {
		w.run(3)
		w.quota.staying, w.ticket.retain = true, true
		w.remove()
		w.run(2)
		w.note("the seats are kept")
		w.quota.staying = false
		w.run(2)
	},
	"an operation that is written down is carried through though the limit is lowered": func(w *world, s script) {
		w.api.faults = true
		s["what becomes of the Book"] = []int{lostAfterCommit}
		w.run(1)
		w.seats(0, 5)
		w.restart("the process is started anew")
		w.run(4)
	},
}

// seats sets the limit of the quota, and how many seats other tickets have.
func (w *world) seats(limit, others int32) {
	w.note("the limit is %d seats, others have %d", limit, others)
	w.quota.limit, w.quota.others = limit, others
}
