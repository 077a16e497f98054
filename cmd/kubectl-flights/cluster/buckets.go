package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/ledger"
)

// operatorNamespace is where cluster-wide buckets are.
const operatorNamespace = "flight-operator-system"

// What a person without some right reads: what is missing from the answer, and who can give it.
const (
	unreadClusterWide = "Quotas that all namespaces share aren't shown: you may not read quotabuckets in namespace " + operatorNamespace +
		". Who administers the cluster may bind the ClusterRole flights-view to you there."
	unreadPolicies = "Counted tickets aren't told by name: you may not read flightpolicies. Who administers the cluster may bind " +
		"the ClusterRole flights-policy-view to you, by a ClusterRoleBinding."
	unreadTickets = "Tickets of other namespaces aren't told by name: you may not list flighttickets there."
)

// buckets are those that concern a namespace, or all if it is empty.
type buckets struct {
	client    client.Client
	namespace string
	policy    string // the only one whose buckets are wanted; empty: all are
	selector  labels.Selector
	notes     io.Writer // what the person may not see
}

// list reads the buckets of the namespace, and those that all namespaces share if that is allowed.
func (b *buckets) list(ctx context.Context) ([]flightsv1.QuotaBucket, error) {
	found, err := b.in(ctx, b.namespace)
	if err != nil {
		return nil, b.advise(err)
	}
	if b.namespace != "" && b.namespace != operatorNamespace {
		shared, err := b.in(ctx, operatorNamespace)
		switch {
		case apierrors.IsForbidden(err):
			fmt.Fprintln(b.notes, unreadClusterWide)
		case err != nil:
			return nil, fmt.Errorf("list the cluster-wide quota buckets: %w", err)
		}
		for i := range shared {
			if shared[i].Scope == flightsv1.QuotaScopeCluster {
				found = append(found, shared[i])
			}
		}
	}
	if b.policy == "" {
		return found, nil
	}
	return slices.DeleteFunc(found, func(q flightsv1.QuotaBucket) bool { return q.Policy != b.policy }), nil
}

// in reads the buckets of one namespace; of all if it is empty.
func (b *buckets) in(ctx context.Context, namespace string) ([]flightsv1.QuotaBucket, error) {
	var list flightsv1.QuotaBucketList
	err := b.client.List(ctx, &list, &client.ListOptions{Namespace: namespace, LabelSelector: b.selector})
	return list.Items, err
}

// advise adds what to do to an answer that alone doesn't say it.
func (b *buckets) advise(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("this cluster knows no QuotaBuckets, is Flight Operator installed there? %w", err)
	case apierrors.IsForbidden(err) && b.namespace == "":
		return fmt.Errorf("list the quota buckets of all namespaces: %w; name yours with --namespace", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("list the quota buckets of namespace %s: %w; who administers it may bind the ClusterRole view or flights-view to you there", b.namespace, err)
	default:
		return fmt.Errorf("list the quota buckets: %w", err)
	}
}

// policies reads all policies; nil if that isn't allowed, which most people aren't.
func (b *buckets) policies(ctx context.Context) (ledger.Policies, error) {
	var list flightsv1.FlightPolicyList
	err := b.client.List(ctx, &list)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the policies: %w", err)
	}
	policies := make(ledger.Policies, len(list.Items))
	for i := range list.Items {
		policies[list.Items[i].Name] = &list.Items[i]
	}
	return policies, nil
}

// eachTicket hands over every ticket that may hold one of the buckets and that may be listed.
func (b *buckets) eachTicket(ctx context.Context, found []flightsv1.QuotaBucket, do func(context.Context, *flightsv1.FlightTicket) error) error {
	namespace := b.namespace
	if slices.ContainsFunc(found, func(q flightsv1.QuotaBucket) bool { return q.Scope == flightsv1.QuotaScopeCluster }) {
		namespace = ""
	}
	err := b.ticketsIn(ctx, namespace, do)
	if apierrors.IsForbidden(err) && namespace != b.namespace {
		fmt.Fprintln(b.notes, unreadTickets)
		namespace = b.namespace
		err = b.ticketsIn(ctx, namespace, do)
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("list the tickets of %s: %w; ask for the ClusterRole view or flights-view there, or leave out -o wide", namespace, err)
	}
	return err
}

// ticketsIn reads page by page, since a cluster may have more tickets than a person's memory should hold.
func (b *buckets) ticketsIn(ctx context.Context, namespace string, do func(context.Context, *flightsv1.FlightTicket) error) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list := &flightsv1.FlightTicketList{}
		err := b.client.List(ctx, list, &client.ListOptions{Namespace: namespace, Limit: o.Limit, Continue: o.Continue, Raw: &o})
		return list, err
	})
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		return do(ctx, object.(*flightsv1.FlightTicket))
	})
}
