// Command controller books, changes and cancels what FlightTickets ask for. It serves no admission.
package main

import (
	"fmt"
	"os"

	"github.com/flight-operator/flight-operator/cmd/internal/program"
)

// version is set by the linker.
var version string

const (
	summary  = "Books, changes and cancels what FlightTickets ask for. It serves no admission."
	examples = `  # in a pod, with the ServiceAccount flight-controller
  controller

  # as a process of its own, with that account's token in a kubeconfig file
  controller --kubeconfig controller.kubeconfig --tls-dir ./tls --metrics-bind-address 127.0.0.1:0

  # in a cluster restored from a backup: bookings keep the name they were made under
  controller --installation 3f0c2f1e-6f0d-4a57-9a52-6f4c8a9b1d2e`
)

func main() {
	if err := start(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

// start parses, validates and runs.
func start(args []string) error {
	o := defaultOptions()
	command := program.Command{
		Name: "controller", Summary: summary, Examples: examples, Version: version, AddFlags: o.addFlags,
	}
	if done, err := command.Parse(args); done || err != nil {
		return err
	}
	if err := o.validate(); err != nil {
		return err
	}
	log, err := o.Logger(os.Stderr)
	if err != nil {
		return err
	}
	log.Info("starting", "program", "controller", "version", program.Version(version))
	return run(program.Context(), o, log)
}
