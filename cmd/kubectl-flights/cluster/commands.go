package cluster

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/exit"
)

// Commands returns all commands that talk to a cluster, to be put below the root.
func Commands(streams genericiooptions.IOStreams) []*cobra.Command {
	return []*cobra.Command{newAdopt(streams), newQuota(streams), newResolve(streams), newRetain(streams), newSync(streams)}
}

// one demands the name of one ticket.
func one(_ *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return exit.Usagef("name one ticket, as kubectl get flighttickets shows it")
	}
	return nil
}

// some demands the name of at least one ticket.
func some(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.Usagef("name one ticket or more, as kubectl get flighttickets shows them")
	}
	for _, name := range args {
		if name == "" {
			return exit.Usagef("the name of a ticket is empty")
		}
	}
	return nil
}

// noNames refuses arguments where flags say what is wanted.
func noNames(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usagef("%s takes no names, so %q says nothing; see the flags", c.Name(), args[0])
	}
	return nil
}
