package main

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// newVersion makes `kubectl flights version`.
func newVersion(streams genericiooptions.IOStreams, version string) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  kubectl flights version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(streams.Out, "kubectl-flights %s (%s, %s/%s)\n", cmp.Or(version, "development"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
