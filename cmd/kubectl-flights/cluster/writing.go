package cluster

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/exit"
)

// dryRun says who only pretends.
type dryRun string

const (
	dryRunNone   dryRun = "none"
	dryRunClient dryRun = "client"
	dryRunServer dryRun = "server"
)

// writing is what all commands that write have in common: where to, what for a try, and how the ticket is printed.
type writing struct {
	access *access
	output *genericclioptions.PrintFlags
	dryRun string
}

// newWriting takes what was done, as in "ticket resolved".
func newWriting(streams genericiooptions.IOStreams, done string) writing {
	return writing{access: newAccess(streams), output: genericclioptions.NewPrintFlags(done), dryRun: string(dryRunNone)}
}

// addFlags adds the flags of all writing commands, and returns the command.
func (w *writing) addFlags(c *cobra.Command) *cobra.Command {
	w.access.addFlags(c)
	w.output.AddFlags(c)
	c.Flags().StringVar(&w.dryRun, "dry-run", w.dryRun, "none, client (write nothing and print what would be stored), or server (have everything checked, and store nothing)")
	return c
}

// validate checks what addFlags added.
func (w *writing) validate() error {
	switch dryRun(w.dryRun) {
	case dryRunNone, dryRunClient, dryRunServer:
	default:
		return exit.Usagef("--dry-run is none, client or server, not %q", w.dryRun)
	}
	if _, err := w.output.ToPrinter(); err != nil {
		return exit.Usagef("--output: %v", err)
	}
	return nil
}

// print prints a ticket on standard output as --output asks, by default one line that says what was done.
func (w *writing) print(ticket *flightsv1.FlightTicket) error {
	scheme, _, err := kinds()
	if err != nil {
		return err
	}
	how := "%s"
	switch dryRun(w.dryRun) {
	case dryRunClient:
		how = "%s (dry run)"
	case dryRunServer:
		how = "%s (server dry run)"
	case dryRunNone:
	}
	output := *w.output
	names := *w.output.NamePrintFlags
	output.NamePrintFlags = &names
	if err := output.Complete(how); err != nil {
		return fmt.Errorf("prepare the output: %w", err)
	}
	printer, err := output.WithTypeSetter(scheme).ToPrinter()
	if err != nil {
		return fmt.Errorf("prepare the output: %w", err)
	}
	if err := printer.PrintObj(ticket, w.access.streams.Out); err != nil {
		return fmt.Errorf("print the ticket: %w", err)
	}
	return nil
}
