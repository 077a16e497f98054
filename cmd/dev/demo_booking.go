package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// theTicket is the one of config/samples/flightticket.yaml.
const theTicket = "my-flight-ticket"

func ticketBooked(ctx context.Context, s *stage) error {
	for _, args := range [][]string{
		{"apply", "-f", "config/samples/flightticket.yaml"},
		{"wait", "--for=condition=Ready", "--timeout=60s", "ticket/" + theTicket},
		{"get", "tickets"},
	} {
		if _, err := s.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	id, err := s.booked(ctx, theTicket, 2)
	if err != nil {
		return err
	}
	s.passed("the ledger holds booking %s with the same reference", id)
	return nil
}

func ticketChanged(ctx context.Context, s *stage) error {
	before, err := s.booked(ctx, theTicket, 2)
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"patch", "ticket", theTicket, "--type=merge", "-p", `{"spec":{"number":3}}`},
		{"wait", "--for=jsonpath={.status.booking.order.seats}=3", "--timeout=60s", "ticket/" + theTicket},
		{"wait", "--for=condition=Ready", "--timeout=60s", "ticket/" + theTicket},
	} {
		if _, err := s.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	after, err := s.booked(ctx, theTicket, 3)
	if err != nil {
		return err
	}
	if after != before {
		return fmt.Errorf("booking %s became %s", before, after)
	}
	ledger, err := s.Simulator.Ledger(ctx)
	if err != nil {
		return err
	}
	if len(ledger.Bookings) != 1 {
		return fmt.Errorf("the ledger has %d bookings, want 1", len(ledger.Bookings))
	}
	s.passed("the ledger has one booking, %s, now with 3 seats", after)
	return nil
}

func ticketsCancelled(ctx context.Context, s *stage) error {
	if _, err := s.kubectl(ctx, "delete", "tickets", "--all", "--timeout=60s"); err != nil {
		return err
	}
	for _, name := range []string{theTicket, waitingTicket} {
		ticket := newTicket(name)
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(ticket), ticket); !apierrors.IsNotFound(err) {
			return fmt.Errorf("ticket %s is still there: %w", name, err)
		}
	}
	live, err := s.Simulator.Live(ctx)
	if err != nil {
		return err
	}
	if len(live) != 0 {
		return fmt.Errorf("%d bookings are live still", len(live))
	}
	s.passed("no ticket, and no live booking")
	return nil
}

func ledgerClean(ctx context.Context, s *stage) error {
	ledger, err := s.Simulator.Ledger(ctx)
	if err != nil {
		return err
	}
	t := ledger.Totals
	fmt.Fprintf(s.out, "    made %d, live %d, pending %d, cancelled %d; violations %d; calls %d\n",
		t.Made, t.Live, t.Pending, t.Cancelled, len(ledger.Violations), len(ledger.Calls))
	if len(ledger.Violations) != 0 {
		return fmt.Errorf("the ledger was violated: %+v", ledger.Violations)
	}
	if t.Made != 5 || t.Live != 0 || t.Cancelled != 5 {
		return fmt.Errorf("want 5 bookings, all cancelled")
	}
	s.passed("five tickets, five bookings, all cancelled; never two for one ticket")
	return nil
}
