package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// demoRequestLife is how long a new quota waits for requests that are on their way: a minute and a half in a cluster. Here one
// request is made after the other.
const demoRequestLife = "--request-life=2s"

// quotaPolicy holds the seats of a month to five.
const quotaPolicy = `
apiVersion: flights.com/v1
kind: FlightPolicy
metadata: {name: team-seats}
spec:
  library: quota-seats-per-namespace-month
  parameters: {max: 5}
  match: {namespaces: [default]}
`

const (
	twoTicketsOfTwoSeats = `
apiVersion: flights.com/v1
kind: FlightTicket
metadata: {name: outbound}
spec: {from: Mumbai, to: London, number: 2, departureDate: DAY}
---
apiVersion: flights.com/v1
kind: FlightTicket
metadata: {name: inbound}
spec: {from: London, to: Mumbai, number: 2, departureDate: DAY}
`
	thirdTicketOfTwoSeats = `
apiVersion: flights.com/v1
kind: FlightTicket
metadata: {name: guests}
spec: {from: Mumbai, to: London, number: 2, departureDate: DAY}
`
)

func quotaHolds(ctx context.Context, s *stage) error {
	// Another month than that of the tickets without a date, which count for today's.
	day := time.Now().UTC().AddDate(0, 4, 0).Format(time.DateOnly)
	guests := strings.ReplaceAll(thirdTicketOfTwoSeats, "DAY", day)
	if err := quotaTaken(ctx, s, strings.ReplaceAll(twoTicketsOfTwoSeats, "DAY", day)); err != nil {
		return err
	}
	said, err := s.apply(ctx, guests)
	err = s.refused(ctx, said, err, newTicket("guests"), "(Forbidden)", "team-seats: quota ", "requested 2, limit 5, used 4, reserved 0, left 1; it resets at ")
	if err != nil {
		return err
	}
	said, err = s.kubectl(ctx, "flights", "quota", "-o", "wide")
	if err != nil {
		return err
	}
	if !strings.Contains(said, "[################....]") || !strings.Contains(said, "default/outbound") {
		return errors.New("the plugin doesn't show four of five seats, and who holds them")
	}
	if err := quotaFreed(ctx, s, day[:len("2027-03")], guests); err != nil {
		return err
	}
	s.passed("what was beyond the limit was refused; what was given back was given on")
	_, err = s.kubectl(ctx, "delete", "tickets", "inbound", "guests", "--timeout=60s")
	return err
}

// quotaTaken puts a quota in force and books what nearly fills it.
func quotaTaken(ctx context.Context, s *stage, tickets string) error {
	if _, err := s.apply(ctx, quotaPolicy); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "flightpolicy/team-seats"); err != nil {
		return err
	}
	if _, err := s.apply(ctx, tickets); err != nil {
		return err
	}
	_, err := s.kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "ticket/outbound", "ticket/inbound")
	return err
}

// quotaFreed deletes a ticket, and has the refused one admitted and booked with its seats.
func quotaFreed(ctx context.Context, s *stage, month, refused string) error {
	if _, err := s.kubectl(ctx, "delete", "ticket", "outbound", "--timeout=60s"); err != nil {
		return err
	}
	var policy flightsv1.FlightPolicy
	if err := s.Client.Get(ctx, client.ObjectKey{Name: "team-seats"}, &policy); err != nil {
		return fmt.Errorf("read the policy: %w", err)
	}
	place := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: quota.BucketName(policy.UID, quota.Namespace, month)}
	err := s.WaitFor(ctx, "the seats of the deleted ticket to be counted out", func(ctx context.Context) (bool, error) {
		var bucket flightsv1.QuotaBucket
		err := s.Client.Get(ctx, place, &bucket)
		return bucket.Used == 2, err
	})
	if err != nil {
		return err
	}
	if _, err := s.apply(ctx, refused); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "ticket/guests"); err != nil {
		return err
	}
	_, err = s.booked(ctx, "guests", 2)
	return err
}
