package main

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/internal/controlplane"
)

const (
	systemNamespace = "flight-operator-system"
	secretName      = "flight-operator-credentials"
	// patience bounds every wait of these tests; it is far above what any of them needs.
	patience = 90 * time.Second
	// canary is in every token of these tests. It must be found nowhere but in the Secret.
	canary = "canary-9fQ2"
)

// The API server that all tests of this package share, and an administrator of it. One controller runs for all of
// them, with the rights of its ServiceAccount and no more.
var (
	plane *controlplane.Plane
	admin client.WithWatch
)

func TestMain(m *testing.M) {
	os.Exit(controlplane.RunTests(&suite{m}, controlplane.Options{}, func(p *controlplane.Plane) { plane = p }))
}

// suite runs the tests beside a running controller, and fails if the controller does.
type suite struct{ tests *testing.M }

func (s *suite) Run() int {
	dir, err := os.MkdirTemp("", "flight-controller-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	o, err := install(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		return 1
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	file, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	log, err := o.Logger(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() { ended <- run(ctx, o, log) }()
	code := s.tests.Run()
	stop()
	if err := <-ended; err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		code = 1
	}
	return max(code, judgeLog(file.Name(), code))
}

// judgeLog looks for what must never be logged, and shows the log when something failed.
func judgeLog(name string, code int) int {
	text, err := os.ReadFile(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, never := range []string{canary, "forbidden: User"} {
		if strings.Contains(string(text), never) {
			fmt.Fprintf(os.Stderr, "the log contains %q\n", never)
			code = 1
		}
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"level":"error"`) && strings.Contains(line, "the object has been modified") {
			fmt.Fprintf(os.Stderr, "a write that was overtaken is logged as an error: %s", line)
			code = 1
		}
	}
	if code != 0 {
		fmt.Fprintf(os.Stderr, "the controller's log:\n%s\n", text)
	}
	return code
}

// install applies what the controller needs of the shipped manifests, and returns its options.
func install(dir string) (options, error) {
	ctx := context.Background()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return options{}, err
	}
	if err := flightsv1.AddToScheme(scheme); err != nil {
		return options{}, err
	}
	var err error
	if admin, err = client.NewWithWatch(plane.Config, client.Options{Scheme: scheme}); err != nil {
		return options{}, err
	}
	args := []string{"apply"}
	for _, file := range []string{
		"default/namespace.yaml", "rbac/service-accounts.yaml", "rbac/bindings.yaml", "rbac/controller/role.yaml",
		"guard/controller.yaml", "guard/status.yaml",
	} {
		args = append(args, "-f", filepath.Join(plane.Root(), "config", file))
	}
	if out, err := plane.Kubectl(ctx, args...); err != nil {
		return options{}, fmt.Errorf("%w: %s", err, out)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: secretName}}
	if err := admin.Create(ctx, secret); err != nil {
		return options{}, err
	}
	config, err := plane.ServiceAccountConfig(ctx, systemNamespace, "flight-controller")
	if err != nil {
		return options{}, err
	}
	o := defaultOptions()
	o.Kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := plane.WriteKubeconfig(o.Kubeconfig, config); err != nil {
		return options{}, err
	}
	o.TLSDir, o.LogLevel, o.installation = dir, "debug", "test"
	o.MetricsBindAddress, o.HealthProbeBindAddress = "127.0.0.1:0", "127.0.0.1:0"
	o.Namespace, o.requestLife = systemNamespace, time.Second
	return o, writeCertificate(dir)
}

func writeCertificate(dir string) error {
	crt, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), crt, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)
}

// place is what one test has to itself: a namespace, a booking API with its provider and its key in the Secret.
type place struct {
	*testing.T
	ctx       context.Context
	namespace string
	sim       *simulator.Simulator
	server    *httptest.Server
	provider  *flightsv1.BookingProvider
}

// newPlace opens a booking API and stores its token. Edit may change the provider before it is created.
func newPlace(t *testing.T, settings simulator.Settings, edit func(*flightsv1.BookingProvider)) *place {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	if err := admin.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	p := &place{T: t, ctx: ctx, namespace: namespace.Name}
	p.sim = simulator.New(simulator.Options{Settings: settings, Tokens: map[string]string{p.token(): "acct-7"}})
	p.server = httptest.NewTLSServer(p.sim.Handler())
	t.Cleanup(func() {
		p.sim.Close()
		p.server.CloseClientConnections()
		p.server.Close()
	})
	p.storeToken(p.token())
	p.provider = &flightsv1.BookingProvider{
		ObjectMeta: metav1.ObjectMeta{Name: p.namespace},
		Spec: flightsv1.BookingProviderSpec{
			Endpoint: p.server.URL, AllowPrivate: true, CABundle: pemOf(p.server.Certificate()),
			CredentialsSecretRef: flightsv1.SecretKeyReference{Name: secretName, Key: p.namespace},
			Timeout:              metav1.Duration{Duration: 5 * time.Second},
			RateLimit:            flightsv1.RateLimit{RequestsPerMinute: 60000, Burst: 1000},
			Capabilities: flightsv1.Capabilities{
				IdempotencyKeyTTL: settings.IdempotencyKeyTTL, ReadLag: metav1.Duration{Duration: time.Millisecond},
				MaxProcessing: metav1.Duration{Duration: time.Second},
			},
		},
	}
	if edit != nil {
		edit(p.provider)
	}
	if err := admin.Create(ctx, p.provider); err != nil {
		t.Fatal(err)
	}
	return p
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func (p *place) token() string { return canary + "-" + p.namespace }

// storeToken puts a token under the test's own key of the Secret; an empty one takes the key away.
func (p *place) storeToken(token string) {
	p.Helper()
	value := `"` + base64.StdEncoding.EncodeToString([]byte(token)) + `"`
	if token == "" {
		value = "null"
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: secretName}}
	patch := fmt.Sprintf(`{"data":{%q:%s}}`, p.namespace, value)
	if err := admin.Patch(p.ctx, secret, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		p.Fatal(err)
	}
}

// apply creates the ticket of the README.
func (p *place) apply(edit func(*flightsv1.FlightTicket)) *flightsv1.FlightTicket {
	p.Helper()
	ticket := &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "my-flight-ticket"},
		Spec: flightsv1.FlightTicketSpec{
			From: "Mumbai", To: "London", Number: 2, ProviderRef: &flightsv1.ProviderReference{Name: p.provider.Name},
		},
	}
	if edit != nil {
		edit(ticket)
	}
	if err := admin.Create(p.ctx, ticket); err != nil {
		p.Fatal(err)
	}
	return ticket
}

// patch merges a change into a ticket.
func (p *place) patch(ticket *flightsv1.FlightTicket, patch string) {
	p.Helper()
	if err := admin.Patch(p.ctx, ticket, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		p.Fatal(err)
	}
}

func (p *place) remove(ticket *flightsv1.FlightTicket) {
	p.Helper()
	if err := admin.Delete(p.ctx, ticket); err != nil {
		p.Fatal(err)
	}
}

// until watches the tickets of the test until one is as wanted.
func (p *place) until(what string, wanted func(*flightsv1.FlightTicket) bool) *flightsv1.FlightTicket {
	p.Helper()
	list := &flightsv1.FlightTicketList{}
	if err := admin.List(p.ctx, list, client.InNamespace(p.namespace)); err != nil {
		p.Fatal(err)
	}
	for i := range list.Items {
		if wanted(&list.Items[i]) {
			return &list.Items[i]
		}
	}
	options := &client.ListOptions{Namespace: p.namespace, Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	watch, err := admin.Watch(p.ctx, &flightsv1.FlightTicketList{}, options)
	if err != nil {
		p.Fatal(err)
	}
	defer watch.Stop()
	var last *flightsv1.FlightTicket
	for event := range watch.ResultChan() {
		if ticket, ok := event.Object.(*flightsv1.FlightTicket); ok && event.Type != "DELETED" {
			if last = ticket; wanted(ticket) {
				return ticket
			}
		}
	}
	p.Fatalf("the ticket did not become %s: %s", what, describe(last))
	return nil
}

func describe(t *flightsv1.FlightTicket) string {
	if t == nil {
		return "no ticket"
	}
	return fmt.Sprintf("state %s, conditions %+v, operation %+v", t.Status.State, t.Status.Conditions, t.Status.Operation)
}

// untilReason waits for a ticket whose condition Ready has a reason for its present spec.
func (p *place) untilReason(reason string) *flightsv1.FlightTicket {
	p.Helper()
	return p.until(reason, func(t *flightsv1.FlightTicket) bool {
		ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
		return ready != nil && ready.Reason == reason && ready.ObservedGeneration == t.Generation
	})
}

// untilBooked waits for a ticket that is booked as its spec asks.
func (p *place) untilBooked(seats int32) *flightsv1.FlightTicket {
	p.Helper()
	return p.until("booked", func(t *flightsv1.FlightTicket) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, flightsv1.ConditionReady) &&
			t.Status.ObservedGeneration == t.Generation && t.Status.Booking.Order.Seats == seats
	})
}

// untilGone waits until the test's namespace has no ticket.
func (p *place) untilGone() {
	p.Helper()
	list := &flightsv1.FlightTicketList{}
	if err := admin.List(p.ctx, list, client.InNamespace(p.namespace)); err != nil {
		p.Fatal(err)
	}
	if len(list.Items) == 0 {
		return
	}
	options := &client.ListOptions{Namespace: p.namespace, Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	watch, err := admin.Watch(p.ctx, &flightsv1.FlightTicketList{}, options)
	if err != nil {
		p.Fatal(err)
	}
	defer watch.Stop()
	var last *flightsv1.FlightTicket
	for event := range watch.ResultChan() {
		if event.Type == "DELETED" {
			return
		}
		last, _ = event.Object.(*flightsv1.FlightTicket)
	}
	p.Fatalf("the ticket does not go: %s", describe(last))
}

// untilProvider waits for a reason of the provider's condition Ready, and for a part of its message.
func (p *place) untilProvider(reason string, says ...string) *flightsv1.BookingProvider {
	p.Helper()
	options := &client.ListOptions{Raw: &metav1.ListOptions{FieldSelector: "metadata.name=" + p.provider.Name}}
	watch, err := admin.Watch(p.ctx, &flightsv1.BookingProviderList{}, options)
	if err != nil {
		p.Fatal(err)
	}
	defer watch.Stop()
	var last *flightsv1.BookingProvider
	for event := range watch.ResultChan() {
		provider, ok := event.Object.(*flightsv1.BookingProvider)
		if !ok {
			continue
		}
		last = provider
		ready := meta.FindStatusCondition(provider.Status.Conditions, flightsv1.ConditionReady)
		if ready != nil && ready.Reason == reason && strings.Contains(ready.Message, strings.Join(says, "")) {
			return provider
		}
	}
	p.Fatalf("the provider did not become %s: %+v", reason, last.Status)
	return nil
}

// live fails unless exactly so many bookings are live, and never two for one owner.
func (p *place) live(want int) {
	p.Helper()
	if got := len(p.sim.LiveBookings()); got != want {
		p.Errorf("%d live bookings, want %d: %+v", got, want, p.sim.Ledger())
	}
	if broken := p.sim.Violations(); len(broken) > 0 {
		p.Errorf("the ledger was violated: %+v", broken)
	}
}

func (p *place) inject(f simulator.Fault) {
	p.Helper()
	if err := p.sim.Inject(f); err != nil {
		p.Fatal(err)
	}
}
