// Command controller books, changes and cancels what FlightTickets ask for. It serves no admission.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/flight-operator/flight-operator/cmd/internal/program"
)

// version is set by the linker.
var version string

func main() {
	if err := start(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

// start parses, validates and runs.
func start(args []string) error {
	o := defaultOptions()
	fs := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	o.addFlags(fs)
	showVersion := fs.Bool("version", false, "print the version and exit")
	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if *showVersion {
		_, err := fmt.Println(program.Version(version))
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
