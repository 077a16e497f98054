// Command dev is the developer's end of the project: it plays the demo, keeps a whole installation running to try things
// on, and builds the programs of a control plane ahead of time. It is run with `go run ./cmd/dev` by the Makefile and is
// never shipped.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	// What the client libraries tell is for programs; here a person reads.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // a second Ctrl-C ends this process at once; what it started is then ended by a warden
		fmt.Fprintln(os.Stdout, "stopping")
	})
	os.Exit(end(ctx, command().ExecuteContext(ctx), os.Stderr))
}

// interruptedCode is what a shell reports of a program that Ctrl-C ended.
const interruptedCode = 130

// end tells how a command ended and returns the code to exit with. What fails after a signal was cut off by it: the
// error would only say so in many words.
func end(ctx context.Context, err error, out io.Writer) int {
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(out, "dev: interrupted")
		return interruptedCode
	default:
		fmt.Fprintln(out, "dev:", err)
		return 1
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "dev",
		Short:         "Try the operator on a real control plane, without a cluster",
		SilenceUsage:  true,
		SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{
			DisableDefaultCmd: true,
		},
	}
	root.AddCommand(programsCommand(), demoCommand(), upCommand())
	return root
}
