package scene

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// Follower sees every version of the tickets of a scene, and counts what their statuses cost.
type Follower struct {
	mu       sync.Mutex
	last     map[types.UID]*flightsv1.FlightTicket
	versions map[string]bool
	changed  chan struct{}

	writes, transitions int
	reworded, idle      []string
}

// Follow watches the tickets of the scene until its context ends.
func (s *Scene) Follow() *Follower {
	s.Helper()
	f := &Follower{
		last: map[types.UID]*flightsv1.FlightTicket{}, versions: map[string]bool{}, changed: make(chan struct{}),
	}
	list := &flightsv1.FlightTicketList{}
	if err := s.Client.List(s.Context, list, client.InNamespace(s.Namespace)); err != nil {
		s.Fatal(err)
	}
	for i := range list.Items {
		f.see(&list.Items[i])
	}
	events, err := s.watchTickets(list.ResourceVersion)
	if err != nil {
		s.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.run(s, list.ResourceVersion, events)
	}()
	s.Cleanup(func() { <-done })
	return f
}

func (s *Scene) watchTickets(after string) (watch.Interface, error) {
	return s.Client.Watch(s.Context, &flightsv1.FlightTicketList{}, &client.ListOptions{
		Namespace: s.Namespace, Raw: &metav1.ListOptions{ResourceVersion: after, AllowWatchBookmarks: true},
	})
}

// run takes up the watch where it ended, which the API server does now and then.
func (f *Follower) run(s *Scene, version string, events watch.Interface) {
	for {
		for event := range events.ResultChan() {
			ticket, ok := event.Object.(*flightsv1.FlightTicket)
			if !ok {
				continue
			}
			version = ticket.ResourceVersion
			switch event.Type {
			case watch.Bookmark:
			case watch.Deleted:
				f.drop(ticket)
			default:
				f.see(ticket)
			}
		}
		events.Stop()
		if s.Context.Err() != nil {
			return
		}
		var err error
		if events, err = s.watchTickets(version); err != nil {
			if s.Context.Err() == nil {
				s.Errorf("follow the tickets: %v", err)
			}
			return
		}
	}
}

// see compares a version with the one before it.
func (f *Follower) see(is *flightsv1.FlightTicket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.last[is.UID]
	f.last[is.UID] = is
	f.versions[is.ResourceVersion] = true
	f.notify()
	switch {
	case was == nil || equality.Semantic.DeepEqual(was.Status, is.Status):
		return
	case meaning(was) == meaning(is):
		f.reworded = append(f.reworded, fmt.Sprintf("%s: %s, then %s", is.Name, words(was), words(is)))
		if messages(was) == messages(is) {
			f.idle = append(f.idle, is.Name+": "+words(is))
		}
	default:
		f.transitions++
	}
	f.writes++
}

// drop forgets a ticket that is gone.
func (f *Follower) drop(t *flightsv1.FlightTicket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.last, t.UID)
	f.notify()
}

// notify wakes those who wait. The caller holds mu.
func (f *Follower) notify() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// meaning is what a status says, without its words and times.
func meaning(t *flightsv1.FlightTicket) string {
	s := t.Status
	text := fmt.Sprint(s.State, s.ObservedGeneration, s.Attempts, s.Refusal != nil, s.LastHandledReconcileAt)
	for _, c := range s.Conditions {
		text += fmt.Sprint(" ", c.Type, c.Status, c.Reason, c.ObservedGeneration)
	}
	if op := s.Operation; op != nil {
		text += fmt.Sprint(" ", op.ID, op.Outcome, op.BookingID)
	}
	if b := s.Booking; b != nil {
		text += fmt.Sprint(" ", b.ID, b.Version, b.Order.Seats, b.Order.Cabin, b.CancelledAt != nil)
	}
	return text
}

func words(t *flightsv1.FlightTicket) string {
	for _, c := range t.Status.Conditions {
		if c.Type == flightsv1.ConditionReady {
			return c.Reason + " (" + c.Message + ")"
		}
	}
	return "nothing"
}

// messages are what all conditions say.
func messages(t *flightsv1.FlightTicket) string {
	var text string
	for _, c := range t.Status.Conditions {
		text += c.Message + "\n"
	}
	return text
}

// Counts returns how often statuses were written, and how many of the writes told of something new. The rest put the
// same thing in other words.
func (f *Follower) Counts() (writes, transitions int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes, f.transitions
}

// Reworded returns the writes that told of nothing new.
func (f *Follower) Reworded() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.reworded...)
}

// Idle returns those of Reworded that did not even use other words.
func (f *Follower) Idle() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.idle...)
}

// CatchUp waits until the follower has seen the tickets as they are now.
func (f *Follower) CatchUp(s *Scene) {
	s.Helper()
	list := &flightsv1.FlightTicketList{}
	if err := s.Client.List(s.Context, list, client.InNamespace(s.Namespace)); err != nil {
		s.Fatal(err)
	}
	for i := range list.Items {
		for {
			f.mu.Lock()
			seen, changed := f.versions[list.Items[i].ResourceVersion], f.changed
			f.mu.Unlock()
			if seen {
				break
			}
			select {
			case <-changed:
			case <-s.Context.Done():
				s.Fatalf("the follower did not see version %s of %s", list.Items[i].ResourceVersion, list.Items[i].Name)
			}
		}
	}
}

// Unlike waits until something holds of every ticket of the scene, for so long at the most, and returns those that it
// doesn't hold of then.
func (f *Follower) Unlike(ctx context.Context, patience time.Duration, holds func(*flightsv1.FlightTicket) bool) []*flightsv1.FlightTicket {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		f.mu.Lock()
		changed := f.changed
		var unlike []*flightsv1.FlightTicket
		for _, t := range f.last {
			if !holds(t) {
				unlike = append(unlike, t)
			}
		}
		f.mu.Unlock()
		if len(unlike) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return unlike
		}
	}
}

// Tickets returns those of the scene as they were last seen.
func (f *Follower) Tickets() []*flightsv1.FlightTicket {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.last))
}

// Each waits until something holds of every ticket of the scene, and of so many.
func (f *Follower) Each(s *Scene, count int, what string, holds func(*flightsv1.FlightTicket) bool) {
	s.Helper()
	for {
		f.mu.Lock()
		changed, there, missing := f.changed, 0, (*flightsv1.FlightTicket)(nil)
		for _, t := range f.last {
			if holds(t) {
				there++
			} else {
				missing = t
			}
		}
		f.mu.Unlock()
		if there == count && missing == nil {
			return
		}
		select {
		case <-changed:
		case <-s.Context.Done():
			if missing == nil {
				s.Fatalf("there are %d tickets, want %d", there, count)
			}
			s.Fatalf("%d of %d tickets are %s; %s is\n%s", there, count, what, missing.Name, Describe(missing))
		}
	}
}
