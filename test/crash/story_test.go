package crash

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// story is a place whose controller starts, stops and dies as the test says.
type story struct {
	*place
	// seen is how many calls the booking API had got when the controller was last started.
	seen int
	// releases let the calls go on that are held.
	releases []func()
}

// newStory makes a place in which no controller runs. The test runs beside others.
func newStory(t *testing.T, settings simulator.Settings) *story {
	t.Helper()
	t.Parallel()
	s := &story{place: newPlace(t, circumstances{settings: settings})}
	t.Cleanup(s.settle)
	return s
}

func (s *story) start() {
	s.Helper()
	s.seen = s.Simulator.Count("")
	s.place.start()
}

// hold has calls wait, each before or after its commit, until settle.
func (s *story) hold(effect simulator.Effect, operations ...simulator.Operation) {
	s.Helper()
	s.releases = append(s.releases, s.keep(effect, operations...))
}

// keep is hold until the returned function is called.
func (s *story) keep(effect simulator.Effect, operations ...simulator.Operation) (release func()) {
	s.Helper()
	gate := make(chan struct{})
	for _, operation := range operations {
		s.Inject(simulator.Fault{Operation: operation, Effect: effect, Release: gate})
	}
	return sync.OnceFunc(func() { close(gate) })
}

// spoil breaks the answers of calls.
func (s *story) spoil(effect simulator.Effect, operations ...simulator.Operation) {
	s.Helper()
	for _, operation := range operations {
		s.Inject(simulator.Fault{Operation: operation, Effect: effect})
	}
}

// settle switches all faults off and lets the calls go on that hold waits with.
func (s *story) settle() {
	s.Simulator.ClearFaults()
	for _, release := range s.releases {
		release()
	}
	s.releases = nil
}

// since waits for so many calls, since the controller was last started, of which something holds.
func (s *story) since(what string, count int, holds func(simulator.Call) bool) {
	s.Helper()
	s.AwaitCalls(what, func(calls []simulator.Call) bool {
		found := 0
		for _, call := range calls[s.seen:] {
			if holds(call) {
				found++
			}
		}
		return found >= count
	})
}

// held waits until one of the operations is held.
func (s *story) held(operations ...simulator.Operation) {
	s.Helper()
	s.since("held", 1, func(c simulator.Call) bool { return c.Held && slices.Contains(operations, c.Operation) })
}

// answered waits until so many calls of the operations were answered well.
func (s *story) answered(count int, operations ...simulator.Operation) {
	s.Helper()
	s.since("answered", count, func(c simulator.Call) bool {
		return c.Status >= 200 && c.Status < 300 && slices.Contains(operations, c.Operation)
	})
}

// struck waits until a fault has spoilt an answer.
func (s *story) struck(effect simulator.Effect) {
	s.Helper()
	s.since("struck", 1, func(c simulator.Call) bool { return c.Fault == effect })
}

// unknown waits until the ticket's operation is known to have an unknown outcome.
func (s *story) unknown(name string) {
	s.Helper()
	scene.Await(s.Scene, s.Ticket(name), "of unknown outcome", func(t *flightsv1.FlightTicket) bool {
		return t.Status.Operation != nil && t.Status.Operation.Outcome == string(unknownOutcome)
	})
}

// nothingWritten fails if an operation is written down, or a call to book was sent without one.
func (s *story) nothingWritten() {
	s.Helper()
	ticket := s.Ticket("trip")
	s.Read(ticket)
	if ticket.Status.Operation != nil || ticket.Status.Booking != nil {
		s.Errorf("an operation is written down: %+v", ticket.Status)
	}
	if books := s.Simulator.Count(simulator.OpBook); books != 0 {
		s.Errorf("%d calls to book were sent before the operation was written down", books)
	}
}

// written fails unless the operation is written down and still open.
func (s *story) written() {
	s.Helper()
	ticket := s.Ticket("trip")
	s.Read(ticket)
	if ticket.Status.Operation == nil || ticket.Status.Booking != nil {
		s.Errorf("no operation is open: %+v", ticket.Status)
	}
}

