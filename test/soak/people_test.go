package soak

import (
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// counts are what people asked for.
type counts struct {
	created, edited, asked, deleted, noted int
	// turned away are writes that came too late or too early: the ticket is being deleted, or not there.
	turnedAway int
}

// wishes are the deeds that ask for another booking than there is.
func (c counts) wishes() int { return c.created + c.edited + c.deleted }

// say tells how the run is, in lines of its own.
func (s *soak) say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func name(i int) string { return fmt.Sprintf("trip-%d", i) }

// create applies a ticket of a number, on one of a few routes.
func (s *soak) create(i int) {
	s.Helper()
	ticket := s.Ticket(name(i))
	ticket.Spec = flightsv1.FlightTicketSpec{
		From: []string{"Mumbai", "Paris", "Tokyo"}[i%3], To: []string{"London", "Berlin"}[i%2], Number: 1 + int32(i%5),
		ProviderRef: &flightsv1.ProviderReference{Name: s.Provider.Name},
	}
	if s.done(s.Client.Create(s.Context, ticket)) {
		s.counts.created++
	}
}

// write does one deed after another: so many that each ticket meets several, and not more than the API server likes.
func (s *soak) write(end time.Time) {
	ticker := time.NewTicker(max(chosen.duration/time.Duration(12*chosen.tickets), 20*time.Millisecond))
	defer ticker.Stop()
	for time.Now().Before(end) && s.Context.Err() == nil {
		s.deed(s.people.IntN(chosen.tickets), s.people.IntN(100), s.people.IntN(5))
		<-ticker.C
	}
}

// deed does something with a ticket. A ticket that isn't there is created.
func (s *soak) deed(i, which, how int) {
	switch {
	case which < 35:
		s.merge(i, &s.counts.edited, `{"spec":{"number":%d}}`, 1+how)
	case which < 45:
		s.merge(i, &s.counts.edited, `{"spec":{"cabin":%q}}`, []string{"Economy", "PremiumEconomy", "Business", "First", "Economy"}[how])
	case which < 52:
		s.merge(i, &s.counts.edited, `{"spec":{"suspend":%t}}`, how == 0)
	case which < 62:
		s.merge(i, &s.counts.asked, `{"metadata":{"annotations":{%q:%q}}}`, flightsv1.ReconcileRequestedAtAnnotation, time.Now().String())
	case which < 75:
		s.merge(i, &s.counts.noted, `{"metadata":{"annotations":{"note":%q}}}`, time.Now().String())
	case which < 90:
		if s.done(s.Client.Delete(s.Context, s.Ticket(name(i)))) {
			s.counts.deleted++
		}
	default:
		s.create(i)
	}
}

func (s *soak) merge(i int, count *int, patch string, args ...any) {
	change := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, patch, args...))
	err := s.Client.Patch(s.Context, s.Ticket(name(i)), change)
	switch {
	case apierrors.IsNotFound(err):
		s.create(i)
	case s.done(err):
		*count++
	}
}

// done says whether a deed was done. One that a ticket's present state forbids is none.
func (s *soak) done(err error) bool {
	switch {
	case err == nil:
		return true
	case apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsForbidden(err),
		apierrors.IsInvalid(err):
		s.counts.turnedAway++
	case s.Context.Err() == nil:
		s.Errorf("write a ticket: %v", err)
	}
	return false
}

// askAgain has a person ask for a new attempt of each ticket, and end its suspension.
func (s *soak) askAgain(tickets []*flightsv1.FlightTicket) {
	for _, t := range tickets {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, flightsv1.ReconcileRequestedAtAnnotation, time.Now().String())
		if s.done(s.Client.Patch(s.Context, s.Ticket(t.Name), client.RawPatch("application/merge-patch+json", patch))) {
			s.counts.asked++
		}
	}
}
