package quotabucket

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/quota/census"
)

// Policies are the policies that serve. *policy.Engine is one.
type Policies interface {
	Quotas() []policy.Quota
	Loaded() map[string]policy.Loaded
}

// Options are what a Keeper is made with. All are required but Metrics.
type Options struct {
	// Client reads policies, namespaces and buckets from the cache, and writes. Live reads from the API server.
	Client client.Client
	Live   client.Reader
	// Tickets is the informer's own store of tickets. Its revision must be that of its contents, not that of what the
	// watch has received.
	Tickets census.Tickets

	Policies Policies
	// PoliciesLoaded says whether Policies holds every policy of the cluster. Nothing is counted before.
	PoliciesLoaded func() bool
	// PolicyChanges gets a value when the contents of Policies have changed.
	PolicyChanges <-chan struct{}

	// OperatorNamespace is where buckets of scope Cluster are.
	OperatorNamespace string
	// RequestLife is longer than any request for a ticket can take in the API server, from its review until it is stored
	// (the flag --request-life). Entries are looked for after it, and a quota is in force no earlier.
	RequestLife time.Duration
	// Clock tells the time, with its monotonic part.
	Clock func() time.Time
	// Metrics counts; nil: nobody.
	Metrics *Metrics
}

const (
	// pace is the time between two rounds, and so at least between two counts of one bucket: each is a write that reviews
	// collide with.
	pace = 500 * time.Millisecond
	// idle is the longest time between two rounds. All that a round depends on is announced, except for the time.
	idle = time.Minute
	// writers is how many buckets are written at once.
	writers = 8
)

// place is where a bucket is.
type place = types.NamespacedName
