package quotabucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/controlplane"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/policy/loader"
	"github.com/flight-operator/flight-operator/internal/quota"
	"github.com/flight-operator/flight-operator/internal/quota/store"
	"github.com/flight-operator/flight-operator/test/apiproxy"
)

// plane is shared by the tests of this package. Deleted namespaces end in it.
var plane *controlplane.Plane

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // else controller-runtime prints a stack about it
	os.Exit(controlplane.RunTests(m, controlplane.Options{ControllerManager: true}, func(p *controlplane.Plane) { plane = p }))
}

const (
	// patience bounds every wait of these tests; it is far above what any of them needs.
	patience = 90 * time.Second
	// life is a request's, by the clock of a test.
	life = time.Hour
)

// scene is a cluster with a namespace for tickets and one for the operator.
type scene struct {
	*testing.T
	client.Client
	namespace, operator string
	namespaces          string // that policies match
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, Client: connect(t, plane.Config)}
	s.namespace, s.operator = s.newNamespace("team-"), s.newNamespace("operator-")
	s.namespaces = s.namespace
	return s
}

func schemeOf(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), flightsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func connect(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: schemeOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *scene) newNamespace(prefix string) string {
	s.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	if err := s.Create(s.Context(), n); err != nil {
		s.Fatal(err)
	}
	return n.Name
}

// counter is a keeper that runs, with a clock that a test sets forward.
type counter struct {
	*Keeper
	gate  *Gate
	ahead atomic.Int64
	stop  func()
}

func (c *counter) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// forward lets time pass for a keeper. It notices at its next round.
func (c *counter) forward(d time.Duration) { c.ahead.Add(int64(d)) }

// start starts a keeper that talks to the API server by way of a configuration, and stops it with the test.
func (s *scene) start(to *rest.Config) *counter {
	s.Helper()
	mgr, err := ctrl.NewManager(to, ctrl.Options{
		Scheme: schemeOf(s.T), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		s.Fatal(err)
	}
	engine := policy.NewEngine(policy.RuleQuota)
	policies := loader.New(mgr.GetClient(), engine)
	tickets, err := TicketsOf(s.Context(), mgr.GetCache())
	if err := errors.Join(err, policies.SetupWithManager(mgr)); err != nil {
		s.Fatal(err)
	}
	c := &counter{}
	c.Keeper, c.gate, err = New(Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Tickets: tickets,
		Policies: engine, PoliciesLoaded: policies.Synced, PolicyChanges: policies.Changes(),
		OperatorNamespace: s.operator, RequestLife: life, Clock: c.now,
	})
	if err != nil {
		s.Fatal(err)
	}
	if err := c.SetupWithManager(mgr); err != nil {
		s.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	c.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			s.Errorf("the manager: %v", err)
		}
		c.gate.Close()
	})
	s.Cleanup(c.stop)
	if !mgr.GetCache().WaitForCacheSync(s.Context()) {
		s.Fatal("the caches are not filled")
	}
	return c
}

// proxied returns a way to the API server whose watches a test can hold back.
func (s *scene) proxied() (*rest.Config, *apiproxy.Proxy) {
	s.Helper()
	server, err := url.Parse(plane.Config.Host)
	if err != nil {
		s.Fatal(err)
	}
	admin, err := rest.TransportFor(plane.Config)
	if err != nil {
		s.Fatal(err)
	}
	p := apiproxy.Start(apiproxy.Options{Server: server, Transport: admin, Name: func(*http.Request) string { return "" }})
	s.Cleanup(p.Close)
	return &rest.Config{Host: p.URL(), TLSClientConfig: rest.TLSClientConfig{CAData: p.Authority()}, QPS: -1}, p
}

// policy stores a policy, served by all replicas of the webhook, and deletes it with the test.
func (s *scene) policy(name, rego string) *flightsv1.FlightPolicy {
	s.Helper()
	p := &flightsv1.FlightPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flightsv1.FlightPolicySpec{
		Rego: rego, Match: flightsv1.PolicyMatch{Namespaces: []string{s.namespaces}},
	}}
	if err := s.Create(s.Context(), p); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := client.IgnoreNotFound(s.Delete(context.Background(), p)); err != nil {
			s.Error(err)
		}
	})
	return p
}

