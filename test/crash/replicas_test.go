package crash

import (
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flight-operator/flight-operator/test/apiproxy"
	"github.com/flight-operator/flight-operator/test/installation"
	"github.com/flight-operator/flight-operator/test/scene"
)

// Two controllers with a real lease of 15 s. One test after another, for there is one lease.
func TestReplicas(t *testing.T) {
	t.Parallel()
	t.Run("a standby has filled its caches before it leads", standbyIsWarm)
	long := os.Getenv(sweepVariable) != ""
	for _, m := range modes() {
		if m.blind() || !m.lookup && !long { // keys alone differ in nothing here
			continue
		}
		// Each of them waits for the lease. The short form takes what is quicker: without keys it takes two minutes until
		// another call may be made, and with keys longer until it is than until a booking is found.
		if m.keys || long {
			t.Run("a leader that is frozen before its send does no harm, in the mode "+m.name, m.frozenBeforeItsSend)
		}
		if !m.keys || long {
			t.Run("a leader that is frozen after its send does no harm, in the mode "+m.name, m.frozenAfterItsSend)
		}
	}
}

// pair is a place with two controllers, of which the first leads.
type pair struct {
	*place
	first, second *installation.Side
}

func newPair(t *testing.T, c circumstances) *pair {
	t.Helper()
	p := &pair{place: newPlace(t, c)}
	p.first, p.second = p.another("first"), p.another("second")
	p.startFirst()
	if err := p.second.Start(p.Context); err != nil {
		t.Fatal(err)
	}
	return p
}

// startFirst starts the first controller, and waits until it leads.
func (p *pair) startFirst() {
	p.Helper()
	if err := p.first.Start(p.Context); err != nil {
		p.Fatal(err)
	}
	p.awaitLeader(p.first)
}

// awaitLeader waits until a controller has said that it leads.
func (p *pair) awaitLeader(side *installation.Side) {
	p.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: scene.SystemNamespace, Name: "flight-controller"}}
	scene.Await(p.Scene, lease, "held by the controller", func(*coordinationv1.Lease) bool {
		text, err := os.ReadFile(side.Log())
		if err != nil {
			p.Fatal(err)
		}
		return strings.Contains(string(text), "uccessfully acquired lease")
	})
}

func (p *pair) wait(what <-chan struct{}) {
	p.Helper()
	select {
	case <-what:
	case <-p.Context.Done():
		p.Fatal("waited in vain")
	}
}

// end stops both controllers in the way that gives the lease back.
func (p *pair) end() {
	p.Helper()
	for _, side := range []*installation.Side{p.first, p.second} {
		if err := side.Stop(); err != nil {
			p.Error(err)
		}
	}
}

// A new leader that lists anew would be the slower, the more tickets there are. From the death of the first one on, the
// proxy lets no list and no new watch through of what a booking needs.
func standbyIsWarm(t *testing.T) {
	var shut atomic.Bool
	p := newPair(t, circumstances{
		name: func(r *http.Request) string {
			lists := slices.Contains([]string{"flighttickets", "bookingproviders", "flightpolicies", "namespaces"}, path.Base(r.URL.Path))
			if shut.Load() && lists && r.Method == http.MethodGet {
				return "list or watch"
			}
			return ""
		},
		at: func(e apiproxy.Exchange, _ apiproxy.Phase) apiproxy.Verdict {
			if e.Name == "list or watch" {
				return apiproxy.Cut
			}
			return apiproxy.Pass
		},
	})
	p.Apply(p.TicketManifest("by-the-first"))
	p.Booked("by-the-first", 2)
	shut.Store(true)
	if err := p.first.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Apply(p.TicketManifest("by-the-second"))
	p.Booked("by-the-second", 2)
	p.Live(2)
	p.end()
}

// frozenBeforeItsSend freezes the leader when its operation is written down and before it knows that. Another one leads
// then, and settles the operation. When the first one wakes, it must neither buy again nor write over what is known.
func (m mode) frozenBeforeItsSend(t *testing.T) { m.frozen(t, statusWrite) }

// frozenAfterItsSend freezes the leader when its call has booked and before it knows that.
func (m mode) frozenAfterItsSend(t *testing.T) { m.frozen(t, "Book") }

func (m mode) frozen(t *testing.T, where string) {
	reached, asleep := make(chan struct{}), make(chan struct{})
	var offered atomic.Bool
	var once sync.Once
	p := newPair(t, circumstances{settings: m.settings(), at: func(e apiproxy.Exchange, phase apiproxy.Phase) apiproxy.Verdict {
		if e.Name == "Quote" {
			offered.Store(true) // what is written next is the operation
		}
		if offered.Load() && e.Name == where && phase == apiproxy.Committed {
			once.Do(func() { close(reached); <-asleep })
		}
		return apiproxy.Pass
	}})
	p.Apply(p.TicketManifest("trip"))
	p.wait(reached)
	if err := p.first.Freeze(); err != nil {
		t.Fatal(err)
	}
	close(asleep)
	ticket := p.Booked("trip", 2)
	if err := p.first.Thaw(); err != nil {
		t.Fatal(err)
	}
	p.wait(p.first.Done()) // it has lost the lease, and ends when it finds out
	p.Live(1)
	p.Read(ticket)
	if ticket.Status.Operation != nil || ticket.Status.Booking == nil || ticket.Status.Booking.ID != p.Simulator.LiveBookings()[0].Id {
		t.Errorf("the ticket was changed by a leader that had lost its lease: %+v", ticket.Status)
	}
	if made := p.Simulator.Totals().Made; made != 1 {
		t.Errorf("%d bookings were made, want one", made)
	}
	p.Apply(p.TicketManifest("trip", "number: 3"))
	p.Booked("trip", 3)
	p.Live(1)
	p.end()
}
