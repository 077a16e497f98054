package crash

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/internal/instruction"
)

// mode is what a provider offers for finding out what became of a call.
type mode struct {
	name         string
	keys, lookup bool
}

func modes() []mode {
	return []mode{
		{"keys-and-lookup", true, true},
		{"keys-only", true, false},
		{"lookup-only", false, true},
		{"neither", false, false},
	}
}

func (m mode) settings() simulator.Settings {
	s := simulator.Settings{NoLookup: !m.lookup}
	if m.keys {
		s.IdempotencyKeyTTL = metav1.Duration{Duration: time.Hour}
	}
	return s
}

// blind says that nothing but a person can find out about a booking call without an answer.
func (m mode) blind() bool { return !m.keys && !m.lookup }

// The ways in which a run can go wrong.
const (
	duplicate = "duplicate" // two bookings for one ticket
	orphan    = "orphan"    // a live booking without its ticket
	lost      = "lost"      // a ticket that wants a booking, and has none though it says so
	stuck     = "stuck"     // nothing changes any more, and the ticket is not as wanted
	broken    = "broken"    // the run itself failed
)

// quiet is how long nothing may change before a run counts as stuck: the longest time in which an operation may be sent, in
// which it may take effect, and between two looks at it, with as much again for a busy machine.
const quiet = 4 * time.Minute

// job is one run: a tale, told to a provider of a mode, with what happens meanwhile.
type job struct {
	tale   tale
	mode   mode
	points []point
	// again says that it missed its points once: what is done when two things happen at a time is not always the same.
	again bool
	// watchDelay is how far the controller's caches lag.
	watchDelay time.Duration
	// person says that somebody looks into the provider's books and decides what nothing else can find out. Without, the
	// run ends there.
	person bool
}

const (
	undisturbed = "undisturbed"
	then        = "-then-"
	slowWatches = "-with-slow-watches"
	watchDelay  = 5 * time.Second
)

// String is the name of the run's test, by which it is repeated.
func (j job) String() string {
	what := undisturbed
	if len(j.points) > 0 {
		var points []string
		for _, p := range j.points {
			points = append(points, p.String())
		}
		what = strings.Join(points, then)
	}
	name := j.mode.name + "/" + j.tale.name + "/" + what
	if j.watchDelay > 0 {
		name += slowWatches
	}
	return name
}

// slow says whether the run has to wait until an operation can't be sent any more: since nothing else proves that it was not
// carried out, or because the word of a person is heeded only then.
func (j job) slow() bool {
	return slices.ContainsFunc(j.points, func(p point) bool {
		return !j.mode.keys && (p.unproven && j.mode.lookup || (p.unproven || p.name == "Book") && j.mode.blind() && j.person)
	})
}

// run is a job that is being done.
type run struct {
	*place
	job
	script *script
	ticket *follower
	seat   *seat
	// said are the operations that a person has decided about.
	said map[string]bool

	mu sync.Mutex
	verdict
}

// verdict is what came of a run.
type verdict struct {
	faults  map[string]int
	unknown bool // it rests with an outcome that only a person can find out
	missed  bool // a point was not reached
	kills   int
	lives   [][]entry
	took    time.Duration
}

// do does a job, and judges it. It begins in a seat, which may be nil.
func (j job) do(t *testing.T, at *seat) verdict {
	began := time.Now()
	r := &run{job: j, seat: at, script: newScript(j.points...), said: map[string]bool{}, verdict: verdict{faults: map[string]int{}}}
	r.place = newPlace(t, circumstances{
		settings: j.mode.settings(), at: r.script.at, watchDelay: j.watchDelay, patience: 15 * time.Minute,
	})
	t.Cleanup(r.script.close) // before the proxies close, which wait for what it holds
	t.Cleanup(r.tell)
	r.ticket = follow(r.Context, r.Client, client.ObjectKeyFromObject(r.Ticket(ticketName)))
	if j.tale.arrange != nil {
		j.tale.arrange(r)
	}
	r.turn(creating)
	r.start()
	leave := r.watchOver()
	defer leave()
	j.tale.play(r)
	r.settle()
	leave()
	r.kill()
	r.judge()
	r.took = time.Since(began)
	return r.verdict
}

// turn begins a chapter.
func (r *run) turn(chapter string) { r.script.turn(chapter) }

// watchOver revives the controller until leave is called.
func (r *run) watchOver() (leave func()) {
	over := make(chan struct{})
	var reviving sync.WaitGroup
	reviving.Go(func() { r.revive(over) })
	return sync.OnceFunc(func() {
		close(over)
		reviving.Wait()
	})
}

// revive buries each controller that has met its end, and starts another.
func (r *run) revive(over <-chan struct{}) {
	for {
		var struck int
		select {
		case struck = <-r.script.struck:
		case <-over:
			return
		}
		r.mu.Lock()
		r.kills++
		r.mu.Unlock()
		if err := r.side.Kill(); err != nil {
			r.fail(broken, "%v", err)
		}
		r.cluster.Renumber()
		r.airline.Renumber()
		r.script.buried(struck)
		if err := r.side.Start(r.Context); err != nil {
			r.fail(broken, "%v", err)
		}
	}
}

// until waits for the ticket to become as wanted. False: the run has come to rest otherwise.
func (r *run) until(what string, wanted func(*flightsv1.FlightTicket) bool) bool {
	r.Helper()
	return r.await(what, func(ticket *flightsv1.FlightTicket, gone bool) bool {
		return ticket != nil && !gone && wanted(ticket)
	})
}

// gone waits for the ticket to be gone.
func (r *run) gone() bool {
	r.Helper()
	return r.await("gone", func(_ *flightsv1.FlightTicket, gone bool) bool { return gone })
}