// seats waits until the only live booking has so many.
func (s *story) seats(want int32) {
	s.Helper()
	s.AwaitCalls("a commit", func([]simulator.Call) bool {
		live := s.Simulator.LiveBookings()
		return len(live) == 1 && live[0].Order.Seats == want
	})
}

// neverTwo fails if the ledger was ever violated.
func (s *story) neverTwo() {
	s.Helper()
	s.Live(len(s.Simulator.LiveBookings()))
	if made := s.Simulator.Totals().Made; made > 1 {
		s.Fatalf("%d bookings were made", made)
	}
}

// bookedOnce fails unless one booking was ever made and the provider was asked as its kind allows: once, or always with
// the same key.
func (s *story) bookedOnce(settings simulator.Settings) {
	s.Helper()
	s.Live(1)
	if made := s.Simulator.Totals().Made; made != 1 {
		s.Errorf("%d bookings were made, want one", made)
	}
	keys, books := map[string]bool{}, 0
	for _, call := range s.Simulator.Calls() {
		if call.Operation == simulator.OpBook {
			books++
			keys[call.Key] = true
		}
	}
	switch {
	case len(keys) != 1:
		s.Errorf("the calls to book carry %d keys, want one", len(keys))
	case settings.IdempotencyKeyTTL.Duration == 0 && (books != 1 || !keys[""]):
		s.Errorf("a provider without keys was asked to book %d times, with keys %v", books, keys)
	case settings.IdempotencyKeyTTL.Duration > 0 && keys[""]:
		s.Error("no key was sent to a provider that remembers keys")
	}
}

// refuseStatus has the API server refuse every status of the ticket that holds an operation, or a booking.
func (s *story) refuseStatus(what string) {
	s.Helper()
	s.Patch(s.Ticket("trip"), `{"metadata":{"annotations":{"test/refuse":"`+what+`"}}}`)
	refused := `{"status":{"operation":{"id":"x","kind":"Cancel","attempt":1,"generation":1,"startedAt":"2027-01-01T00:00:00.000000Z",` +
		`"sendBy":"2027-01-01T00:00:00.000000Z","provider":{"name":"x","uid":"x","account":"x"}},"booking":{"id":"x",` +
		`"provider":{"name":"x","uid":"x","account":"x"},"order":{"origin":"BOM","destination":"LON","seats":1}}}}`
	for s.Context.Err() == nil { // the policies of admission are read from a cache, and may know the last annotation
		a := s.Run("", "patch", "ticket", "trip", "--subresource=status", "--type=merge", "--dry-run=server", "-p", refused,
			"--as=system:serviceaccount:flight-operator-system:flight-controller", "--as-group=system:masters")
		if strings.Contains(a.Err, "the test refuses the "+what) {
			return
		}
	}
	s.Fatalf("the API server does not refuse the %s", what)
}

// allowStatus ends refuseStatus.
func (s *story) allowStatus() {
	s.Helper()
	s.Patch(s.Ticket("trip"), `{"metadata":{"annotations":{"test/refuse":null}}}`)
}

// stop sends SIGTERM and returns once the controller has said that it stops. The channel tells how it ended.
func (s *story) stop() <-chan error {
	s.Helper()
	before := s.log()
	ended := make(chan error, 1)
	go func() { ended <- s.side.Stop() }()
	stopping := func(context.Context) (bool, error) {
		return strings.Contains(s.log()[len(before):], "Stopping and waiting for"), nil
	}
	if err := wait.PollUntilContextCancel(s.Context, 20*time.Millisecond, true, stopping); err != nil {
		s.Fatalf("wait for the controller to say that it stops: %v", err)
	}
	return ended
}

func (s *story) log() string {
	s.Helper()
	text, err := os.ReadFile(s.side.Log())
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}
