package lifecycle_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
)

// wideWalks is how many walks of people and providers are taken. Each is the same whenever it is taken.
const wideWalks = 3000

// rareSeeds are those of walks that go ways which the others don't. After a change of the rules or of the model, look for
// others by raising wideWalks for once.
func rareSeeds() []uint64 { return []uint64{3915, 4644, 4672, 4812, 7618, 10711, 44309} }

// TestWhateverPeopleAndProvidersDo walks with everything at once: crashes, lost answers, edits, deletions, bookings that are
// cancelled or changed at the provider, policies that change their mind, adoptions, and people who say what became of an
// operation. The provider's ledger is the oracle. Only a person who spoke of what could not be known yet excuses a double
// purchase. The transitions that the walks and the stories show are those that are listed.
func TestWhateverPeopleAndProvidersDo(t *testing.T) {
	seen := map[lifecycle.Transition]bool{}
	note := func(from, to flightsv1.FlightTicketStatus, step lifecycle.Step) {
		if way, moved := wayOf(from, to, step); moved {
			seen[way] = true
		}
	}
	seeds := rareSeeds()
	for seed := range uint64(wideWalks) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		wander(t, seed, note)
		if t.Failed() {
			return
		}
	}
	for _, play := range allStories() {
		s := script{}
		w := newWorld(s.choose)
		w.watcher = note
		play(w, s)
	}
	t.Run("the transitions are those that are listed", func(t *testing.T) { areListed(t, seen) })
}

// crowd is the people around a ticket, and the provider's staff.
type crowd struct {
	*testing.T
	*world
	rng *rand.Rand
	// guessed says that somebody resolved an operation before its outcome could be known; meddled, that the provider's staff
	// touched the booking.
	guessed, meddled bool
	// lost says that the ticket's status was. Such a ticket asks its provider before it goes, but waits for none that is out
	// of order or missing: one that was never booked looks the same.
	lost bool
}

// wander takes the walk of a seed.
func wander(t *testing.T, seed uint64, watch func(from, to flightsv1.FlightTicketStatus, step lifecycle.Step)) {
	rng := rand.New(rand.NewPCG(seed, seed))
	w := newWorld(func(_ string, n int) int { return rng.IntN(n) })
	c := &crowd{T: t, world: w, rng: rng}
	w.watcher = watch
	w.api.keys = rng.IntN(2) == 0
	w.declares, w.lookup = w.api.keys, rng.IntN(3) > 0
	w.api.faults, w.crashes = true, true
	w.check = c.oracle
	w.api.cancelling = func() {
		if !w.ticket.deleting {
			c.fail("a booking was cancelled whose ticket still wants it")
		}
	}
	w.foreign("prod/team-a/other", booking.StatusConfirmed)
	w.foreign("prod/team-b/other", booking.StatusConfirmed)
	if rng.IntN(4) == 0 {
		w.foreign(w.names.Owner(), booking.StatusConfirmed) // an earlier ticket of this name left it
	}
	for range 5 + rng.IntN(30) {
		c.act()
		w.clock = w.clock.Add(w.pass())
		if w.ticket.gone() || t.Failed() {
			break
		}
	}
	c.calmDown()
	c.judge()
}

func (c *crowd) fail(format string, args ...any) {
	c.Errorf(format+"\n%s", append(args, strings.Join(c.log, "\n"))...)
}

// own are the live bookings that this ticket made or holds.
func (c *crowd) own() []booking.Booking {
	c.api.settle()
	var all []booking.Booking
	for _, b := range c.api.bookings {
		now, held := b.truth(), c.ticket.status.Booking
		_, made := c.names.Attempt(now.Names.ClientReference)
		live := now.Status == booking.StatusConfirmed || now.Status == booking.StatusPending
		if live && (made || held != nil && held.ID == now.ID) {
			all = append(all, now)
		}
	}
	return all
}

func (c *crowd) oracle() {
	if all := c.own(); len(all) > 1 && !c.guessed {
		c.fail("bought twice: %v", all)
	}
	if held := c.ticket.status.Booking; held != nil && held.ID == "b-2" {
		c.fail("a booking of another namespace was taken over")
	}
	if len(c.beyond) > 0 {
		c.fail("%s", c.beyond[0])
	}
}

// act is one thing that somebody does.
func (c *crowd) act() {
	ticket := &c.ticket
	switch c.rng.IntN(30) {
	case 0, 1:
		ticket.wanted.Seats = int32(1 + c.rng.IntN(5))
		ticket.generation++
	case 2:
		if !ticket.deleting && c.rng.IntN(2) == 0 {
			ticket.deleting = true
			ticket.generation++
		}
	case 3:
		ticket.requested += "x"
	case 4:
		ticket.suspend = !ticket.suspend
		ticket.generation++
	case 5:
		ticket.adopt = []string{"", "b-1", "b-2", "b-3", "b-99"}[c.rng.IntN(5)]
	case 6, 7:
		c.say(c.rng.IntN(4) == 0)
	case 8:
		ticket.retained = []string{"", "b-1", "b-3"}[c.rng.IntN(3)]
	case 9, 10:
		c.staff()
	case 11:
		c.holder = []string{"", "other"}[c.rng.IntN(2)]
	case 12:
		kinds := []lifecycle.VerdictKind{lifecycle.VerdictAllowed, lifecycle.VerdictRefused, lifecycle.VerdictError}
		c.verdict = lifecycle.Verdict{Kind: kinds[c.rng.IntN(3)], Messages: []string{"policy x: no"}}
	case 13:
		if c.down = ""; !c.lost && c.rng.IntN(2) == 0 {
			c.down = "the credential is refused"
		}
	case 14:
		c.skew = time.Duration(c.rng.IntN(1800)-900) * time.Second
	case 15:
		c.declares = c.api.keys && !c.declares
	case 16:
		c.lose()
	case 17:
		c.ceiling = []money.Amount{{}, euros(1), {Minor: 1 << 40, Currency: "USD"}}[c.rng.IntN(3)]
	case 18:
		c.problem = []string{"", "spec.from: no place is called Lundon"}[c.rng.IntN(2)]
		ticket.generation++
	case 19:
		c.missing = !c.lost && c.rng.IntN(2) == 0
	case 20:
		c.identity.Account = []string{"acct-7", "acct-8"}[c.rng.IntN(2)]
	case 21, 22, 23:
		c.recount()
	default:
		return
	}
	ticket.version++
}

