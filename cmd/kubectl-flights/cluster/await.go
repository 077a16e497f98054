package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// awaitHandled watches a ticket until the controller has handled the request of a time, and returns it as it stands then;
// nil if it is gone, which handles every request.
func (t *tickets) awaitHandled(ctx context.Context, ticket *flightsv1.FlightTicket, at string) (*flightsv1.FlightTicket, error) {
	lw := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, ticket.Name).String()
		return t.client.Watch(ctx, &flightsv1.FlightTicketList{}, &client.ListOptions{Namespace: t.namespace, Raw: &o})
	}}
	last, err := watchtools.Until(ctx, ticket.ResourceVersion, lw, func(event watch.Event) (bool, error) {
		if event.Type == watch.Error {
			return false, apierrors.FromObject(event.Object)
		}
		seen, is := event.Object.(*flightsv1.FlightTicket)
		return event.Type == watch.Deleted || is && handled(seen, at), nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("wait for the controller: %w", err)
	case last.Type == watch.Deleted:
		return nil, nil
	}
	return last.Object.(*flightsv1.FlightTicket), nil
}

// handled says whether the request of a time, or a later one that took its place, was handled.
func handled(ticket *flightsv1.FlightTicket, at string) bool {
	last := ticket.Status.LastHandledReconcileAt
	now := ticket.Annotations[flightsv1.ReconcileRequestedAtAnnotation]
	return last == at || now != at && last == now
}

// standing says how a ticket stands, as its condition Ready does.
func standing(ticket *flightsv1.FlightTicket) string {
	if ticket == nil {
		return "is gone"
	}
	ready := meta.FindStatusCondition(ticket.Status.Conditions, flightsv1.ConditionReady)
	if ready == nil {
		return "has no condition Ready"
	}
	return ready.Reason + ": " + ready.Message
}
