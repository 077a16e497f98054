package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// fieldManager owns the annotations that the commands write.
const fieldManager = "kubectl-flights"

// tickets are those of one namespace.
type tickets struct {
	client    client.WithWatch
	namespace string
}

// get reads a ticket.
func (t *tickets) get(ctx context.Context, name string) (*flightsv1.FlightTicket, error) {
	ticket := &flightsv1.FlightTicket{}
	if err := t.client.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, ticket); err != nil {
		return nil, fmt.Errorf("read FlightTicket %s: %w", name, t.advise(err))
	}
	return ticket, nil
}

// names lists tickets but those that are named already.
func (t *tickets) names(ctx context.Context, named []string) ([]string, error) {
	var list flightsv1.FlightTicketList
	if err := t.client.List(ctx, &list, client.InNamespace(t.namespace)); err != nil {
		return nil, fmt.Errorf("list FlightTickets: %w", err)
	}
	var found []string
	for i := range list.Items {
		if name := list.Items[i].Name; !slices.Contains(named, name) {
			found = append(found, name)
		}
	}
	return found, nil
}

// annotate writes annotations on the ticket as it was read; one that changed since is a conflict. With dryRun nothing is
// stored, and the answer is the ticket as it would be.
func (t *tickets) annotate(ctx context.Context, ticket *flightsv1.FlightTicket, annotations map[string]string, how dryRun) (*flightsv1.FlightTicket, error) {
	after := ticket.DeepCopy()
	if how == dryRunClient {
		if after.Annotations == nil {
			after.Annotations = map[string]string{}
		}
		maps.Copy(after.Annotations, annotations)
		return after, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": ticket.ResourceVersion, "annotations": annotations,
	}})
	if err != nil {
		return nil, fmt.Errorf("write the patch: %w", err)
	}
	options := []client.PatchOption{client.FieldOwner(fieldManager)}
	if how == dryRunServer {
		options = append(options, client.DryRunAll)
	}
	if err := t.client.Patch(ctx, after, client.RawPatch(types.MergePatchType, patch), options...); err != nil {
		return nil, err
	}
	return after, nil
}

// decision says which annotations to write on a ticket as it stands, or why there is nothing to write.
type decision func(*flightsv1.FlightTicket) (map[string]string, error)

// decide reads a ticket, asks what to write, and writes it. When the ticket changed in between it is read again, and asked
// about again: the controller writes to a waiting ticket now and then.
func (t *tickets) decide(ctx context.Context, name string, d decision, how dryRun) (*flightsv1.FlightTicket, error) {
	var after *flightsv1.FlightTicket
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		ticket, err := t.get(ctx, name)
		if err != nil {
			return err
		}
		annotations, err := d(ticket)
		if err != nil {
			return err
		}
		after, err = t.annotate(ctx, ticket, annotations, how)
		return err
	})
	if err != nil {
		return nil, err
	}
	return after, nil
}

// advise adds what to do to an answer that alone doesn't say it.
func (t *tickets) advise(err error) error {
	switch {
	case !apierrors.IsNotFound(err):
		return err
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse): // no such kind, rather than no such ticket
		return fmt.Errorf("this cluster knows no FlightTickets, is Flight Operator installed there? %w", err)
	default:
		return fmt.Errorf("namespace %s has no such ticket, see kubectl get flighttickets --namespace %s: %w", t.namespace, t.namespace, err)
	}
}
