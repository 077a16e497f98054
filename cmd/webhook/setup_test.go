package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/internal/program"
	"github.com/flight-operator/flight-operator/internal/controlplane"
)

// plane is the control plane that the tests of this package share.
var plane *controlplane.Plane

func TestMain(m *testing.M) {
	if args, child := os.LookupEnv(childArguments); child {
		os.Exit(runChild(args))
	}
	os.Exit(controlplane.RunTests(m, controlplane.Options{}, func(p *controlplane.Plane) { plane = p }))
}

// patience bounds every wait; nothing depends on how much of it is used.
const patience = 60 * time.Second

// eventually waits until a condition holds, and fails the test with what it said last.
func eventually(t *testing.T, what string, holds func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = holds(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, flightsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// namespace makes a namespace of the test's own and returns its name.
func namespace(t *testing.T, c client.Client) string {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return n.Name
}

// kubectl runs kubectl as a person would and returns both streams together.
func kubectl(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := plane.KubectlCommand(t.Context(), args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// webhookProgram is the program, run in this process under its real rights.
type webhookProgram struct {
	options options
	ca      *authority
	// logStart is where this program's lines begin in processLog.
	logStart int
	stop     func()
}

// processLog takes what all programs of this process log: client-go has one logger in a process, which may be set once.
var processLog syncBuffer

var processLogger = sync.OnceValues(func() (logr.Logger, error) {
	o := program.DefaultOptions()
	o.LogLevel = "debug"
	return o.Logger(&processLog)
})

// logged is what this program has logged so far.
func (w *webhookProgram) logged() string { return processLog.String()[w.logStart:] }

// startWebhook runs the program until the test ends, waits until it is ready and makes the API server call it.
func startWebhook(t *testing.T) *webhookProgram {
	t.Helper()
	before := goleak.IgnoreCurrent()
	w := startReplica(t, "replica-under-test")
	stop := w.stop
	w.stop = sync.OnceFunc(func() {
		stop()
		leavesNothing(t, before)
	})
	t.Cleanup(w.stop)
	w.register(t, nil)
	return w
}

// startReplicas runs the program several times until the test ends, and waits until all are ready. Each is called for the
// tickets whose label replica is its name.
func startReplicas(t *testing.T, names ...string) []*webhookProgram {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { leavesNothing(t, before) }) // once all have stopped
	var replicas []*webhookProgram
	for _, name := range names {
		w := startReplica(t, name)
		w.register(t, map[string]string{"replica": name})
		replicas = append(replicas, w)
	}
	return replicas
}

// leavesNothing fails if goroutines run that didn't before.
func leavesNothing(t *testing.T, before goleak.Option) {
	t.Helper()
	if err := goleak.Find(append(idleConnections(), before)...); err != nil {
		t.Errorf("the program leaves something behind: %v", err)
	}
}

// newReplica is a program that isn't started yet.
func newReplica(t *testing.T, name string) *webhookProgram {
	t.Helper()
	w := &webhookProgram{options: defaultOptions(), ca: newAuthority(t), logStart: len(processLog.String())}
	w.options.TLSDir = t.TempDir()
	w.ca.issue(t, w.options.TLSDir)
	w.options.Kubeconfig = serviceAccount(t)
	w.options.replica = name
	w.options.drain = 0
	addresses := freeAddresses(t, 3)
	w.options.webhookBindAddress, w.options.MetricsBindAddress, w.options.HealthProbeBindAddress = addresses[0], addresses[1], addresses[2]
	if err := w.options.validate(); err != nil {
		t.Fatal(err)
	}
	return w
}

// startReplica runs the program until the test ends and waits until it is ready.
func startReplica(t *testing.T, name string) *webhookProgram {
	t.Helper()
	w := newReplica(t, name)
	logger, err := processLogger()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, w.options, logger) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the program ends with %v", err)
		}
	})
	t.Cleanup(w.stop)
	eventually(t, "readyz", func(ctx context.Context) error { return w.probe(ctx, "/readyz") })
	return w
}

// idleConnections are those that HTTP clients keep for later, in this process for the tests' own clients too.
func idleConnections() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("net/http/internal/http2.(*clientConnReadLoop).run"),
	}
}

