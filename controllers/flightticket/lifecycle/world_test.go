package lifecycle_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
)

// stored is a ticket as the API server holds it.
type stored struct {
	version             int
	generation          int64
	wanted              flightsv1.Order
	deleting, finalizer bool
	suspend, retain     bool
	requested           string
	adopt, resolve      string
	retained            string
	status              flightsv1.FlightTicketStatus
}

func (s stored) gone() bool { return s.deleting && !s.finalizer }

// process is a controller. There should be one, and there may be two: no election is free of overlaps.
type process struct {
	cached stored // what it sees at the start of a pass
	fresh  string // its memory; a crash clears it
	known  map[string]time.Time
	skew   time.Duration // of its wall clock
	looked time.Time
	waits  lifecycle.Waits
	kept   heardAt // by a pass that waits for a quota
}

// world is an API server with one ticket, a provider, a clock and a process that carries steps out and may die.
type world struct {
	clock    time.Time
	names    lifecycle.Names
	ticket   stored
	*process // the one that works now
	other    *process
	api      *modelProvider
	lookup   bool
	declares bool // the admin declares that the provider takes keys
	choose   chooser
	crashes  bool
	within   bool // a pass of the second controller runs within one of the first
	ids      int
	verdict  lifecycle.Verdict
	down     string
	problem  string // with the spec's places
	missing  bool   // the BookingProvider is
	ceiling  money.Amount
	holder   string // another ticket that holds what is to be adopted
	quota    modelQuota
	beyond   []string // what was done that the quota forbids
	resting  bool     // the last pass found nothing to do
	watcher  func(from, to flightsv1.FlightTicketStatus, step lifecycle.Step)
	identity flightsv1.ProviderIdentity
	log      []string
	check    func()
	limit    int
}

var errCrash = errors.New("the process died")

func newWorld(choose chooser) *world {
	w := &world{
		clock: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), choose: choose, lookup: true, limit: 25,
		names:    lifecycle.Names{Installation: "prod", Namespace: "team-a", Name: "my-flight-ticket", UID: "uid-1"},
		identity: flightsv1.ProviderIdentity{Name: "simulator", UID: "provider-1", Account: "acct-7"},
		verdict:  lifecycle.Verdict{Kind: lifecycle.VerdictAllowed},
		check:    func() {},
		watcher:  func(_, _ flightsv1.FlightTicketStatus, _ lifecycle.Step) {},
		quota:    modelQuota{limit: 100},
		process:  &process{known: map[string]time.Time{}}, other: &process{known: map[string]time.Time{}},
	}
	w.api = &modelProvider{
		now: func() time.Time { return w.clock }, choose: choose, answers: map[string]answer{}, cancelling: func() {},
		broken:  map[string]*booking.CallError{},
		timeout: 30 * time.Second, readLag: 20 * time.Second, process: 2 * time.Minute, offers: 30 * time.Minute,
	}
	w.ticket = stored{
		generation: 1, wanted: flightsv1.Order{Origin: "BOM", Destination: "LON", Seats: 2},
		status: flightsv1.FlightTicketStatus{ObservedGeneration: -1},
	}
	w.cached, w.other.cached = w.ticket, w.ticket
	return w
}

func (w *world) observe(t stored) lifecycle.Observation {
	w.ids++
	wanted := t.wanted
	o := lifecycle.Observation{
		Now: w.now(), NewID: fmt.Sprintf("op-%d", w.ids), Recheck: pollInterval, PoliciesLoaded: true, Waits: w.waits,
		LookIn: w.lookIn(),
		Ticket: lifecycle.Ticket{
			Names: w.names, Generation: t.generation, Deleting: t.deleting, Finalizer: t.finalizer, Suspend: t.suspend,
			Wanted: &wanted, ReconcileRequestedAt: t.requested, Retain: t.retain, Adopt: t.adopt, Resolve: t.resolve,
			Retained: t.retained, DecidedBy: "olga", Status: *t.status.DeepCopy(),
		},
		Provider: lifecycle.Provider{
			Found: true, Name: w.identity.Name, Ready: w.down == "", Trouble: w.down, Identity: w.identity, Generation: 1,
			CredentialsRotatedAt: &metav1.Time{Time: w.clock.Truncate(24 * time.Hour)}, Lookup: w.lookup,
			Timeout: w.api.timeout, ReadLag: w.api.readLag, MaxProcessing: w.api.process,
		},
	}
	if w.declares {
		o.Provider.KeyTTL = keyTTL
	}
	if w.missing {
		o.Provider = lifecycle.Provider{Name: w.identity.Name}
	}
	if o.Ticket.Ceiling = w.ceiling; w.problem != "" {
		o.Ticket.Wanted, o.Ticket.Problem = nil, w.problem
	}
	o.Fresh = t.status.Operation != nil && t.status.Operation.ID == w.fresh
	o.KnownFor = w.knownFor(o)
	return o
}

