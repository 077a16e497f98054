// Command dev is the developer's end of the project: it builds the programs of a control plane, so that later steps
// start at once. It is run with `go run ./cmd/dev` by the Makefile and is never shipped.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/flight-operator/flight-operator/internal/controlplane"
)

const usage = `usage: go run ./cmd/dev COMMAND

  programs   build what is missing of etcd, kube-apiserver, kubectl, kube-controller-manager
             and cert-manager, and print where they are
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

// run does one command. out gets its result, progress what a person may want to know meanwhile.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("one command is needed\n%s", usage)
	}
	switch args[0] {
	case "programs":
		return programs(ctx, out, progress)
	default:
		return fmt.Errorf("unknown command %q\n%s", args[0], usage)
	}
}

// programs builds every program of a control plane and prints one path a line.
func programs(ctx context.Context, out, progress io.Writer) error {
	paths, err := controlplane.Programs(ctx, progress)
	if err != nil {
		return err
	}
	for _, name := range controlplane.AllPrograms() {
		fmt.Fprintf(out, "%-24s %s\n", name, paths[name])
	}
	return nil
}
