// Command booking-simulator serves the booking API of api/booking/openapi.yaml from memory, over TLS, with a ledger and
// switchable faults. It is for trying things out and for tests; it sells nothing.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "booking-simulator:", err)
		os.Exit(1)
	}
}

// command is the command line: flags into options, options checked, then run.
func command() *cobra.Command {
	o := defaultOptions()
	c := &cobra.Command{
		Use:   "booking-simulator",
		Short: "A booking API in memory, with a ledger and switchable faults",
		Long: `booking-simulator serves the booking API of api/booking/openapi.yaml over TLS from memory.

It prints one line of JSON when it is ready, with the addresses it listens on:

  {"api":"https://127.0.0.1:40123","admin":"http://127.0.0.1:40124","ca":"/tmp/sim/ca.crt"}

Bearer tokens come from --token-file or from the environment variable BOOKING_SIMULATOR_TOKENS, never from the command
line, which every process on the machine can read. Each line is "token" or "token account"; the account of a bare token
is acct-1.

The switches under /_simulator/ ask for no credential and are served on loopback alone.

Effects of a fault:
` + effectList(),
		Example: `  # with a certificate of its own; clients trust sim-ca.crt
  BOOKING_SIMULATOR_TOKENS=s3cret booking-simulator --write-ca sim-ca.crt --admin-bind-address 127.0.0.1:8081

  # with the certificate in a directory (tls.crt, tls.key), on fixed ports
  booking-simulator --tls-dir /etc/sim/tls --token-file /etc/sim/tokens \
    --bind-address 127.0.0.1:8443 --admin-bind-address 127.0.0.1:8081

  # in another terminal: commit the next booking, then drop the connection
  curl -X POST http://127.0.0.1:8081/_simulator/faults -d '{"operation":"Book","effect":"drop-after","times":1}'

  # what was booked
  curl http://127.0.0.1:8081/_simulator/ledger`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return run(c.Context(), o, c.OutOrStdout())
		},
	}
	o.addFlags(c.Flags())
	return c
}

// effectList names what a fault can do, one indented line each.
func effectList() string {
	var list strings.Builder
	for _, effect := range simulator.Effects() {
		list.WriteString("\n  " + string(effect))
	}
	return list.String()
}
