package installation

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhookAddress is where config/dev sends reviews; a free port takes its place.
const webhookAddress = "127.0.0.1:9443"

// install applies config/dev as a person applies config/default, and mounts the certificates that come of it.
func (i *Installation) install(ctx context.Context) error {
	i.Webhook, i.Controller = newProgram("webhook"), newProgram("controller")
	for _, p := range []*Program{i.Webhook, i.Controller} {
		if err := p.reserve(); err != nil {
			return fmt.Errorf("find ports for the %s: %w", p.name, err)
		}
	}
	rendered, err := i.Kubectl(ctx, "kustomize", "config/dev")
	if err != nil {
		return err
	}
	if !strings.Contains(rendered, webhookAddress) {
		return fmt.Errorf("config/dev calls no webhook at %s", webhookAddress)
	}
	rendered = strings.ReplaceAll(rendered, webhookAddress, i.Webhook.Address)
	if _, err := i.Apply(ctx, rendered, "--server-side"); err != nil {
		return fmt.Errorf("apply config/dev: %w", err)
	}
	if _, err := i.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd",
		"flighttickets.flights.com", "flightpolicies.flights.com", "bookingproviders.flights.com"); err != nil {
		return err
	}
	if err := i.mountCertificates(ctx); err != nil {
		return err
	}
	return i.WaitFor(ctx, "the authority in the webhook configurations", i.injected)
}

// injected says whether cert-manager has put the authority into every webhook.
func (i *Installation) injected(ctx context.Context) (bool, error) {
	key := client.ObjectKey{Name: "flight-operator"}
	var authority corev1.Secret
	if err := i.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: "flight-webhook-tls"}, &authority); err != nil {
		return false, err
	}
	var mutating admissionv1.MutatingWebhookConfiguration
	if err := i.Client.Get(ctx, key, &mutating); err != nil {
		return false, err
	}
	var validating admissionv1.ValidatingWebhookConfiguration
	if err := i.Client.Get(ctx, key, &validating); err != nil {
		return false, err
	}
	var bundles [][]byte
	for _, w := range mutating.Webhooks {
		bundles = append(bundles, w.ClientConfig.CABundle)
	}
	for _, w := range validating.Webhooks {
		bundles = append(bundles, w.ClientConfig.CABundle)
	}
	for _, bundle := range bundles {
		if !bytes.Contains(bundle, bytes.TrimSpace(authority.Data["ca.crt"])) {
			return false, nil
		}
	}
	return len(bundles) > 0, nil
}

// ensureSecret writes one key of the Secret of credentials.
func (i *Installation) ensureSecret(ctx context.Context, key, value string) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: CredentialsSecret},
		StringData: map[string]string{key: value},
	}
	err := i.Client.Create(ctx, secret)
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create the Secret of credentials: %w", err)
	}
	if err == nil {
		return nil
	}
	patch := fmt.Sprintf(`{"stringData":{%q:%q}}`, key, value)
	if err := i.Client.Patch(ctx, secret, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		return fmt.Errorf("write the Secret of credentials: %w", err)
	}
	return nil
}
