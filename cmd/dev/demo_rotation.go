package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/test/installation"
)

// waitingTicket meets a credential that is no longer taken.
const waitingTicket = "second"

const ticketThatWaits = `
apiVersion: flights.com/v1
kind: FlightTicket
metadata: {name: second}
spec: {from: Heathrow, to: JFK}
`

func credentialRotated(ctx context.Context, s *stage) error {
	token := rand.Text()
	fmt.Fprintln(s.out, "  (the provider issues a new token and revokes the old one)")
	if err := s.Simulator.SetTokens(ctx, map[string]string{token: installation.Account}); err != nil {
		return err
	}
	if _, err := s.apply(ctx, ticketThatWaits); err != nil {
		return err
	}
	if err := ticketWaits(ctx, s); err != nil {
		return err
	}
	if err := storeToken(ctx, s, token); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "ticket/"+waitingTicket); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "get", "tickets"); err != nil {
		return err
	}
	if _, err := s.booked(ctx, waitingTicket, 1); err != nil {
		return err
	}
	if _, err := s.booked(ctx, theTicket, 3); err != nil {
		return err
	}
	if !s.Controller.Running() {
		return fmt.Errorf("the controller has ended: %w", s.Controller.Err())
	}
	s.passed("the ticket that waited is booked, by the same controller process")
	return nil
}

// ticketWaits shows a provider whose credential is refused, and the ticket that waits for it.
func ticketWaits(ctx context.Context, s *stage) error {
	if _, err := s.kubectl(ctx, "wait", "--for=condition=Ready=False", "--timeout=60s", "bookingprovider/"+installation.ProviderName); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "get", "bookingprovider", installation.ProviderName,
		"-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}: {.status.conditions[?(@.type=="Ready")].message}`+"{\"\\n\"}"); err != nil {
		return err
	}
	var provider flightsv1.BookingProvider
	if err := s.Client.Get(ctx, client.ObjectKey{Name: installation.ProviderName}, &provider); err != nil {
		return fmt.Errorf("read the provider: %w", err)
	}
	ready := meta.FindStatusCondition(provider.Status.Conditions, flightsv1.ConditionReady)
	if ready == nil || ready.Reason != flightsv1.ReasonCredentialsRefused {
		return fmt.Errorf("the provider is %+v, want %s", ready, flightsv1.ReasonCredentialsRefused)
	}
	if _, err := s.kubectl(ctx, "wait", "--timeout=60s", "ticket/"+waitingTicket,
		`--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=`+flightsv1.ReasonProviderNotReady); err != nil {
		return err
	}
	live, err := s.Simulator.Live(ctx)
	if err != nil {
		return err
	}
	if len(live) != 1 {
		return fmt.Errorf("%d bookings are live, want the first alone", len(live))
	}
	s.passed("the provider says %s, and the ticket waits", ready.Reason)
	return nil
}

// storeToken patches the Secret out of a file, as a person does who keeps tokens out of the shell's history.
func storeToken(ctx context.Context, s *stage, token string) error {
	patch, err := json.Marshal(map[string]any{"stringData": map[string]string{installation.ProviderName: token}})
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	file := filepath.Join(s.Plane.Dir(), "new-token.json")
	if err := os.WriteFile(file, patch, 0o600); err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	_, err = s.kubectl(ctx, "patch", "secret", installation.CredentialsSecret, "-n", installation.Namespace, "--patch-file", file)
	return err
}
