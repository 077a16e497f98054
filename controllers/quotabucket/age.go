package quotabucket

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// release looks live for the tickets of aged entries, and drops those that stand for nothing (rule 9).
func (k *Keeper) release(ctx context.Context, a aged) error {
	var nonces []string
	for _, e := range a.entries {
		over, err := k.over(ctx, a.bucket, e)
		if err != nil {
			return err
		}
		if over {
			nonces = append(nonces, e.Nonce)
		}
	}
	if len(nonces) == 0 {
		return nil
	}
	_, err := k.editor.Edit(ctx, placeOf(a.bucket), nil, func(p *quota.Page) error {
		p.Release(nonces...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop aged entries: %w", err)
	}
	k.Metrics.aged(len(nonces))
	log.FromContext(ctx).Info("entries are dropped whose requests stored nothing", "policy", a.bucket.Policy, "entries", len(nonces))
	return nil
}

// over reports whether what an entry was made for is not stored and never will be.
func (k *Keeper) over(ctx context.Context, b *flightsv1.QuotaBucket, e flightsv1.QuotaEntry) (bool, error) {
	var t flightsv1.FlightTicket
	err := k.Live.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Name}, &t)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read ticket %s/%s: %w", e.Namespace, e.Name, err)
	case !quota.Stored(e, t.UID, t.Generation):
		return true, nil
	}
	q, serves := k.quotaOf(b)
	if !serves || q.Stage() != policy.StageBooking {
		return false, nil // the next count takes it
	}
	return k.unwritten(ctx, q, b, e, &t)
}

func (k *Keeper) quotaOf(b *flightsv1.QuotaBucket) (policy.Quota, bool) {
	for _, q := range k.Policies.Quotas() {
		if q.PolicyUID() == b.PolicyUID {
			return q, true
		}
	}
	return policy.Quota{}, false
}

// unwritten reports whether the operation that an entry was made for isn't written down. Who made the entry may have stood
// still since, and may write it yet: under the resourceVersion that it knows. So the ticket is written once before the
// entry is dropped, and that write fails then.
func (k *Keeper) unwritten(ctx context.Context, q policy.Quota, b *flightsv1.QuotaBucket, e flightsv1.QuotaEntry, t *flightsv1.FlightTicket) (bool, error) {
	holding, err := policy.NewHolding(t, nil)
	if err != nil {
		return false, fmt.Errorf("read what ticket %s/%s holds: %w", t.Namespace, t.Name, err)
	}
	claims, err := q.Claims(ctx, holding)
	if err != nil {
		return false, fmt.Errorf("ask what ticket %s/%s holds: %w", t.Namespace, t.Name, err)
	}
	for _, c := range claims {
		if c.Key == b.Key && c.Scope == b.Scope && c.Amount >= e.Amount {
			return false, nil // the next count takes it
		}
	}
	before := t.ResourceVersion
	meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{
		Type: flightsv1.ConditionQuotaHeld, Status: metav1.ConditionFalse, Reason: flightsv1.ReasonQuotaCounting,
		ObservedGeneration: t.Generation, LastTransitionTime: metav1.NewTime(k.Clock()),
		Message: fmt.Sprintf("what was held of quota %q of policy %s is given back, since no operation was begun (%.8s)", b.Key, b.Policy, e.Nonce),
	})
	switch err := k.Client.Status().Update(ctx, t); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil // the next round looks again
	case err != nil:
		return false, fmt.Errorf("write ticket %s/%s before its entry goes: %w", t.Namespace, t.Name, err)
	}
	return t.ResourceVersion != before, nil
}
