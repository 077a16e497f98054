package bookingprovider

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

const (
	// maxNamed is how many tickets a provider that is being deleted names. maxCounted is up to where it counts them:
	// beyond, its status would be written at every look while nobody needs the number.
	maxNamed   = 5
	maxCounted = 1000
)

// users lists the tickets, as namespace/name and sorted, whose booking or open operation is with a provider.
func (r *Reconciler) users(ctx context.Context, provider string) ([]string, error) {
	var all flightsv1.FlightTicketList
	// Read only: copies of all tickets, every few seconds, would cost more than all else here.
	err := r.Client.List(ctx, &all, client.MatchingFields{usesIndex: provider}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list tickets of provider: %w", err)
	}
	names := make([]string, 0, len(all.Items))
	for i := range all.Items {
		names = append(names, all.Items[i].Namespace+"/"+all.Items[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// staying says why a provider that is being deleted is still there. It is the same for the same users.
func staying(users []string) string {
	switch n := len(users); {
	case n == 0:
		return "is being deleted; no ticket has a booking or an open operation with it, so it goes in a few seconds"
	case n == 1:
		return "is being deleted; it stays until the ticket that has a booking or an open operation with it is gone: " +
			users[0]
	case n <= maxNamed:
		return fmt.Sprintf("is being deleted; it stays until the %d tickets that have a booking or an open operation "+
			"with it are gone: %s", n, strings.Join(users, ", "))
	case n <= maxCounted:
		return fmt.Sprintf("is being deleted; it stays until the %d tickets that have a booking or an open operation "+
			"with it are gone: %s, …", n, strings.Join(users[:maxNamed], ", "))
	default:
		return fmt.Sprintf("is being deleted; it stays until the tickets that have a booking or an open operation with "+
			"it, more than %d, are gone: %s, …", maxCounted, strings.Join(users[:maxNamed], ", "))
	}
}

// leaving words the condition Ready of a provider that is being deleted. It serves the tickets that it has, so what
// keeps it from that is said too.
func leaving(p *flightsv1.BookingProvider, stays string) verdict {
	v := verdict{metav1.ConditionFalse, flightsv1.ReasonDeleting, stays}
	trouble := cmp.Or(failing(p, flightsv1.ConditionCredentialsAccepted), failing(p, flightsv1.ConditionReachable))
	if trouble != "" {
		v.message += "; it can't be called meanwhile: " + trouble
	}
	return v
}

// failing is the message of a condition that is false; empty if it is not.
func failing(p *flightsv1.BookingProvider, kind string) string {
	c := meta.FindStatusCondition(p.Status.Conditions, kind)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	return c.Message
}
