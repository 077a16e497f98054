// Command kubectl-flights is the plugin behind `kubectl flights`: what people do with tickets beyond apply, get and delete.
//
// This package puts the commands together and must hold none that talks to a cluster: those are in package cluster, which
// alone imports client-go. Commands that work offline stay apart from it, so that they can be used where no cluster is.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/exit"
)

// version is set by the linker.
var version string

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(run(os.Args[1:], streams))
}

// run carries a command line out and returns the exit code. Ctrl-C ends it.
func run(args []string, streams genericiooptions.IOStreams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot(streams, version)
	root.SetArgs(args)
	used, err := root.ExecuteContextC(ctx)
	if err != nil {
		fmt.Fprintln(streams.ErrOut, "error:", err)
	}
	if exit.Code(err) == exit.Usage {
		fmt.Fprintf(streams.ErrOut, "See '%s --help' for usage.\n", used.CommandPath())
	}
	return exit.Code(err)
}
