package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// retainOptions are those of `kubectl flights retain`.
type retainOptions struct {
	writing
	tickets []string
}

func newRetain(streams genericiooptions.IOStreams) *cobra.Command {
	o := &retainOptions{writing: newWriting(streams, "retains its booking")}
	c := &cobra.Command{
		Use:   "retain TICKET...",
		Short: "Leave the booking of a ticket with the provider when the ticket goes",
		Long: `Leave the booking that a ticket has now with the provider when the ticket goes, instead of having it cancelled.

It works on a ticket that is being deleted too, whose spec.deletionPolicy can't be changed any more: a ticket that waits for
a cancellation which the provider refuses goes at once. Afterwards the booking is nobody's here: whoever wants it cancelled
must ask the provider. An operation that is open is resolved first. It takes the RBAC verb retain on the ticket.`,
		Example: `  # a ticket that can't be deleted, because the provider refuses to cancel
  kubectl flights retain my-flight-ticket

  # several at a time
  kubectl flights retain outbound inbound`,
		Args:              some,
		ValidArgsFunction: o.access.complete(0),
		RunE: func(c *cobra.Command, args []string) error {
			o.tickets = args
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	return o.addFlags(c)
}

// run goes on after a ticket that is refused.
func (o *retainOptions) run(ctx context.Context) error {
	t, err := o.access.open()
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range o.tickets {
		after, err := t.decide(ctx, name, retention, dryRun(o.dryRun))
		if err != nil {
			failed = append(failed, fmt.Errorf("retain the booking of %s: %w", name, err))
			continue
		}
		if err := o.print(after); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// retention names the booking that a ticket has.
func retention(ticket *flightsv1.FlightTicket) (map[string]string, error) {
	booking := ticket.Status.Booking
	if booking == nil || booking.CancelledAt != nil {
		return nil, errors.New("it has no booking that could stay with the provider")
	}
	return map[string]string{flightsv1.RetainBookingAnnotation: booking.ID}, nil
}