// pollInterval is that of the model.
const pollInterval = 10 * time.Minute

// lookIn is how long it is until the process reads the booking again.
func (w *world) lookIn() time.Duration {
	if w.looked.IsZero() {
		w.looked = w.clock.Add(-pollInterval / 2)
	}
	return w.looked.Add(pollInterval).Sub(w.clock)
}

// now is what the process's wall clock shows.
func (w *world) now() time.Time { return w.clock.Add(w.skew) }

// knownFor is how long the process has known the open operation.
func (w *world) knownFor(o lifecycle.Observation) time.Duration {
	id := lifecycle.Known(o.Ticket.Status)
	if _, seen := w.known[id]; !seen {
		w.known[id] = w.clock
	}
	return w.clock.Sub(w.known[id])
}

// pass runs one pass, and says how long the ticket rests.
func (w *world) pass() time.Duration {
	seen := w.ticket
	if w.crashes && w.choose("is the cache stale", 4) == 1 {
		seen = w.cached
	}
	if seen.status.Operation != nil {
		// The controller reads a ticket with an open operation live: an operation that is closed must not be sent again.
		seen = w.ticket
	}
	w.cached = w.ticket
	o, at := w.observe(seen), seen.version
	w.goOn(&o, at)
	for range w.limit {
		step := lifecycle.Next(o)
		rest, over, err := w.act(&o, &at, step)
		w.check()
		w.waits = w.waits.After(step, w.clock)
		o.Waits = w.waits
		if err != nil {
			w.restart("  the process dies")
			return time.Second
		}
		if over {
			w.keep(step, o, at)
			w.resting = step.Action == lifecycle.Nothing || step.Action == lifecycle.Wait && step.Cause == lifecycle.CauseLook
			return rest
		}
		o.Now, o.KnownFor, o.LookIn = w.now(), w.knownFor(o), w.lookIn()
	}
	return 5 * time.Second
}

// beside lets a second controller make a pass in the middle of one of the first.
func (w *world) beside() {
	if w.within || !w.crashes || w.choose("does a second controller work here", 15) != 1 {
		return
	}
	w.note("  a second controller works")
	w.within, w.process, w.other = true, w.other, w.process
	w.pass()
	w.within, w.process, w.other = false, w.other, w.process
	w.note("  the first goes on")
}

// restart loses what the process knew.
func (w *world) restart(words string) {
	w.note("%s", words)
	w.kept = heardAt{}
	w.fresh, w.known, w.looked, w.waits = "", map[string]time.Time{}, time.Time{}, nil
}

// dies lets the process die at this point.
func (w *world) dies() bool { return w.crashes && w.choose("does the process die here", 12) == 1 }

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// act carries out one step as the controller does.
func (w *world) act(o *lifecycle.Observation, at *int, step lifecycle.Step) (time.Duration, bool, error) {
	if w.dies() {
		return 0, true, errCrash
	}
	w.beside()
	w.noteStep(step)
	rest, over := w.carryOut(o, at, step)
	if w.dies() {
		return 0, true, errCrash
	}
	return rest, over, nil
}

func (w *world) carryOut(o *lifecycle.Observation, at *int, step lifecycle.Step) (time.Duration, bool) {
	switch step.Action {
	case lifecycle.LookupOwner, lifecycle.Find, lifecycle.ReadBooking, lifecycle.Quote, lifecycle.Gate,
		lifecycle.Admit, lifecycle.CheckHolders:
		w.ask(o, step)
	case lifecycle.CheckQuotas, lifecycle.HoldQuotas, lifecycle.Depart:
		w.askQuotas(o, step)
	case lifecycle.Send:
		w.send(o)
	case lifecycle.AddFinalizer, lifecycle.RemoveFinalizer:
		ok := *at == w.ticket.version
		if ok {
			w.mayGo(o, step)
			w.ticket.finalizer = step.Action == lifecycle.AddFinalizer
			w.ticket.version++
			if !w.ticket.finalizer {
				w.watcher(w.ticket.status, flightsv1.FlightTicketStatus{}, step)
				w.noteEvent(step)
			}
			*at = w.ticket.version
			o.Ticket.Finalizer = w.ticket.finalizer
		}
		return time.Second, !ok || !w.ticket.finalizer
	case lifecycle.StartOperation, lifecycle.Record, lifecycle.CloseOperation:
		if !w.write(o, at, step) {
			return time.Second, true
		}
		w.mayCost(step)
		w.fresh = ""
		if step.Action == lifecycle.StartOperation {
			w.fresh = o.Ticket.Status.Operation.ID
		} else {
			w.known, w.looked = map[string]time.Time{}, w.clock
		}
		o.Fresh = step.Action == lifecycle.StartOperation
		o.Heard = lifecycle.Heard{}
		return max(step.After, time.Second), step.Action == lifecycle.CloseOperation
	case lifecycle.Wait:
		w.write(o, at, step)
		return max(step.After, time.Second), true
	case lifecycle.Nothing:
		w.write(o, at, step)
		return time.Hour, true
	}
	return 0, false
}

