package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/exit"
)

// adoptOptions are those of `kubectl flights adopt`.
type adoptOptions struct {
	writing
	ticket, booking string
}

func newAdopt(streams genericiooptions.IOStreams) *cobra.Command {
	o := &adoptOptions{writing: newWriting(streams, "adopts")}
	c := &cobra.Command{
		Use:   "adopt TICKET --booking ID",
		Short: "Have a ticket take over a booking that exists",
		Long: `Have a ticket without a booking take over one that exists at its provider, instead of buying.

The booking must have been made for a ticket of the same namespace, and no other ticket may hold it. From then on it is the
ticket's: a change of the spec changes it, and a deletion cancels it. It takes the RBAC verb adopt on the ticket.`,
		Example: `  # the message of AdoptionRequired names the booking
  kubectl get flightticket my-flight-ticket -o wide
  kubectl flights adopt my-flight-ticket --booking bk_7f3a

  # have everything checked, and store nothing
  kubectl flights adopt my-flight-ticket --booking bk_7f3a --dry-run=server`,
		Args:              one,
		ValidArgsFunction: o.access.complete(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.ticket = args[0]
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	c.Flags().StringVar(&o.booking, "booking", "", "the provider's id of the booking")
	return o.addFlags(c)
}

func (o *adoptOptions) validate() error {
	if o.booking == "" {
		return exit.Usagef("say --booking ID: the provider's id of the booking that %s is to take over", o.ticket)
	}
	return o.writing.validate()
}

func (o *adoptOptions) run(ctx context.Context) error {
	t, err := o.access.open()
	if err != nil {
		return err
	}
	after, err := t.decide(ctx, o.ticket, func(*flightsv1.FlightTicket) (map[string]string, error) {
		return map[string]string{flightsv1.AdoptBookingAnnotation: o.booking}, nil
	}, dryRun(o.dryRun))
	if err != nil {
		return fmt.Errorf("adopt booking %s: %w", o.booking, err)
	}
	return o.print(after)
}
