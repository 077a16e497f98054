package controlplane_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	selfSignedIssuer = `
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: self-signed}
spec: {selfSigned: {}}`

	webhookCertificate = `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: webhook}
spec:
  secretName: webhook-tls
  dnsNames: [webhook.example.com]
  issuerRef: {name: self-signed, kind: Issuer}`
)

func TestCertManagerIssuesACertificateAndInjectsItsAuthority(t *testing.T) {
	process, err := plane.StartCertManager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, plane.Config)
	namespace := newNamespace(t, c)
	for _, text := range []string{selfSignedIssuer, webhookCertificate} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace(namespace)
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	configuration := injectedConfiguration(t, c, namespace+"/webhook")

	secret := &corev1.Secret{}
	eventually(t, "the certificate's Secret", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "webhook-tls"}, secret)
		return err == nil, client.IgnoreNotFound(err)
	})
	if _, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"]); err != nil {
		t.Errorf("the Secret holds no usable certificate: %v", err)
	}
	eventually(t, "the CA bundle of the webhook configuration", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(configuration), configuration)
		return err == nil && bytes.Contains(configuration.Webhooks[0].ClientConfig.CABundle, bytes.TrimSpace(secret.Data["ca.crt"])), err
	})
	if err := process.Stop(); err != nil {
		t.Errorf("cert-manager did not end in order: %v", err)
	}
}

// injectedConfiguration makes a webhook configuration that asks for the authority of a Certificate. It concerns an
// API group that nobody has, so that it calls no webhook.
func injectedConfiguration(t *testing.T, c client.Client, certificate string) *admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	effects, url := admissionv1.SideEffectClassNone, "https://webhook.example.com/"
	configuration := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "injected-",
			Annotations:  map[string]string{"cert-manager.io/inject-ca-from": certificate},
		},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:                    "webhook.example.com",
			SideEffects:             &effects,
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig:            admissionv1.WebhookClientConfig{URL: &url},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{"nobody.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"things"}},
			}},
		}},
	}
	if err := c.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	return configuration
}
