package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flight-operator/flight-operator/internal/controlplane"
	"github.com/flight-operator/flight-operator/test/installation"
)

func programsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "programs",
		Short: "Build what a control plane is made of, where it is missing, and our own programs",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			paths, err := controlplane.Programs(c.Context(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			for _, name := range controlplane.AllPrograms() {
				fmt.Fprintf(c.OutOrStdout(), "%-24s %s\n", name, paths[name])
			}
			return installation.Build(c.Context(), c.ErrOrStderr())
		},
	}
}