func (w *webhookProgram) probe(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.options.HealthProbeBindAddress+path, nil)
	if err != nil {
		return err
	}
	req.Close = true
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", path, response.Status)
	}
	return nil
}

// register installs the generated webhook configurations with the program's address in place of its Service. With labels,
// the program is called for the objects that have them, and others may be registered beside it.
func (w *webhookProgram) register(t *testing.T, labels map[string]string) {
	t.Helper()
	c := newClient(t, plane.Config)
	point := func(config *admissionregistrationv1.WebhookClientConfig) {
		url := "https://" + w.options.webhookBindAddress + *config.Service.Path
		config.Service, config.URL, config.CABundle = nil, &url, w.ca.pem
	}
	for _, document := range documents(t, "config/webhook/manifests.yaml") {
		var object client.Object
		if strings.Contains(document, "kind: MutatingWebhookConfiguration") {
			var m admissionregistrationv1.MutatingWebhookConfiguration
			decodeYAML(t, document, &m)
			for i := range m.Webhooks {
				point(&m.Webhooks[i].ClientConfig)
				m.Webhooks[i].ObjectSelector = &metav1.LabelSelector{MatchLabels: labels}
			}
			object = &m
		} else {
			var v admissionregistrationv1.ValidatingWebhookConfiguration
			decodeYAML(t, document, &v)
			for i := range v.Webhooks {
				point(&v.Webhooks[i].ClientConfig)
				v.Webhooks[i].ObjectSelector = &metav1.LabelSelector{MatchLabels: labels}
			}
			object = &v
		}
		if labels != nil {
			object.SetName(object.GetName() + "-" + w.options.replica)
		}
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(c.Delete(context.Background(), object)); err != nil {
				t.Error(err)
			}
		})
	}
	// The API server learns of a configuration a moment later: it calls once a ticket that the webhook alone would
	// refuse is refused.
	eventually(t, "the API server calls the webhook", func(ctx context.Context) error {
		probe := newTicket("default", "probe")
		probe.Labels = labels
		probe.Spec.From = "Bombay"
		probe.Spec.To = "Mumbai"
		err := c.Create(ctx, probe, client.DryRunAll)
		if err == nil {
			return errors.New("a ticket from a place to itself was accepted")
		}
		if !strings.Contains(err.Error(), "are the same place") {
			return fmt.Errorf("refused by somebody else: %w", err)
		}
		return nil
	})
}

// serviceAccount sets the program's account and rights up from config/rbac and returns a kubeconfig of it.
func serviceAccount(t *testing.T) string {
	t.Helper()
	args := []string{"apply"} // all at once: each kubectl costs the processor more than the writes do
	for _, file := range []string{"default/namespace.yaml", "rbac/service-accounts.yaml", "rbac/webhook/role.yaml", "rbac/bindings.yaml"} {
		args = append(args, "-f", filepath.Join(plane.Root(), "config", file))
	}
	if out, err := kubectl(t, "", args...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	config, err := plane.ServiceAccountConfig(t.Context(), program.DefaultNamespace, "flight-webhook")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := plane.WriteKubeconfig(path, config); err != nil {
		t.Fatal(err)
	}
	return path
}

func documents(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(plane.Root(), file))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, d := range strings.Split(string(text), "\n---\n") {
		if strings.TrimSpace(strings.Trim(d, "-\n")) != "" {
			found = append(found, d)
		}
	}
	return found
}

func decodeYAML(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// freeAddresses finds addresses on loopback that nobody listens at.
func freeAddresses(t *testing.T, n int) []string {
	t.Helper()
	var found []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		found = append(found, l.Addr().String())
	}
	return found
}

// authority signs serving certificates for loopback.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
	serial      int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{serial: 1}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key, a.pem = a.sign(t, a.certificate, nil)
	return a
}

// sign makes a key and a certificate for it, signed by itself when there is no signer.
func (a *authority) sign(t *testing.T, template *x509.Certificate, signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// issue writes a new serving certificate into a folder and returns its serial number.
func (a *authority) issue(t *testing.T, dir string) int64 {
	t.Helper()
	a.serial++
	key, certificate := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"tls.crt": certificate, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return a.serial
}

// syncBuffer is a buffer that may be written and read at once.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
