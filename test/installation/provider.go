package installation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

const (
	// ProviderName is the BookingProvider of the simulator, and the key of its token in the Secret.
	ProviderName = "simulator"
	// CredentialsSecret is the Secret with the tokens of the booking APIs.
	CredentialsSecret = "flight-operator-credentials"
)

// ApplyProvider writes the BookingProvider of the simulator: what the Options say, changed by edit (may be nil). It
// doesn't wait until the controller has looked at it.
func (i *Installation) ApplyProvider(ctx context.Context, edit func(*flightsv1.BookingProvider)) error {
	authority, err := i.Simulator.Authority()
	if err != nil {
		return err
	}
	provider := &flightsv1.BookingProvider{ObjectMeta: metav1.ObjectMeta{Name: ProviderName}}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		_, err := controllerutil.CreateOrUpdate(ctx, i.Client, provider, func() error {
			provider.Spec = i.providerSpec(authority)
			if edit != nil {
				edit(provider)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("apply provider %s: %w", ProviderName, err)
	}
	return nil
}

func (i *Installation) providerSpec(authority []byte) flightsv1.BookingProviderSpec {
	settings := i.options.Settings
	return flightsv1.BookingProviderSpec{
		Type:                 flightsv1.ProviderTypeREST,
		Endpoint:             i.Simulator.URL,
		AllowPrivate:         true,
		CABundle:             authority,
		CredentialsSecretRef: flightsv1.SecretKeyReference{Name: CredentialsSecret, Key: ProviderName},
		Timeout:              metav1.Duration{Duration: 5 * time.Second},
		RateLimit:            flightsv1.RateLimit{RequestsPerMinute: 60000, Burst: 1000},
		Capabilities: flightsv1.Capabilities{
			IdempotencyKeyTTL: settings.IdempotencyKeyTTL,
			Lookup:            ptr.To(!settings.NoLookup),
			ReadLag:           metav1.Duration{Duration: max(settings.ReadLag.Duration, time.Second)},
			MaxProcessing:     metav1.Duration{Duration: max(settings.Processing.Duration, 2*time.Second)},
		},
		Default: true,
	}
}

// ProviderReady says whether the controller found the provider of the simulator ready, as it stands now.
func (i *Installation) ProviderReady(ctx context.Context) (bool, error) {
	var provider flightsv1.BookingProvider
	if err := i.Client.Get(ctx, client.ObjectKey{Name: ProviderName}, &provider); err != nil {
		return false, err
	}
	ready := meta.FindStatusCondition(provider.Status.Conditions, flightsv1.ConditionReady)
	if ready == nil {
		return false, fmt.Errorf("provider %s has no condition Ready", ProviderName)
	}
	if ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != provider.Generation {
		return false, fmt.Errorf("provider %s is %s/%s: %s", ProviderName, ready.Status, ready.Reason, ready.Message)
	}
	return true, nil
}

// RotateToken makes the simulator take the new token alone, for the same account, and stores it for the controller.
func (i *Installation) RotateToken(ctx context.Context, token string) error {
	if err := i.Simulator.SetTokens(ctx, map[string]string{token: Account}); err != nil {
		return err
	}
	return i.StoreToken(ctx, token)
}

// StoreToken writes a token into the Secret that the controller reads, whatever the simulator takes.
func (i *Installation) StoreToken(ctx context.Context, token string) error {
	return i.ensureSecret(ctx, ProviderName, token)
}
