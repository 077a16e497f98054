package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/cluster"
	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/exit"
)

const (
	about = `See what is left of quotas, decide about FlightTickets that can't go on by themselves, and ask the controller to look at
one now.

The commands write nothing but annotations, which the webhook checks against RBAC: adopt, resolve and retain each take the
verb of their name on the ticket. docs/runbooks has a page for each reason with which a ticket can be Stalled.

Exit codes: 0 done, 1 refused or failed, 2 the command line makes no sense.`
	examples = `  # what does a ticket wait for?
  kubectl get flighttickets -o wide

  # what is left of the quotas here?
  kubectl flights quota

  # the provider says that the booking was never made
  kubectl flights resolve my-flight-ticket --not-done

  # look at the ticket now
  kubectl flights sync my-flight-ticket`
)

// newRoot makes `kubectl flights` with all its commands.
func newRoot(streams genericiooptions.IOStreams, version string) *cobra.Command {
	root := &cobra.Command{
		Use:     "kubectl-flights",
		Short:   "See quotas, decide about FlightTickets and ask for another look",
		Long:    about,
		Example: examples,
		// What is no command comes here as an argument.
		Args: unknown,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
		// How far a word may be from a command that it is taken for.
		SuggestionsMinimumDistance: 2,

		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl flights"},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit.Usagef("%v", err) })
	root.AddCommand(cluster.Commands(streams)...)
	root.AddCommand(newVersion(streams, version))
	root.InitDefaultCompletionCmd()
	markUsage(root)
	return root
}

// markUsage makes what is wrong with the arguments of a command, and of those below it, a UsageError.
func markUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return exit.Usagef("%v", err)
			}
			return nil
		}
	}
	for _, below := range c.Commands() {
		markUsage(below)
	}
}

// unknown says that there is no such command, and which one may be meant.
func unknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("%q is no command", args[0])
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; do you mean " + strings.Join(near, " or ") + "?"
	}
	return exit.Usagef("%s", text)
}
