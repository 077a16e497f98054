package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/flight-operator/flight-operator/test/installation"
)

func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Play the whole story on a control plane of its own, then clean up",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return demo(c.Context(), c.OutOrStdout())
		},
	}
}

// step is one scene of the story. It fails unless the API server and the ledger show what its title says.
type step struct {
	title string
	play  func(context.Context, *stage) error
}

func story() []step {
	return []step{
		{"An admin applies policies, and they are in force", policiesInForce},
		{"A ticket that breaks three policies is refused, with every reason at once", ticketRefused},
		{"The ticket of the README is admitted and booked", ticketBooked},
		{"Three seats instead of two: the same booking is changed", ticketChanged},
		{"A place that nobody knows, and one that means several, are refused", placesRefused},
		{"A policy with a typing error is refused, with line, column and the fields that exist", typoRefused},
		{"A quota refuses what would pass its limit, and deleting makes room", quotaHolds},
		{"The credential is rotated: tickets wait, then go on without a restart", credentialRotated},
		{"Deleted tickets are cancelled at the provider, and then go", ticketsCancelled},
		{"The ledger: nothing was bought twice, nothing is left behind", ledgerClean},
	}
}

// demo plays the story. It returns an error unless every step came out right.
func demo(ctx context.Context, out io.Writer) (err error) {
	began := time.Now()
	i, err := installation.Start(ctx, installation.Options{
		Progress: out, Settings: providerManners(), ControllerArgs: []string{demoRequestLife},
	})
	if err != nil {
		return err
	}
	defer func() {
		if failure := i.Stop(); failure != nil {
			fmt.Fprintf(out, "✗ clean up: %v\n", failure)
			err = errors.Join(err, errors.New("not everything was cleaned up"))
		}
	}()
	s := &stage{Installation: i, out: out}
	times := i.Stages
	for number, step := range story() {
		fmt.Fprintf(out, "\n%d. %s\n", number+1, step.title)
		start := time.Now()
		if err = step.play(ctx, s); ctx.Err() != nil {
			return ctx.Err() // whatever the step says, it was cut off
		}
		if err != nil {
			fmt.Fprintf(out, "  ✗ %v\n", err)
			s.explain(ctx)
			err = fmt.Errorf("step %d (%s) did not come out right; the later ones were not played. Logs: %s", number+1, step.title, i.Dir)
			break
		}
		times = append(times, installation.Stage{Name: fmt.Sprintf("%d. %s", number+1, step.title), Took: time.Since(start)})
	}
	fmt.Fprintln(out)
	for _, each := range times {
		fmt.Fprintf(out, "%6.1f s  %s\n", each.Took.Seconds(), each.Name)
	}
	fmt.Fprintf(out, "%6.1f s  in all\n", time.Since(began).Seconds())
	return err
}
