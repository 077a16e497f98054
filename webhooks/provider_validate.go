package webhooks

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// credentialsSecret is the Secret that the controller may read without further ado.
const credentialsSecret = "flight-operator-credentials"

// providerValidator refuses booking providers that could not be used, or should not be.
type providerValidator struct {
	// live, because a cache could miss the default that was set a moment ago. Two creates at the same moment pass
	// all the same; the controller settles that.
	live client.Reader
}

func (v providerValidator) decide(ctx context.Context, req admission.Request) outcome {
	p, old, err := decodePair[flightsv1.BookingProvider](req)
	if err != nil {
		return undecided(req, err)
	}
	if old != nil && equality.Semantic.DeepEqual(p.Spec, old.Spec) {
		return allow(nil)
	}
	var reasons []reason
	refuse := func(field, text string) {
		reasons = append(reasons, reason{source: field, field: field, code: metav1.CauseTypeFieldValueInvalid, text: text})
	}
	if text := badBundle(p.Spec.CABundle); text != "" {
		refuse("spec.caBundle", text)
	}
	if p.Spec.Default {
		other, err := v.otherDefault(ctx, p.Name)
		if err != nil {
			return undecided(req, err)
		}
		if other != "" {
			refuse("spec.default", fmt.Sprintf("%s is the default BookingProvider already, and there can be one; set its spec.default to false first", other))
		}
	}
	if text := badEndpoint(p.Spec.Endpoint, p.Spec.AllowPrivate); text != "" {
		refuse("spec.endpoint", text)
	}
	if len(reasons) > 0 {
		return invalid(req, reasons)
	}
	return allow(providerWarnings(p))
}

func (v providerValidator) otherDefault(ctx context.Context, name string) (string, error) {
	var providers flightsv1.BookingProviderList
	if err := v.live.List(ctx, &providers); err != nil {
		return "", fmt.Errorf("list booking providers: %w", err)
	}
	for i := range providers.Items {
		if p := &providers.Items[i]; p.Name != name && isDefault(p) {
			return p.Name, nil
		}
	}
	return "", nil
}

// isDefault says whether a provider books the tickets that name none. One that is being deleted takes no more tickets.
func isDefault(p *flightsv1.BookingProvider) bool {
	return p.Spec.Default && p.DeletionTimestamp == nil
}

// badBundle says what is wrong with a bundle of authorities, or nothing.
func badBundle(bundle []byte) string {
	if len(bundle) == 0 {
		return ""
	}
	found := 0
	for rest := bundle; ; found++ {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		switch {
		case block == nil && found == 0:
			return "holds no PEM block; give the certificates of the authorities that sign the endpoint's certificate"
		case block == nil && strings.TrimSpace(string(rest)) != "":
			return fmt.Sprintf("has something after certificate %d that is no PEM block", found)
		case block == nil:
			return ""
		case block.Type != "CERTIFICATE":
			return fmt.Sprintf("block %d is a %s and must be a CERTIFICATE; keep keys out of it", found+1, oneLine(block.Type, 60))
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Sprintf("block %d is no certificate: %v", found+1, err)
		}
	}
}

func providerWarnings(p *flightsv1.BookingProvider) []string {
	if name := p.Spec.CredentialsSecretRef.Name; name != "" && name != credentialsSecret {
		return []string{fmt.Sprintf("spec.credentialsSecretRef: the controller may read %s only; for %s add a Role, which the provider's conditions print", credentialsSecret, name)}
	}
	return nil
}
