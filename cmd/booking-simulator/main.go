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
		Long:  long(),
		Example: `  # with a certificate of its own; clients trust sim-ca.crt
  BOOKING_SIMULATOR_TOKENS=s3cret booking-simulator --write-ca sim-ca.crt --admin-bind-address 127.0.0.1:8081

  # with the certificate in a directory (tls.crt, tls.key), on fixed ports
  booking-simulator --tls-dir /etc/sim/tls --token-file /etc/sim/tokens \
    --bind-address 127.0.0.1:8443 --admin-bind-address 127.0.0.1:8081

  # in another terminal: commit the next booking, then drop the connection
  curl -X POST http://127.0.0.1:8081/_simulator/faults -d '{"operation":"Book","effect":"drop-after","times":1}'

  # from now on five calls a second, each answered after 300 ms
  curl -X PUT http://127.0.0.1:8081/_simulator/settings -d '{"rateLimit":5,"latency":"300ms"}'

  # the airline cancels a booking
  curl -X POST http://127.0.0.1:8081/_simulator/bookings/bk-ID/cancel

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

// long is the help: what the program is, how it can behave while it is well, and what can go wrong with it.
func long() string {
	var text strings.Builder
	text.WriteString(introduction)
	for _, effect := range simulator.Effects() {
		fmt.Fprintf(&text, "\n  %-13s %s", effect, effect.Does())
	}
	return text.String()
}

const introduction = `booking-simulator serves the booking API of api/booking/openapi.yaml over TLS from memory.

It prints one line of JSON when it is ready, with the addresses it listens on:

  {"api":"https://127.0.0.1:40123","admin":"http://127.0.0.1:40124","ca":"/tmp/sim/ca.crt"}

Bearer tokens come from --token-file or from the environment variable BOOKING_SIMULATOR_TOKENS, never from the command
line, which every process on the machine can read. Each line is "token" or "token account"; the account of a bare token
is acct-1. A token of another account is good and sees none of this one's bookings: they are 404 to it.

What a caller can find out after an answer that never came depends on what the provider can do:

  full keys      --idempotency-key-ttl 24h   the stored answer of a key is sent again
  lookup only    (as it is)                  bookings are listed by clientReference or owner
  neither        --no-lookup                 a booking is read by its id alone

The flags say how the provider behaves at the start. The same settings can be replaced while it runs:
idempotencyKeyTTL, noLookup, readLag, processing, processingFails, latency, rateLimit, rateBurst, quoteTTL, currency.

The switches ask for no credential and are served on loopback alone:

  GET    /_simulator/ledger                 totals, violations, bookings with their history, calls
  GET    /_simulator/faults                 the faults that are on
  POST   /_simulator/faults                 switches one on
  DELETE /_simulator/faults                 switches all off
  GET    /_simulator/settings               the settings
  PUT    /_simulator/settings               replaces them all; what is left out is as if its flag were not given
  PUT    /_simulator/tokens                 replaces the tokens: {"token": "account"}
  POST   /_simulator/bookings/{id}/cancel   cancels from outside, as the airline does
  POST   /_simulator/bookings/{id}/change   changes from outside: {"origin": "BOM", "destination": "LON", "seats": 3}

A fault is {"operation", "effect", "times", "skip", "status", "code", "detail", "retryAfter", "location", "delay"}. It
strikes the calls of one operation (Account, Quote, Book, Get, Find, Change, Cancel; none means all), so many times (none
means until it is cleared), after so many that it lets pass. Its effects:
`
