package flightticket

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
)

// checkHolders finds out which other ticket of the namespace holds the booking that was just read. It asks the API server:
// a cache may not show yet what another ticket took over. From here to the end of the pass no other ticket of this process
// takes a booking over.
func (p *pass) checkHolders(ctx context.Context) error {
	if !p.adopting {
		select {
		case p.r.adopting <- struct{}{}:
			p.adopting = true
		case <-ctx.Done():
			return nil // the process is shutting down, and the pass with it
		}
	}
	var all flightsv1.FlightTicketList
	if err := p.r.Live.List(ctx, &all, client.InNamespace(p.ticket.Namespace)); err != nil {
		return fmt.Errorf("list the tickets that may hold booking %s: %w", p.o.Heard.Read.Booking.ID, err)
	}
	p.o.Heard.Holder = &lifecycle.Holder{}
	for i := range all.Items {
		other := &all.Items[i]
		names := lifecycle.Names{
			Installation: p.r.Installation, Namespace: other.Namespace, Name: other.Name, UID: other.UID,
		}
		if other.UID != p.ticket.UID && lifecycle.Holds(other.Status, names, p.o.Provider.Identity, p.o.Heard.Read.Booking) {
			p.o.Heard.Holder.Ticket = other.Name
			break
		}
	}
	return nil
}
