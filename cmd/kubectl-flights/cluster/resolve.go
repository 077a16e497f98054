package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/exit"
	"github.com/flight-operator/flight-operator/internal/instruction"
)

// resolveOptions are those of `kubectl flights resolve`.
type resolveOptions struct {
	writing
	ticket        string
	done, notDone bool
	booking       string
	// now is the time that the end of an operation is compared with.
	now func() time.Time
}

func newResolve(streams genericiooptions.IOStreams) *cobra.Command {
	o := &resolveOptions{writing: newWriting(streams, "resolved"), now: time.Now}
	c := &cobra.Command{
		Use:   "resolve TICKET (--done [--booking ID] | --not-done)",
		Short: "Say what became of an operation whose outcome can't be found out",
		Long: `Say what became of the open operation of a ticket, when the controller can't find out by itself (OutcomeUnknown,
OperationPending).

The command shows the operation and what to ask the provider, on standard error; without --done and --not-done it does no
more. Ask the provider before you decide: with a wrong --not-done the flight is bought twice, with a wrong --done it is never
bought. Your word is about the operation that is open now and about no later one. It takes the RBAC verb resolve on the
ticket.`,
		Example: `  # see what is open, and what to ask the provider
  kubectl flights resolve my-flight-ticket

  # the provider has the booking
  kubectl flights resolve my-flight-ticket --done --booking bk_7f3a

  # the provider never got the order, or threw it away
  kubectl flights resolve my-flight-ticket --not-done`,
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
	c.Flags().BoolVar(&o.done, "done", false, "the operation took effect")
	c.Flags().BoolVar(&o.notDone, "not-done", false, "the operation took no effect, and never will")
	c.Flags().StringVar(&o.booking, "booking", "", "the provider's id of the booking that a done book operation made")
	return o.addFlags(c)
}

func (o *resolveOptions) validate() error {
	switch {
	case o.done && o.notDone:
		return exit.Usagef("say --done or --not-done, not both")
	case o.booking != "" && !o.done:
		return exit.Usagef("--booking goes with --done: it is the booking that the operation made")
	default:
		return o.writing.validate()
	}
}

func (o *resolveOptions) run(ctx context.Context) error {
	t, err := o.access.open()
	if err != nil {
		return err
	}
	shown, err := o.show(ctx, t)
	if err != nil {
		return err
	}
	if !o.done && !o.notDone {
		return exit.Usagef("say --done or --not-done once you know from the provider")
	}
	after, err := t.decide(ctx, o.ticket, o.resolution(shown), dryRun(o.dryRun))
	if err != nil {
		return fmt.Errorf("resolve the operation of %s: %w", o.ticket, err)
	}
	return o.print(after)
}

// resolution decides about the operation that was shown, and about no other.
func (o *resolveOptions) resolution(shown string) decision {
	return func(ticket *flightsv1.FlightTicket) (map[string]string, error) {
		if op := ticket.Status.Operation; op == nil || op.ID != shown {
			return nil, errors.New("the operation was closed meanwhile, so nothing is left to decide; see kubectl get flighttickets -o wide")
		}
		word := instruction.Resolution{Operation: shown, Done: o.done, Booking: o.booking}
		return map[string]string{flightsv1.ResolveOperationAnnotation: word.String()}, nil
	}
}

// show tells about the open operation and returns its id.
func (o *resolveOptions) show(ctx context.Context, t *tickets) (string, error) {
	ticket, err := t.get(ctx, o.ticket)
	if err != nil {
		return "", err
	}
	if ticket.Status.Operation == nil {
		return "", fmt.Errorf("%s has no open operation, so nothing is left to decide; see kubectl get flightticket %s -o wide", o.ticket, o.ticket)
	}
	if err := showOperation(o.access.streams.ErrOut, ticket, o.now()); err != nil {
		return "", fmt.Errorf("show the operation: %w", err)
	}
	return ticket.Status.Operation.ID, nil
}
