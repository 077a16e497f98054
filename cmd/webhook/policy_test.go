package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/internal/program"
	"github.com/flight-operator/flight-operator/internal/replica"
)

const (
	fewSeats = "package seats\ndeny contains \"at most 1 seat\" if input.ticket.spec.number > 1\n"
	noLondon = "package route\ndeny contains \"never to London\" if input.route.destination.iata == \"LON\"\n"
	broken   = "package seats\ndeny contains \"no\" if input.ticket.spec.fom == 1\n"
)

func policyOf(name, namespace string, enforcement flightsv1.Enforcement, rego string) *flightsv1.FlightPolicy {
	return &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flightsv1.FlightPolicySpec{
			Rego: rego, Enforcement: enforcement, Match: flightsv1.PolicyMatch{Namespaces: []string{namespace}},
		},
	}
}

// report reads what the replica says of a policy.
func report(ctx context.Context, c client.Client, w *webhookProgram, p *flightsv1.FlightPolicy) (replica.Policy, error) {
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: program.DefaultNamespace, Name: replica.LeasePrefix + w.options.replica}
	if err := c.Get(ctx, key, &lease); err != nil {
		return replica.Policy{}, err
	}
	all, err := replica.Decode(lease.Annotations[replica.PoliciesAnnotation])
	if err != nil {
		return replica.Policy{}, err
	}
	held, found := all[replica.KeyOf(p.UID)]
	if !found {
		return replica.Policy{}, errors.New("the report lacks the policy")
	}
	return held, nil
}

// putPolicy stores a policy and waits until the replica reports this very generation.
func putPolicy(t *testing.T, c client.Client, w *webhookProgram, p *flightsv1.FlightPolicy) {
	t.Helper()
	err := c.Create(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	deleteAfter(t, c, p)
	waitFor(t, c, w, p)
}

func waitFor(t *testing.T, c client.Client, w *webhookProgram, p *flightsv1.FlightPolicy) replica.Policy {
	t.Helper()
	var held replica.Policy
	eventually(t, "policy "+p.Name+" is reported", func(ctx context.Context) (err error) {
		if held, err = report(ctx, c, w, p); err == nil && max(held.Generation, held.FailedGeneration) != p.Generation {
			err = fmt.Errorf("the report is %+v, wanted generation %d", held, p.Generation)
		}
		return err
	})
	return held
}

func TestPoliciesAreFollowedWithoutARestart(t *testing.T) {
	w := startWebhook(t)
	c := newClient(t, plane.Config)
	ns := namespace(t, c)
	p := policyOf("followed", ns, flightsv1.EnforcementEnforce, fewSeats)
	putPolicy(t, c, w, p)
	if err := c.Create(t.Context(), newTicket(ns, "t"), client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "followed: at most 1 seat") {
		t.Errorf("under the first policy: %v", err)
	}
	p.Spec.Enforcement = flightsv1.EnforcementWarn
	if err := c.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	waitFor(t, c, w, p)
	out, err := kubectl(t, manifest, "create", "-n", ns, "--dry-run=server", "-f", "-")
	if err != nil || !strings.Contains(out, "Warning: followed: ") || !strings.Contains(out, "at most 1 seat") {
		t.Errorf("under a warning: %v: %s", err, out)
	}
	if err := c.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the policy leaves the report", func(ctx context.Context) error {
		if _, err := report(ctx, c, w, p); err == nil {
			return errors.New("it is still there")
		}
		return nil
	})
	if err := c.Create(t.Context(), newTicket(ns, "t"), client.DryRunAll); err != nil {
		t.Errorf("without a policy: %v", err)
	}
}

func TestASecondDefaultProviderIsRefused(t *testing.T) {
	startWebhook(t)
	c := newClient(t, plane.Config)
	provider := func(name string) *flightsv1.BookingProvider {
		return &flightsv1.BookingProvider{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: flightsv1.BookingProviderSpec{
				Endpoint: "https://flights.example.com", Default: true, CredentialsSecretRef: flightsv1.SecretKeyReference{Key: "token"},
				Timeout: metav1.Duration{Duration: 30 * time.Second},
			},
		}
	}
	first := provider("first")
	if err := c.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	deleteAfter(t, c, first)
	err := c.Create(t.Context(), provider("second"))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "first is the default BookingProvider already") {
		t.Errorf("the second ends with %v", err)
	}
	first.Spec.RateLimit.Burst = 3
	if err := c.Update(t.Context(), first); err != nil {
		t.Errorf("the first can't change: %v", err)
	}
}

