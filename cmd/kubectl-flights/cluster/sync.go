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
)

// syncOptions are those of `kubectl flights sync`.
type syncOptions struct {
	writing
	tickets []string
	wait    bool
	timeout time.Duration
	// now is what the annotation is set to.
	now func() time.Time
}

func newSync(streams genericiooptions.IOStreams) *cobra.Command {
	o := &syncOptions{writing: newWriting(streams, "synced"), wait: true, timeout: 30 * time.Second, now: time.Now}
	c := &cobra.Command{
		Use:   "sync TICKET...",
		Short: "Have the controller look at a ticket, and at its booking, now",
		Long: `Have the controller look at a ticket now, read its booking at the provider, and try again what the provider refused.

The command waits until the controller has done so, and prints on standard error how each ticket stands then. It takes no
right but that to change the ticket.`,
		Example: `  # look at a ticket now, and see how it stands
  kubectl flights sync my-flight-ticket

  # several, without waiting
  kubectl flights sync outbound inbound --wait=false`,
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
	c.Flags().BoolVar(&o.wait, "wait", o.wait, "wait until the controller has looked")
	c.Flags().DurationVar(&o.timeout, "timeout", o.timeout, "how long to wait in all")
	return o.addFlags(c)
}

func (o *syncOptions) validate() error {
	if o.timeout <= 0 {
		return exit.Usagef("--timeout is %s and must be above 0; say --wait=false to wait for nothing", o.timeout)
	}
	return o.writing.validate()
}

// run asks for all tickets first and waits afterwards, so that they are looked at together.
func (o *syncOptions) run(ctx context.Context) error {
	t, err := o.access.open()
	if err != nil {
		return err
	}
	at := o.now().UTC().Format(time.RFC3339Nano)
	var asked []*flightsv1.FlightTicket
	var failed []error
	for _, name := range o.tickets {
		after, err := t.decide(ctx, name, func(*flightsv1.FlightTicket) (map[string]string, error) {
			return map[string]string{flightsv1.ReconcileRequestedAtAnnotation: at}, nil
		}, dryRun(o.dryRun))
		if err != nil {
			failed = append(failed, fmt.Errorf("sync %s: %w", name, err))
			continue
		}
		asked = append(asked, after)
	}
	return errors.Join(append(failed, o.finish(ctx, t, asked, at))...)
}

// finish waits where that is wanted, and prints.
func (o *syncOptions) finish(ctx context.Context, t *tickets, asked []*flightsv1.FlightTicket, at string) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	var failed []error
	for _, ticket := range asked {
		if o.wait && dryRun(o.dryRun) == dryRunNone {
			handled, err := t.awaitHandled(ctx, ticket, at)
			if err != nil {
				failed = append(failed, fmt.Errorf("sync %s: %w", ticket.Name, o.explain(ctx, err)))
				continue
			}
			fmt.Fprintf(o.access.streams.ErrOut, "%s: %s\n", ticket.Name, standing(handled))
			if handled != nil {
				ticket = handled
			}
		}
		if err := o.print(ticket); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// explain says what to look at when the controller doesn't answer in time.
func (o *syncOptions) explain(ctx context.Context, err error) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("the controller did not look at it within %s; the request stands. Is it running? "+
		"See kubectl --namespace "+operatorNamespace+" get deployment flight-controller", o.timeout)
}
