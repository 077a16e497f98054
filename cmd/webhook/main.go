// Command webhook answers admission reviews. It holds no right on Secrets and no code that could book.
package main

import (
	"fmt"
	"os"

	"github.com/flight-operator/flight-operator/cmd/internal/program"
)

// version is set by the linker.
var version string

const (
	summary  = "Answers admission reviews of FlightTickets, FlightPolicies and BookingProviders. It books nothing and reads no Secret."
	examples = `  # in a pod, with the ServiceAccount flight-webhook
  webhook

  # as a process of its own, with that account's token in a kubeconfig file
  webhook --kubeconfig webhook.kubeconfig --tls-dir ./tls --webhook-bind-address 127.0.0.1:9443`
)

func main() {
	if err := start(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "webhook:", err)
		os.Exit(1)
	}
}

// start parses, validates and runs.
func start(args []string) error {
	o := defaultOptions()
	command := program.Command{
		Name: "webhook", Summary: summary, Examples: examples, Version: version, AddFlags: o.addFlags,
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
	log.Info("starting", "program", "webhook", "version", program.Version(version), "replica", o.replica)
	return run(program.Context(), o, log)
}
