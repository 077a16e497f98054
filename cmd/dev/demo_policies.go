package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

// storyPolicies are two of the shipped library and one in Rego of the admin's own.
const storyPolicies = `
apiVersion: flights.com/v1
kind: FlightPolicy
metadata: {name: no-short-hops}
spec:
  library: route-denylist
  parameters:
    routes:
    - from: {cities: ["London, GB"]}
      to: {cities: ["Paris, FR"]}
---
apiVersion: flights.com/v1
kind: FlightPolicy
metadata: {name: seats-per-ticket}
spec:
  library: seats-per-ticket
  parameters: {max: 4}
---
apiVersion: flights.com/v1
kind: FlightPolicy
metadata: {name: first-class}
spec:
  rego: |
    package travel.first_class

    deny contains "nobody flies First: set spec.cabin to Economy or Business" if {
    	input.ticket.spec.cabin == "First"
    }
`

const ticketOfThreeFaults = `
apiVersion: flights.com/v1
kind: FlightTicket
metadata: {name: weekend}
spec: {from: Heathrow, to: Paris, number: 5, cabin: First}
`

const policyWithATypo = `
apiVersion: flights.com/v1
kind: FlightPolicy
metadata: {name: typo}
spec:
  rego: |
    package travel.typo

    deny contains "not from Mumbai" if input.ticket.spec.fom == "Mumbai"
`

func policiesInForce(ctx context.Context, s *stage) error {
	if _, err := s.apply(ctx, storyPolicies); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "flightpolicies", "--all"); err != nil {
		return err
	}
	var policies flightsv1.FlightPolicyList
	if err := s.Client.List(ctx, &policies); err != nil {
		return fmt.Errorf("list policies: %w", err)
	}
	for _, p := range policies.Items {
		ready := meta.FindStatusCondition(p.Status.Conditions, flightsv1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != p.Generation {
			return fmt.Errorf("policy %s is not in force", p.Name)
		}
	}
	if len(policies.Items) != 3 {
		return fmt.Errorf("there are %d policies, want 3", len(policies.Items))
	}
	s.passed("every webhook replica serves all three")
	return nil
}

func ticketRefused(ctx context.Context, s *stage) error {
	said, err := s.apply(ctx, ticketOfThreeFaults)
	err = s.refused(ctx, said, err, newTicket("weekend"),
		"(Forbidden)", "no-short-hops: ", "seats-per-ticket: ", "lower spec.number to 4 or less", "first-class: nobody flies First")
	if err != nil {
		return err
	}
	ledger, err := s.Simulator.Ledger(ctx)
	if err != nil {
		return err
	}
	for _, call := range ledger.Calls {
		if call.Operation != simulator.OpAccount { // which the controller asks of every provider
			return fmt.Errorf("the booking API was asked to %s", call.Operation)
		}
	}
	s.passed("three reasons in one answer; no ticket is stored, and the booking API was not asked")
	return nil
}

func typoRefused(ctx context.Context, s *stage) error {
	said, err := s.apply(ctx, policyWithATypo)
	policy := &flightsv1.FlightPolicy{ObjectMeta: metav1.ObjectMeta{Name: "typo"}}
	err = s.refused(ctx, said, err, policy, "line 3, column ", "input.ticket.spec.fom", `did you mean "from"?`, "there are: cabin, ")
	if err != nil {
		return err
	}
	s.passed("the policy is not stored: it would have allowed everything in silence")
	return nil
}