func (r *run) await(what string, holds func(ticket *flightsv1.FlightTicket, gone bool) bool) bool {
	r.Helper()
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		committed, blow := r.Simulator.Changed(), r.script.news()
		ticket, gone, changed := r.ticket.look()
		switch {
		case holds(ticket, gone):
			return true
		case r.mode.blind() && ticket != nil && !gone && helpless(ticket):
			r.unknown = true
			if !r.person {
				return false
			}
			r.decide(ticket)
		}
		if r.onlyWaits(ticket) {
			r.seat.leave()
		} else {
			r.seat.take()
		}
		select {
		case <-changed:
			timer.Reset(quiet)
		case <-blow:
			timer.Reset(quiet)
		case <-committed: // calls too, which a stuck ticket may go on with
		case <-timer.C:
			r.fail(stuck, "nothing has changed for %s, and the ticket is not %s", quiet, what)
			return false
		case <-r.Context.Done():
			r.fail(stuck, "the ticket did not come to be %s", what)
			return false
		}
	}
}

// onlyWaits says whether nothing can go on for a while, since an operation can still be sent or take effect.
func (r *run) onlyWaits(ticket *flightsv1.FlightTicket) bool {
	if ticket == nil || ticket.Status.Operation == nil || r.mode.keys {
		return false
	}
	op := ticket.Status.Operation
	return op.Outcome == string(unknownOutcome) && op.SettlesAt != nil && time.Until(op.SettlesAt.Time) > longWait
}

// helpless says whether a ticket waits for a person to say what became of its operation.
func helpless(t *flightsv1.FlightTicket) bool {
	return reasonOf(t) == flightsv1.ReasonOutcomeUnknown &&
		meta.IsStatusConditionTrue(t.Status.Conditions, flightsv1.ConditionStalled)
}

// decide says of an operation what the provider's books say, once. It is heeded when the operation can't take effect any
// more.
func (r *run) decide(ticket *flightsv1.FlightTicket) {
	r.Helper()
	op := ticket.Status.Operation
	if r.said[op.ID] {
		return
	}
	r.said[op.ID] = true
	r.settle()
	word := instruction.Resolution{Operation: op.ID}
	for _, b := range r.Simulator.LiveBookings() {
		if b.ClientReference == op.ClientReference {
			word.Done, word.Booking = true, b.Id
		}
	}
	r.edit(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, flightsv1.ResolveOperationAnnotation, word))
}

// settle waits until nothing is on its way any more.
func (r *run) settle() {
	r.Helper()
	if err := r.cluster.Settle(r.Context); err != nil {
		r.fail(broken, "%v", err)
	}
	if err := r.airline.Settle(r.Context); err != nil {
		r.fail(broken, "%v", err)
	}
}

// judge looks at the end of a run.
func (r *run) judge() {
	r.Helper()
	for _, breach := range r.Simulator.Violations() {
		r.fail(duplicate, "the ledger was violated: %+v", breach)
	}
	live := r.Simulator.LiveBookings()
	_, gone, _ := r.ticket.look()
	if gone && len(live) > 0 {
		r.fail(orphan, "the ticket is gone, and live are %+v", live)
	}
	if missed := r.script.missed(); len(missed) > 0 && (r.person || !r.unknown) {
		r.missed = true
	}
	for number := range r.kills + 1 {
		r.lives = append(r.lives, r.script.done(number))
	}
	if r.unknown && !r.person || len(r.faults) > 0 {
		return
	}
	if ends := r.ends(); !slices.ContainsFunc(r.tale.histories, func(h []string) bool { return slices.Equal(h, ends) }) {
		r.fail(r.kindOf(ends), "what happened to bookings is %q, want one of %q", ends, r.tale.histories)
	}
}

// ends lists what happened to the bookings, in the order in which they were made.
func (r *run) ends() []string {
	var causes []string
	for _, record := range r.Simulator.Ledger() {
		for _, commit := range record.History {
			causes = append(causes, commit.Cause)
		}
	}
	return causes
}

// kindOf names what is wrong with a ledger that has not the history that it should have.
func (r *run) kindOf(ends []string) string {
	books := 0
	for _, cause := range ends {
		if cause == "Book" {
			books++
		}
	}
	if books > 1 {
		return duplicate
	}
	return lost
}

// fail notes what is wrong. It may be called on any goroutine.
func (r *run) fail(kind, format string, args ...any) {
	r.Helper()
	r.mu.Lock()
	r.faults[kind]++
	r.mu.Unlock()
	r.Errorf(kind+": "+format, args...)
}

// tell shows all there is to know of a run that failed.
func (r *run) tell() {
	if !r.Failed() {
		return
	}
	r.Logf("to repeat this run alone: make crash RUN='%s'", r.job)
	for _, record := range r.Simulator.Ledger() {
		for _, c := range record.History {
			r.Logf("ledger: %s %-7s %s %s %d seats as %s for %s", c.At.Format(clock), c.Cause, c.Booking.Id, c.Booking.Status,
				c.Booking.Order.Seats, c.Booking.ClientReference, c.Booking.Owner)
		}
	}
	for number, entries := range r.lives {
		for _, e := range entries {
			r.Logf("life %d: %s %s %d (%s)", number, e.at.Format(clock), e.Name, e.Ordinal, e.chapter)
		}
	}
	if ticket, gone, _ := r.ticket.look(); ticket != nil {
		text, err := yaml.Marshal(ticket)
		r.Logf("the ticket (gone: %t) was last %v\n%s", gone, err, text)
	}
}

// clock shows times in a failed run.
const clock = "15:04:05.000"