func (w *world) ask(o *lifecycle.Observation, step lifecycle.Step) {
	switch step.Action {
	case lifecycle.LookupOwner:
		all, err := w.api.list(func(n booking.Names) bool { return n.Owner == step.Reference })
		o.Heard.Owner = &lifecycle.Listing{AskedAt: w.now(), KnownFor: o.KnownFor, Bookings: all, Err: err}
	case lifecycle.Find:
		all, err := w.api.list(func(n booking.Names) bool { return n.ClientReference == step.Reference })
		o.Heard.Found = &lifecycle.Listing{AskedAt: w.now(), KnownFor: o.KnownFor, Bookings: all, Err: err}
	case lifecycle.ReadBooking:
		b, err := w.api.get(step.Reference)
		if was := o.Ticket.Status.Booking; was != nil && was.ID == step.Reference && (err == nil || err.Class == booking.ClassNotFound) {
			w.looked = w.clock
		}
		o.Heard.Read = &lifecycle.Reading{AskedAt: w.now(), KnownFor: o.KnownFor, Booking: b, Err: err}
	case lifecycle.Quote:
		offer, err := w.api.quote()
		o.Heard.Offer = &lifecycle.Quotation{AskedAt: w.now(), Offer: offer, Err: err}
	case lifecycle.CheckHolders:
		o.Heard.Holder = &lifecycle.Holder{Ticket: w.holder}
	case lifecycle.Admit:
		o.Heard.Room = &lifecycle.Admission{Err: w.api.room()}
	default:
		o.Heard.Verdict = w.verdict
	}
}

func (w *world) send(o *lifecycle.Observation) {
	op := *o.Ticket.Status.Operation.DeepCopy()
	fresh := w.fresh
	w.fresh = ""
	if w.crashes && w.choose("is the process frozen before it sends", 8) == 1 {
		w.clock = w.clock.Add(50 * time.Second)
	}
	out := rejected(booking.ClassUnavailable, "too_late")
	if lifecycle.Sendable(op, w.now(), w.knownFor(*o)) {
		out = w.api.send(op)
	}
	w.note("    the provider answers %s%s", out.Kind, because(out))
	if out.Kind == booking.Rejected {
		w.fresh = fresh
	} else {
		o.Fresh = false
	}
	o.Heard.Sent = &out
}

func because(out booking.Outcome) string {
	if out.Failure == nil {
		return ""
	}
	return " (" + out.Failure.Code + ")"
}

// write stores a status under its version. An outcome that was just heard is written again on a newer version, as long
// as the operation is still the same.
func (w *world) write(o *lifecycle.Observation, at *int, step lifecycle.Step) bool {
	if *at != w.ticket.version {
		sent := o.Ticket.Status.Operation
		now := w.ticket.status.Operation
		if o.Heard.Sent == nil || sent == nil || now == nil || sent.ID != now.ID {
			return false
		}
		again := w.observe(w.ticket)
		again.Heard, again.Fresh = o.Heard, o.Fresh
		*o, *at = again, w.ticket.version
		step = lifecycle.Next(*o)
		if step.Action == lifecycle.ReadBooking {
			return false
		}
	}
	w.watcher(w.ticket.status, step.Status, step)
	w.ticket.status = *step.Status.DeepCopy()
	w.ticket.version++
	*at, o.Ticket.Status = w.ticket.version, *step.Status.DeepCopy()
	w.noteEvent(step)
	return true
}

func (w *world) noteEvent(step lifecycle.Step) {
	if step.Event != nil {
		w.note("    event %s: %s", step.Event.Reason, step.Event.Message)
	}
}

func (w *world) noteStep(step lifecycle.Step) {
	detail := step.Reference
	switch step.Action {
	case lifecycle.Wait:
		detail = step.After.String()
	case lifecycle.StartOperation:
		op := step.Status.Operation
		detail = fmt.Sprintf("%s %s as %s until %s", op.Kind, op.ID, op.ClientReference, op.SendBy.Format("15:04:05"))
	case lifecycle.Gate:
		detail = string(step.Operation)
	}
	w.note("  %s %-15s %s", w.clock.Format("15:04:05"), step.Action, detail)
}

// run lets time go by and passes happen until the ticket rests or so many passes were made.
func (w *world) run(passes int) {
	for range passes {
		if w.ticket.gone() {
			return
		}
		rest := w.pass()
		if w.resting {
			return
		}
		w.clock = w.clock.Add(rest)
	}
}