// serve says in a policy's status that all replicas serve it, as the controller of policies would.
func (s *scene) serve(name string) {
	s.Helper()
	s.eventually("the status of policy "+name, func() (bool, error) {
		p := s.policyOf(name)
		p.Status.ObservedGeneration, p.Status.Replicas, p.Status.ReplicasServing = p.Generation, 1, 1
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
			Type: flightsv1.ConditionReady, Status: metav1.ConditionFalse, Reason: flightsv1.ReasonCounting, ObservedGeneration: p.Generation,
		})
		err := s.Status().Update(s.Context(), p)
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}

func (s *scene) policyOf(name string) *flightsv1.FlightPolicy {
	s.Helper()
	p := &flightsv1.FlightPolicy{}
	if err := s.Get(s.Context(), client.ObjectKey{Name: name}, p); err != nil {
		s.Fatal(err)
	}
	return p
}

// change gives a policy another text.
func (s *scene) change(name, rego string) {
	s.Helper()
	s.eventually("the change of policy "+name, func() (bool, error) {
		p := s.policyOf(name)
		p.Spec.Rego = rego
		err := s.Update(s.Context(), p)
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// ticket stores a ticket for a cost centre, as nobody reviewed it.
func (s *scene) ticket(name, centre string, seats int32) *flightsv1.FlightTicket {
	s.Helper()
	t := &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       flightsv1.FlightTicketSpec{From: "Mumbai", To: "London", Number: seats, CostCenter: centre},
	}
	if err := s.Create(s.Context(), t); err != nil {
		s.Fatal(err)
	}
	return t
}

// eventually repeats something until it is so.
func (s *scene) eventually(what string, is func() (bool, error)) {
	s.Helper()
	var last error
	err := wait.PollUntilContextTimeout(s.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		done, err := is()
		last = err
		return done, nil
	})
	if err != nil {
		s.Fatalf("%s: %v; last %v", what, err, last)
	}
}

// bucket is the bucket of a policy and key; nil if there is none.
func (s *scene) bucket(p *flightsv1.FlightPolicy, scope quota.Scope, key string) *flightsv1.QuotaBucket {
	s.Helper()
	b := &flightsv1.QuotaBucket{}
	err := s.Get(s.Context(), s.placed(p, scope, key), b)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return b
}

func (s *scene) placed(p *flightsv1.FlightPolicy, scope quota.Scope, key string) place {
	return quota.Claim{PolicyUID: p.UID, Scope: scope, Key: key}.Place(s.namespace, s.operator)
}

// says waits until the cluster's bucket of a key says something, or until there is none.
func (s *scene) says(p *flightsv1.FlightPolicy, key, want string) {
	s.Helper()
	got := ""
	s.eventually(fmt.Sprintf("bucket %q says %q", key, want), func() (bool, error) {
		got = "none"
		if b := s.bucket(p, quota.Cluster, key); b != nil {
			got = fmt.Sprintf("used %d, retained %d, %d entries, by %d", b.Used, b.Retained, len(b.Entries), b.CountedGeneration)
		}
		return got == want, fmt.Errorf("it says %q", got)
	})
}

// counted waits until a policy says that its generation is counted.
func (s *scene) counted(name string) {
	s.Helper()
	s.eventually("policy "+name+" is counted", func() (bool, error) {
		p := s.policyOf(name)
		return p.Status.CountedGeneration == p.Generation, fmt.Errorf("counted %d of %d", p.Status.CountedGeneration, p.Generation)
	})
}

// reserve reserves for a review as a replica of the webhook would, and returns what it is told.
func (s *scene) reserve(p *flightsv1.FlightPolicy, ticket types.NamespacedName, uid types.UID, generation int64, key string, amount, limit int64) error {
	s.Helper()
	replica, err := store.New(store.Options{Reader: s.Client, Writer: s.Client, OperatorNamespace: s.operator})
	if err != nil {
		s.Fatal(err)
	}
	defer replica.Close()
	_, err = replica.Reserve(s.Context(), quota.Review{Ticket: ticket, UID: uid, Generation: generation, Claims: []quota.Claim{{
		Policy: p.Name, PolicyUID: p.UID, PolicyGeneration: p.Generation, Key: key, Scope: quota.Cluster, Amount: amount, Limit: limit,
	}}})
	return err
}

// poke makes keepers look again: something happens to a ticket that concerns no quota.
func (s *scene) poke(t *flightsv1.FlightTicket) {
	s.Helper()
	text := fmt.Sprintf(`{"metadata":{"labels":{"poked":"%d"}}}`, time.Now().UnixNano())
	if err := s.Patch(s.Context(), t, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
		s.Fatal(err)
	}
}

// numbers are of names that occur once.
var numbers atomic.Int64

func (s *scene) made() int64 { return numbers.Add(1) }
