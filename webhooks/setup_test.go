package webhooks

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
)

// shelf is a reader of a few objects, in place of a cache.
type shelf struct {
	namespaces map[string]map[string]string // labels by name
	providers  []flightsv1.BookingProvider
	err        error // of every read
}

func (s *shelf) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	labels, found := s.namespaces[key.Name]
	if s.err != nil || !found {
		return s.failure(key.Name)
	}
	into.(*corev1.Namespace).Name = key.Name
	into.SetLabels(labels)
	return nil
}

func (s *shelf) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if s.err != nil {
		return s.err
	}
	into.(*flightsv1.BookingProviderList).Items = s.providers
	return nil
}

func (s *shelf) failure(name string) error {
	if s.err != nil {
		return s.err
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
}

// world is a webhook server with a real engine.
type world struct {
	engine *policy.Engine
	quotas *ledger
	// renew answers who waits for a newer policy; nil: it doesn't come.
	renew    func(policy string, uid types.UID, generation int64) error
	log      logr.Logger
	rights   *rightsOf
	registry *prometheus.Registry
	cached   *shelf
	live     *shelf
	synced   bool
	handlers map[string]http.Handler
}

func newWorld(t *testing.T, policies ...*flightsv1.FlightPolicy) *world {
	t.Helper()
	w := &world{engine: policy.NewEngine(policy.RuleQuota), quotas: &ledger{}, log: logr.Discard(), rights: &rightsOf{}, synced: true}
	provider := flightsv1.BookingProvider{ObjectMeta: metav1.ObjectMeta{Name: "main"}, Spec: flightsv1.BookingProviderSpec{Default: true}}
	w.cached = &shelf{namespaces: map[string]map[string]string{"team-a": {"tier": "gold"}}, providers: []flightsv1.BookingProvider{provider}}
	w.live = &shelf{namespaces: map[string]map[string]string{"team-a": nil, "new": nil}, providers: w.cached.providers}
	for _, p := range policies {
		if err := w.engine.Set(t.Context(), p); err != nil {
			t.Fatalf("policy %s: %v", p.Name, err)
		}
	}
	w.serve(t, w.engine)
	return w
}

func (w *world) serve(t *testing.T, decider Decider) {
	t.Helper()
	w.registry = prometheus.NewRegistry()
	counters, err := NewMetrics(w.registry)
	if err != nil {
		t.Fatal(err)
	}
	w.handlers = Handlers(Options{
		Policies: decider, Validate: w.engine.Validate, Superseded: w.superseded, Quotas: w.quotas,
		Synced: func() bool { return w.synced }, Rights: w.rights, Cached: w.cached, Live: w.live,
		Clock: clocktesting.NewFakePassiveClock(time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)), Metrics: counters, Log: w.log,
	})
}

func (w *world) review(t *testing.T, path string, req admission.Request) admission.Response {
	t.Helper()
	return w.handlers[path].(*admission.Webhook).Handle(t.Context(), req)
}

// counted returns what a counter with these labels stands at.
func (w *world) counted(t *testing.T, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			has := map[string]string{}
			for _, pair := range m.GetLabel() {
				has[pair.GetName()] = pair.GetValue()
			}
			if family.GetName() == name && maps.Equal(has, labels) {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// create and update make the reviews that the API server would send.
func create(t *testing.T, kind string, object any) admission.Request {
	t.Helper()
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: types.UID("review-1"), Operation: admissionv1.Create, Namespace: "team-a", Name: "my-flight-ticket",
		Kind:   metav1.GroupVersionKind{Group: "flights.com", Version: "v1", Kind: kind},
		Object: raw(t, object),
		UserInfo: authenticationv1.UserInfo{
			Username: "asha", Groups: []string{"travellers", "system:authenticated"},
		},
	}}
}

func update(t *testing.T, kind string, old, object any) admission.Request {
	t.Helper()
	req := create(t, kind, object)
	req.Operation, req.OldObject = admissionv1.Update, raw(t, old)
	return req
}

func raw(t *testing.T, object any) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: text}
}

func ticket(change ...func(*flightsv1.FlightTicket)) *flightsv1.FlightTicket {
	ft := &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{Name: "my-flight-ticket", Namespace: "team-a"},
		Spec:       flightsv1.FlightTicketSpec{From: "Mumbai", To: "London", Number: 2},
	}
	for _, c := range change {
		c(ft)
	}
	return ft
}

func rego(name, text string, enforcement flightsv1.Enforcement) *flightsv1.FlightPolicy {
	return &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec:       flightsv1.FlightPolicySpec{Rego: text, Enforcement: enforcement},
	}
}

const fewSeats = `package seats
deny contains "at most 1 seat" if input.ticket.spec.number > 1
`

const noLondon = `package route
deny contains sprintf("no flights to %s", [input.route.destination.iata]) if input.route.destination.iata == "LON"
deny contains "never to London" if input.route.destination.iata == "LON"
`
