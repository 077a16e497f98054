package stress

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/test/installation"
)

const (
	rounds        = 5  // of each setting, alternating
	benchClients  = 32 // as in the other measurements of admission
	benchSpan     = 6 * time.Second
	hotNamespace  = "bench-hot"  // the quota counts its tickets
	freeNamespace = "bench-free" // it doesn't
)

// hotQuota counts every ticket of one namespace in one bucket, in which there is always room.
const hotQuota = `package bench.hot

quota contains {"key": "all", "scope": "Namespace", "amount": 1, "limit": 9007199254740992}
`

// setting is one way in which tickets are created.
type setting struct {
	namespace string
	replicas  int
	program   string // of the webhook: batching as it is, or one
}

const (
	batching = "batching"
	one      = "one compare-and-swap a request"
)

func settings() []setting {
	var all []setting
	for _, n := range []int{1, 3} {
		all = append(all,
			setting{freeNamespace, n, batching}, setting{hotNamespace, n, batching}, setting{hotNamespace, n, one})
	}
	return all
}

// BenchmarkAHotBucket measures how many tickets are created a second when all are charged to one bucket, against none and
// against a webhook that writes the bucket anew for each request. The tickets are suspended: the controller counts, ages
// and reports in all settings, and books nothing. It takes no account of b.N: a round has a fixed time.
func BenchmarkAHotBucket(b *testing.B) {
	m := newMeasurement(b)
	rates := map[setting][]float64{}
	for round := range rounds {
		for _, s := range settings() {
			rate := m.create(b, s)
			rates[s] = append(rates[s], rate)
			fmt.Fprintf(os.Stderr, "round %d: %s, %d replicas, %s: %.0f a second\n", round+1, s.namespace, s.replicas, s.program, rate)
		}
	}
	table := ratesTable(rates)
	fmt.Fprintln(os.Stderr, table)
	if path := os.Getenv("BENCH_DOCS"); path != "" {
		if err := writeSection(path, table); err != nil {
			b.Fatal(err)
		}
	}
}

// measurement is the town with programs that reach the API server without a proxy.
type measurement struct {
	admin    client.WithWatch
	person   client.Client
	webhooks map[string][]*installation.Replica
	number   int // of tickets so far, for their names
}

func newMeasurement(b *testing.B) *measurement {
	b.Helper()
	ctx := b.Context()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	m := &measurement{admin: city.house.Client, webhooks: map[string][]*installation.Replica{}}
	for _, w := range city.webhooks {
		must(w.Stop())
	}
	must(city.controller.Stop())
	config := city.house.Plane.Config
	controller, err := city.house.AddSide(ctx, "bench-controller", config.Host, config.CAData)
	must(err)
	must(controller.Start(ctx))
	person, err := city.person("traveller")
	must(err)
	m.person = person
	program, err := buildWithoutBatches(ctx, b.TempDir())
	must(err)
	for binaryName, binary := range map[string]string{batching: "", one: program} {
		for n := range replicas {
			name := fmt.Sprintf("bench-%s-%d", strings.Fields(binaryName)[0], n+1)
			replica, err := city.house.AddReplica(ctx, installation.ReplicaOptions{Name: name, Binary: binary})
			must(err)
			m.webhooks[binaryName] = append(m.webhooks[binaryName], replica)
		}
	}
	m.serve(b, setting{replicas: replicas, program: batching})
	for _, namespace := range []string{hotNamespace, freeNamespace} {
		must(m.admin.Create(ctx, namespaceNamed(namespace)))
	}
	must(m.admin.Create(ctx, &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-hot"},
		Spec:       flightsv1.FlightPolicySpec{Rego: hotQuota, Match: flightsv1.PolicyMatch{Namespaces: []string{hotNamespace}}},
	}))
	must(awaitInForce(ctx, m.admin, "bench-hot"))
	return m
}

// serve lets so many replicas of a program answer reviews, and no others run.
func (m *measurement) serve(b *testing.B, s setting) {
	b.Helper()
	var targets []string
	for program, all := range m.webhooks {
		for n, w := range all {
			wanted := program == s.program && n < s.replicas
			switch {
			case wanted && !w.Running():
				if err := w.Start(b.Context()); err != nil {
					b.Fatal(err)
				}
			case !wanted && w.Running():
				if err := w.Stop(); err != nil {
					b.Fatal(err)
				}
			}
			if wanted {
				targets = append(targets, w.Address)
			}
		}
	}
	city.balancer.use(targets...)
}

// create measures one round and removes what it made.
func (m *measurement) create(b *testing.B, s setting) (rate float64) {
	b.Helper()
	m.serve(b, s)
	for range benchClients { // the first requests open connections, and find those closed that led to other replicas
		m.number++
		first := m.ticket(s.namespace, m.number)
		if err := retry.OnError(retry.DefaultBackoff, apierrors.IsInternalError, func() error {
			return m.person.Create(b.Context(), first.DeepCopy())
		}); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(b.Context(), benchSpan)
	defer cancel()
	counts, began := make([]int, benchClients), time.Now()
	var creating sync.WaitGroup
	for n := range benchClients {
		creating.Go(func() { counts[n] = m.keepCreating(b, ctx, s.namespace, fmt.Sprintf("r%d-c%d", m.number, n)) })
	}
	creating.Wait()
	took, sum := time.Since(began), 0
	for _, n := range counts {
		sum += n
	}
	m.clean(b, s.namespace)
	return float64(sum) / took.Seconds()
}

func (m *measurement) keepCreating(b *testing.B, ctx context.Context, namespace, name string) (created int) {
	for n := 0; ctx.Err() == nil; n++ {
		t := m.ticket(namespace, n)
		t.Name = fmt.Sprintf("%s-%d", name, n)
		if err := m.person.Create(context.WithoutCancel(ctx), t); err != nil {
			b.Errorf("create a ticket: %v", err)
			return created
		}
		created++
	}
	return created
}

func (m *measurement) ticket(namespace string, n int) *flightsv1.FlightTicket {
	return &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("first-%d", n)},
		Spec:       flightsv1.FlightTicketSpec{From: "Mumbai", To: "London", Number: 2, Suspend: true},
	}
}

// clean removes the tickets of a round and waits until none is there, so that no round works off what another left.
func (m *measurement) clean(b *testing.B, namespace string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	err := insist(ctx, func() error {
		if err := m.admin.DeleteAllOf(ctx, &flightsv1.FlightTicket{}, client.InNamespace(namespace)); err != nil {
			return err
		}
		list := &flightsv1.FlightTicketList{}
		if err := m.admin.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("tickets of namespace %s are left", namespace)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func median(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare[float64])
	return sorted[len(sorted)/2]
}

// ratesTable puts the medians beside their targets.
func ratesTable(rates map[setting][]float64) string {
	var b strings.Builder
	b.WriteString("| replicas | without a quota | one hot bucket | of it, target | one compare-and-swap a request | times that, target |\n|---|---|---|---|---|---|\n")
	for _, n := range []int{1, 3} {
		free, hot := median(rates[setting{freeNamespace, n, batching}]), median(rates[setting{hotNamespace, n, batching}])
		single := median(rates[setting{hotNamespace, n, one}])
		fmt.Fprintf(&b, "| %d | %.0f | %.0f | %.0f %%, 70 %% | %.0f | %.1f, 3 |\n", n, free, hot, 100*hot/free, single, hot/single)
	}
	return b.String()
}