// recount changes how much room the ticket's quota has, and what it can tell.
func (c *crowd) recount() {
	c.quota = modelQuota{
		limit: int32(c.rng.IntN(12)), others: int32(c.rng.IntN(4)), offers: c.rng.IntN(3) == 0,
		counting: c.rng.IntN(8) == 0, broken: c.rng.IntN(8) == 0, staying: c.rng.IntN(3) == 0,
	}
	c.note("the quota is %+v", c.quota)
}

// lose is a backup that was taken before the ticket's status.
func (c *crowd) lose() {
	held := c.ticket.status.Booking
	if c.lookup && !c.missing && c.down == "" && c.ticket.status.Operation == nil && c.api.quiet() && (held == nil || held.AdoptedBy == "") {
		c.note("the status is lost")
		c.lost = true
		c.ticket.status = flightsv1.FlightTicketStatus{ObservedGeneration: -1}
	}
}

// staff cancels or changes the ticket's booking at the provider.
func (c *crowd) staff() {
	for _, b := range c.api.bookings {
		now := b.truth()
		if held := c.ticket.status.Booking; held == nil || now.ID != held.ID || now.Status != booking.StatusConfirmed {
			continue
		}
		if now.Order.Seats = int32(1 + c.rng.IntN(5)); c.rng.IntN(3) == 0 {
			now.Status = booking.StatusCancelled
		}
		c.meddled = true
		c.note("the staff makes booking %s %s for %d", now.ID, now.Status, now.Order.Seats)
		c.api.show(b, now)
	}
}

// say resolves the open operation: truthfully once its outcome can be known, and else as a guess.
func (c *crowd) say(guess bool) {
	op := c.ticket.status.Operation
	if op == nil {
		return
	}
	known := c.clock.After(op.SettlesAt.Time) && c.api.quiet()
	if !known && !guess {
		return
	}
	word := op.ID + " not-done"
	if made := slices.IndexFunc(c.api.bookings, func(b *modelBooking) bool {
		return b.truth().Names.ClientReference == op.ClientReference
	}); op.Kind == flightsv1.OperationBook && made >= 0 {
		word = op.ID + " done " + c.api.bookings[made].truth().ID
	} else if op.Kind != flightsv1.OperationBook && c.rng.IntN(2) == 0 {
		word = op.ID + " done"
	}
	if !known {
		c.guessed = true
	}
	c.note("somebody says %q", word)
	c.ticket.resolve = word
	c.ticket.version++
}

// calmDown ends the faults and has a person do what messages ask for.
func (c *crowd) calmDown() {
	c.api.faults, c.crashes, c.skew, c.down, c.holder = false, false, 0, "", ""
	c.verdict = lifecycle.Verdict{Kind: lifecycle.VerdictAllowed}
	c.problem, c.missing, c.ceiling, c.quota = "", false, money.Amount{}, modelQuota{limit: 100}
	c.ticket.generation++
	if c.ticket.suspend {
		c.ticket.suspend = false
		c.ticket.generation++
	}
	for range 8 {
		c.ownAccount()
		c.ticket.requested += "again"
		c.ticket.version++
		c.run(60)
		c.clock = c.clock.Add(time.Hour)
		c.say(false)
		switch c.reason() {
		case flightsv1.ReasonAdoptionRefused:
			c.ticket.adopt = ""
		case flightsv1.ReasonAdoptionRequired:
			c.ticket.adopt = "b-3"
		}
	}
}

// ownAccount puts the credential back that the ticket's operation or booking belongs to.
func (c *crowd) ownAccount() {
	switch s := c.ticket.status; {
	case s.Operation != nil:
		c.identity = s.Operation.Provider
	case s.Booking != nil:
		c.identity = s.Booking.Provider
	}
}

func (c *crowd) reason() string {
	if ready := meta.FindStatusCondition(c.ticket.status.Conditions, flightsv1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// judge looks at how it all ended.
func (c *crowd) judge() {
	own := c.own()
	kept := slices.ContainsFunc(own, func(b booking.Booking) bool { return b.ID == c.ticket.retained })
	held := c.ticket.status.Booking
	switch {
	case c.Failed(), c.guessed:
	case c.ticket.gone() && len(own) > 0 && !kept:
		c.fail("the ticket is gone and left %v behind", own)
	case c.ticket.gone():
	case c.ticket.deleting:
		c.fail("the ticket does not go: %s", c.reason())
	case c.meddled && c.reason() == flightsv1.ReasonDrifted:
	case c.reason() != flightsv1.ReasonBooked || held == nil || len(own) != 1 || own[0].ID != held.ID:
		c.fail("the ticket is not booked: %s, live %v", c.reason(), own)
	case !equality.Semantic.DeepEqual(own[0].Order, c.ticket.wanted):
		c.fail("booked %+v, wanted %+v", own[0].Order, c.ticket.wanted)
	}
}
