package store

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/controlplane"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// plane is shared by the tests of this package, which keep apart by namespace and policy. It has no controller manager, so
// a deleted namespace stays as long as a test needs it.
var plane *controlplane.Plane

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // else controller-runtime prints a stack about it
	os.Exit(controlplane.RunTests(m, controlplane.Options{}, func(p *controlplane.Plane) { plane = p }))
}

// patience bounds every request of these tests; it is far above what any of them needs.
const patience = time.Minute

// wire lets a test see requests on their way, and lose answers on their way back.
type wire struct {
	next http.RoundTripper
	// before sees a request; an error keeps it from being sent. after sees the answer; an error loses it. Nil: nothing.
	before, after func(*http.Request) error
}

func (w wire) RoundTrip(request *http.Request) (*http.Response, error) {
	if w.before != nil {
		if err := w.before(request); err != nil {
			return nil, err
		}
	}
	response, err := w.next.RoundTrip(request)
	if err != nil || w.after == nil {
		return response, err
	}
	if lost := w.after(request); lost != nil {
		return nil, errors.Join(lost, response.Body.Close())
	}
	return response, nil
}

var errLost = errors.New("the connection broke")

// writes reports whether a request writes a bucket.
func writes(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/quotabuckets") && (r.Method == http.MethodPost || r.Method == http.MethodPut)
}

// connect returns a client whose requests go over a wire.
func connect(t *testing.T, w wire) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), flightsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(plane.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w := w
		w.next = next
		return w
	})
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bench is a namespace, a policy that is counted, and a client without faults.
type bench struct {
	*testing.T
	client.Client
	namespace string
	policy    *flightsv1.FlightPolicy
	limit     int64
}

func newBench(t *testing.T, limit int64) *bench {
	t.Helper()
	b := &bench{T: t, Client: connect(t, wire{}), limit: limit}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "quota-"}}
	if err := b.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	b.namespace = namespace.Name
	b.policy = b.newPolicy()
	return b
}

// newPolicy makes a policy whose tickets are counted.
func (b *bench) newPolicy() *flightsv1.FlightPolicy {
	b.Helper()
	policy := &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "seats-"},
		Spec:       flightsv1.FlightPolicySpec{Rego: "package seats"},
	}
	if err := b.Create(b.Context(), policy); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := b.Delete(context.Background(), policy); err != nil {
			b.Error(err)
		}
	})
	b.counted(policy)
	return policy
}

// counted says that the policy's present generation is counted.
func (b *bench) counted(policy *flightsv1.FlightPolicy) {
	b.Helper()
	policy.Status.CountedGeneration = policy.Generation
	if err := b.Status().Update(b.Context(), policy); err != nil {
		b.Fatal(err)
	}
}

// change gives the policy its next generation.
func (b *bench) change(policy *flightsv1.FlightPolicy) error {
	policy.Spec.Rego += "\n# changed"
	return b.Update(context.Background(), policy)
}

// store returns a store like that of one replica, over a wire.
func (b *bench) store(w wire) *Store {
	b.Helper()
	c := connect(b.T, w)
	s, err := New(Options{Reader: c, Writer: c, OperatorNamespace: b.namespace})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s
}

// claim is a claim on the quota "seats" of the bench's policy.
func (b *bench) claim(amount int64) quota.Claim { return b.claimOf(b.policy, "seats", amount, b.limit) }

func (b *bench) claimOf(policy *flightsv1.FlightPolicy, key string, amount, limit int64) quota.Claim {
	return quota.Claim{
		Policy: policy.Name, PolicyUID: policy.UID, PolicyGeneration: policy.Generation, Key: key, Scope: quota.Namespace,
		Amount: amount, Limit: limit,
	}
}

// create is the review of a new ticket.
func (b *bench) create(name string, claims ...quota.Claim) quota.Review {
	return quota.Review{
		Ticket: types.NamespacedName{Namespace: b.namespace, Name: name}, UID: types.UID("uid-of-" + name), Generation: 1, Claims: claims,
	}
}

// bucket is the bucket of a claim as the API server has it; nil if there is none.
func (b *bench) bucket(c quota.Claim) *flightsv1.QuotaBucket {
	b.Helper()
	bucket, err := readBucket(b.Context(), b.Client, c.Place(b.namespace, b.namespace))
	if err != nil {
		b.Fatal(err)
	}
	return bucket
}

// open makes the bucket of a claim, counted, with so much used.
func (b *bench) open(c quota.Claim, used int64) {
	b.Helper()
	editor := &Editor{Reader: b, Writer: b, Deleter: b}
	if _, err := editor.Edit(b.Context(), c.Place(b.namespace, b.namespace), &c, b.counts(c, used)); err != nil {
		b.Fatal(err)
	}
}

// counts is the count of one ticket that uses so much.
func (b *bench) counts(c quota.Claim, used int64) func(*quota.Page) error {
	revision := b.policy.ResourceVersion
	return func(p *quota.Page) error {
		return p.Count(quota.Snapshot{
			From: revision, To: revision, PolicyGeneration: c.PolicyGeneration, Sample: &c,
			Tickets: func(yield func(quota.Ticket) bool) {
				yield(quota.Ticket{UID: "counted", Generation: 1, Revision: revision, Amount: used})
			},
		})
	}
}

func (b *bench) reserve(s *Store, r quota.Review) (*Hold, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.Reserve(ctx, r)
}

// wanted fails unless a bucket has so many entries and so much reserved.
func (b *bench) wanted(c quota.Claim, entries int, reserved int64) {
	b.Helper()
	switch bucket := b.bucket(c); {
	case bucket == nil:
		b.Error("there is no bucket")
	case len(bucket.Entries) != entries || bucket.Reserved != reserved:
		b.Errorf("the bucket has %d entries and %d reserved, want %d and %d", len(bucket.Entries), bucket.Reserved, entries, reserved)
	}
}

// tally counts the writes of a store.
type tally struct {
	mu      sync.Mutex
	batches []int
	results map[Result]int
}

func (c *tally) Wrote(result Result, batch int, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.results == nil {
		c.results = map[Result]int{}
	}
	c.results[result]++
	c.batches = append(c.batches, batch)
}

// once returns a function that does something the first time only.
func once(do func() error) func() error {
	var done atomic.Bool
	return func() error {
		if done.Swap(true) {
			return nil
		}
		return do()
	}
}