// The seventh pitfall, whole: a working policy gets broken Rego while the webhook is bypassed, then every replica
// restarts.
func TestOneBadPolicyTakesTheServerDown(t *testing.T) {
	c := newClient(t, plane.Config)
	matched, bystander := namespace(t, c), namespace(t, c)
	first := startWebhook(t)
	p := policyOf("bad", matched, flightsv1.EnforcementEnforce, fewSeats)
	putPolicy(t, c, first, p)
	unregister(t, c)
	p.Spec.Rego = broken
	if err := c.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if held := waitFor(t, c, first, p); held.Generation != 1 || held.FailedGeneration != 2 || !strings.Contains(held.Error, "spec.rego:2:") {
		t.Errorf("the report is %+v", held)
	}
	first.stop()

	again := startWebhook(t) // it gets ready
	if held := waitFor(t, c, again, p); held.Generation != 0 || held.FailedGeneration != 2 {
		t.Errorf("after the restart the report is %+v", held)
	}
	if err := c.Create(t.Context(), newTicket(matched, "t"), client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "bad: policy bad could not be evaluated") {
		t.Errorf("a ticket that it matches: %v", err)
	}
	if err := c.Create(t.Context(), newTicket(bystander, "t"), client.DryRunAll); err != nil {
		t.Errorf("a ticket that it doesn't match: %v", err)
	}
	p.Labels = map[string]string{"team": "a"}
	if err := c.Update(t.Context(), p); err != nil {
		t.Errorf("the broken policy takes no label: %v", err)
	}
	p.Spec.Enforcement = flightsv1.EnforcementWarn
	if err := c.Update(t.Context(), p); !apierrors.IsInvalid(err) {
		t.Errorf("a change that leaves it broken ends with %v", err)
	}
}

// unregister makes the API server store what nobody reviewed.
func unregister(t *testing.T, c client.Client) {
	t.Helper()
	for _, all := range []client.Object{&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}} {
		if err := c.DeleteAllOf(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the API server calls no webhook", func(ctx context.Context) error {
		probe := newTicket("default", "probe")
		probe.Spec.To = "Bombay"
		return c.Create(ctx, probe, client.DryRunAll)
	})
}

func TestWithoutTheWebhookNothingIsStoredAndFinalizersGo(t *testing.T) {
	w := startWebhook(t)
	c := newClient(t, plane.Config)
	ns := namespace(t, c)
	ft := newTicket(ns, "t")
	if err := c.Create(t.Context(), ft); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), ft); err != nil {
		t.Fatal(err)
	}
	w.stop()
	if err := c.Create(t.Context(), newTicket(ns, "other")); !apierrors.IsInternalError(err) {
		t.Errorf("a ticket that nobody can review: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(ft), ft); err != nil {
		t.Fatal(err)
	}
	release(t, c, ft)
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: program.DefaultNamespace, Name: replica.LeasePrefix + w.options.replica}
	if err := c.Get(t.Context(), key, &lease); !apierrors.IsNotFound(err) {
		t.Errorf("the stopped replica left its Lease: %v", err)
	}
}

func TestACertificateIsTakenUpWithoutARestart(t *testing.T) {
	w := startWebhook(t)
	serial := w.ca.issue(t, w.options.TLSDir)
	eventually(t, "the new certificate is served", func(context.Context) error {
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // only its serial number matters here
		connection, err := dialer.DialContext(t.Context(), "tcp", w.options.webhookBindAddress)
		if err != nil {
			return err
		}
		defer connection.Close()
		state := connection.(*tls.Conn).ConnectionState()
		if got := state.PeerCertificates[0].SerialNumber.Int64(); got != serial || state.Version != tls.VersionTLS13 {
			return fmt.Errorf("serial %d by TLS %x", got, state.Version)
		}
		return nil
	})
	c := newClient(t, plane.Config)
	if err := c.Create(t.Context(), newTicket("default", "with-the-new-certificate"), client.DryRunAll); err != nil {
		t.Errorf("the API server refuses the new certificate: %v", err)
	}
}

func TestStoppingServesOnForAWhile(t *testing.T) {
	timers := clocktesting.NewFakeClock(time.Unix(0, 0))
	asked, ask := context.WithCancel(t.Context())
	later, cancel := drained(asked, time.Minute, timers)
	defer cancel()
	ask()
	eventually(t, "the drain begins", func(context.Context) error {
		if !timers.HasWaiters() {
			return errors.New("no timer")
		}
		return nil
	})
	timers.Step(59 * time.Second)
	if later.Err() != nil {
		t.Error("it stops at once")
	}
	timers.Step(time.Second)
	<-later.Done()
}
