package main

import "context"

const (
	ticketToNowhere = `
apiVersion: flights.com/v1
kind: FlightTicket
metadata: {name: nowhere}
spec: {from: Mumbai, to: Lodnon}
`
	ticketToSeveral = `
apiVersion: flights.com/v1
kind: FlightTicket
metadata: {name: several}
spec: {from: San Jose, to: London}
`
)

func placesRefused(ctx context.Context, s *stage) error {
	said, err := s.apply(ctx, ticketToNowhere)
	if err := s.refused(ctx, said, err, newTicket("nowhere"), "spec.to", `did you mean "London"?`); err != nil {
		return err
	}
	said, err = s.apply(ctx, ticketToSeveral)
	err = s.refused(ctx, said, err, newTicket("several"), "spec.from", "means several places", `"San Jose, US"`, `"San Jose, CR"`)
	if err != nil {
		return err
	}
	s.passed("neither ticket is stored")
	return nil
}
