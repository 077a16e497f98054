package crash

import (
	"cmp"
	"context"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/apiproxy"
	"github.com/flight-operator/flight-operator/test/installation"
	"github.com/flight-operator/flight-operator/test/scene"
)

// callTime is what the providers of these tests declare as their timeout.
const callTime = 5 * time.Second

// place is a scene with a booking API and with the proxies that a controller of its own works behind. The controller sees
// the scene's namespace and provider only, so places don't disturb each other.
type place struct {
	*scene.Scene
	cluster, airline *apiproxy.Proxy
	// side is the place's controller, or the first one.
	side *installation.Side
}

// circumstances of a place. The zero value is a provider without keys, and proxies that only pass on.
type circumstances struct {
	settings simulator.Settings
	// at is asked about every write of the controller and every call.
	at func(apiproxy.Exchange, apiproxy.Phase) apiproxy.Verdict
	// name says what a request to the API server is called; nil is what the proxy calls it.
	name func(*http.Request) string
	// watchDelay is how far the controller's caches lag.
	watchDelay time.Duration
	// patience is how long the test may take; zero is quiet.
	patience time.Duration
}

// newPlace makes a place in which no controller runs.
func newPlace(t *testing.T, c circumstances) *place {
	t.Helper()
	p := &place{}
	p.Scene = scene.WithBooking(t, stage, c.settings, func(provider *flightsv1.BookingProvider) {
		p.airline = airlineProxy(t, provider, c)
		provider.Spec.Timeout = metav1.Duration{Duration: callTime}
		provider.Spec.Capabilities.Lookup = ptr.To(!c.settings.NoLookup)
	})
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(c.patience, quiet))
	t.Cleanup(cancel)
	p.Context = ctx
	options, err := apiproxy.ToCluster(house.Plane.Config, apiproxy.Window{Namespace: p.Namespace, Provider: p.Provider.Name})
	if err != nil {
		t.Fatal(err)
	}
	options.At, options.WatchDelay = c.at, c.watchDelay
	if c.name != nil {
		options.Name = c.name
	}
	p.cluster = apiproxy.Start(options)
	t.Cleanup(p.cluster.Close)
	p.side = p.another("controller", "--leader-elect=false")
	t.Cleanup(p.abandon)
	return p
}

// airlineProxy puts a proxy before a provider that is about to be created.
func airlineProxy(t *testing.T, provider *flightsv1.BookingProvider, c circumstances) *apiproxy.Proxy {
	t.Helper()
	options, err := apiproxy.ToBooking(provider.Spec.Endpoint, provider.Spec.CABundle)
	if err != nil {
		t.Fatal(err)
	}
	options.At = c.at
	proxy := apiproxy.Start(options)
	t.Cleanup(proxy.Close)
	provider.Spec.Endpoint, provider.Spec.CABundle = proxy.URL(), proxy.Authority()
	return proxy
}

// another prepares a controller of the place.
func (p *place) another(name string, args ...string) *installation.Side {
	p.Helper()
	args = append(args, "--log-level=debug")
	side, err := house.AddSide(p.Context, name+"-"+p.Namespace, p.cluster.URL(), p.cluster.Authority(), args...)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		if err := side.Kill(); err != nil {
			p.Error(err)
		}
		if p.Failed() {
			p.Logf("the log of %s ends:\n%s", name, tail(side.Log(), 60))
		}
	})
	return side
}

// abandon lets the place's tickets and provider go without a controller: their ledger has been judged.
func (p *place) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.side.Kill(); err != nil {
		p.Error(err)
	}
	if err := p.Client.DeleteAllOf(ctx, &flightsv1.FlightTicket{}, client.InNamespace(p.Namespace)); err != nil {
		p.Errorf("clean up: %v", err)
	}
	left := []client.Object{p.Provider}
	var tickets flightsv1.FlightTicketList
	if err := p.Client.List(ctx, &tickets, client.InNamespace(p.Namespace)); err != nil {
		p.Errorf("clean up: %v", err)
	}
	for i := range tickets.Items {
		left = append(left, &tickets.Items[i])
	}
	if err := client.IgnoreNotFound(p.Client.Delete(ctx, p.Provider)); err != nil {
		p.Errorf("clean up: %v", err)
	}
	for _, object := range left {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := client.IgnoreNotFound(p.Client.Patch(ctx, object, patch)); err != nil {
			p.Errorf("clean up: %v", err)
		}
	}
}

// Apply applies a manifest as kubectl does on the server's side, without a process of its own: these tests start enough.
func (p *place) Apply(manifest string) {
	p.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		p.Fatal(err)
	}
	namespaced, err := p.Client.IsObjectNamespaced(object)
	if err != nil {
		p.Fatal(err)
	}
	if namespaced {
		object.SetNamespace(p.Namespace)
	}
	if err := p.Client.Apply(p.Context, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("user")); err != nil {
		p.Fatal(err)
	}
}

// start starts the place's controller.
func (p *place) start() {
	p.Helper()
	if err := p.side.Start(p.Context); err != nil {
		p.Fatal(err)
	}
}

// kill ends the controller with SIGKILL, in the middle of whatever it does.
func (p *place) kill() {
	p.Helper()
	if err := p.side.Kill(); err != nil {
		p.Fatal(err)
	}
}
