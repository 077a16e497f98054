package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/controlplane"
)

// Program is the webhook or the controller as a local process. It keeps its addresses over restarts.
type Program struct {
	// Address serves reviews (webhook only), MetricsAddress metrics over TLS, HealthAddress the probes.
	Address, MetricsAddress, HealthAddress string
	// Log is the file with everything that it wrote, over all restarts.
	Log string

	name string
	// program is which of builtPrograms runs.
	program    string
	kubeconfig string
	args       []string
	reserved   []io.Closer
	process    *controlplane.Process
}

func newProgram(name string) *Program { return &Program{name: name, program: name} }

func (p *Program) tlsDir(dir string) string { return filepath.Join(dir, p.name+"-tls") }

func (p *Program) kubeconfigIn(dir string) string { return filepath.Join(dir, p.name+".kubeconfig") }

// Running says whether the process was started and has not ended.
func (p *Program) Running() bool { return p != nil && p.process != nil && p.process.Err() == nil }

// Done is closed once the running process has ended. It must have been started.
func (p *Program) Done() <-chan struct{} { return p.process.Done() }

// Err says how the started process ended, with the end of its log, or nil while it runs.
func (p *Program) Err() error { return p.process.Err() }

// reserve takes three free ports and holds them until the first start.
func (p *Program) reserve() error {
	for _, address := range []*string{&p.Address, &p.MetricsAddress, &p.HealthAddress} {
		listener, err := listenBelowEphemeral()
		if err != nil {
			return err
		}
		*address = listener.Addr().String()
		p.reserved = append(p.reserved, listener)
	}
	return nil
}

// listenBelowEphemeral takes a port that no outgoing connection is given, so that it is still free after a restart.
func listenBelowEphemeral() (net.Listener, error) {
	var last error
	for range 100 {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(12000+rand.IntN(18000))))
		if err == nil {
			return listener, nil
		}
		last = err
	}
	return nil, last
}

// startPrograms starts the booking API and our programs, and returns once they do their work.
func (i *Installation) startPrograms(ctx context.Context) error {
	if err := i.startSimulator(ctx); err != nil {
		return err
	}
	if err := i.ensureSecret(ctx, ProviderName, i.Simulator.Token()); err != nil {
		return err
	}
	for _, p := range []*Program{i.Webhook, i.Controller} {
		if err := i.prepare(ctx, p); err != nil {
			return err
		}
	}
	if err := i.StartWebhook(ctx); err != nil {
		return err
	}
	if !i.options.WithoutController {
		if err := i.StartController(ctx); err != nil {
			return err
		}
	}
	if err := i.WaitFor(ctx, "a ticket to be admitted (dry run)", i.admits); err != nil {
		return err
	}
	if err := i.ApplyProvider(ctx, nil); err != nil {
		return err
	}
	if i.options.WithoutController {
		return nil
	}
	return i.WaitFor(ctx, "the provider to be ready", i.ProviderReady)
}

// prepare gives a program its identity and its flags.
func (i *Installation) prepare(ctx context.Context, p *Program) error {
	config, err := i.Plane.ServiceAccountConfig(ctx, Namespace, "flight-"+p.name)
	if err != nil {
		return err
	}
	p.kubeconfig = p.kubeconfigIn(i.Dir)
	if err := i.Plane.WriteKubeconfig(p.kubeconfig, config); err != nil {
		return err
	}
	p.Log = filepath.Join(i.Dir, p.name+".log")
	p.args = []string{
		"--kubeconfig=" + p.kubeconfig, "--namespace=" + Namespace, "--tls-dir=" + p.tlsDir(i.Dir),
		"--metrics-bind-address=" + p.MetricsAddress, "--health-probe-bind-address=" + p.HealthAddress,
	}
	if p == i.Webhook {
		// A drain is for a load balancer that learns late; here the port is called until it is closed.
		p.args = append(p.args, "--webhook-bind-address="+p.Address, "--replica=local", "--drain=0s")
		p.args = append(p.args, i.options.WebhookArgs...)
	} else {
		p.args = append(p.args, i.options.ControllerArgs...)
	}
	return nil
}

// StartController starts the controller under its own rights and returns once it is ready.
func (i *Installation) StartController(ctx context.Context) error { return i.start(ctx, i.Controller) }

// StopController ends the controller with SIGTERM and waits. One that doesn't run is fine.
func (i *Installation) StopController() error { return i.Controller.stop() }

// KillController ends the controller with SIGKILL and waits.
func (i *Installation) KillController() error { return i.Controller.kill() }

// StartWebhook starts the webhook under its own rights and returns once it is ready.
func (i *Installation) StartWebhook(ctx context.Context) error { return i.start(ctx, i.Webhook) }

// StopWebhook ends the webhook with SIGTERM and waits. One that doesn't run is fine.
func (i *Installation) StopWebhook() error { return i.Webhook.stop() }

// KillWebhook ends the webhook with SIGKILL and waits.
func (i *Installation) KillWebhook() error { return i.Webhook.kill() }

func (i *Installation) start(ctx context.Context, p *Program) error {
	if p.Running() {
		return fmt.Errorf("the %s runs already", p.name)
	}
	for _, held := range p.reserved {
		if err := held.Close(); err != nil {
			return fmt.Errorf("free a port for the %s: %w", p.name, err)
		}
	}
	p.reserved = nil
	process, err := i.Plane.StartProcess(controlplane.ProcessOptions{
		Name: "flight-" + p.name, Path: i.built[p.program], Args: p.args, Log: p.Log,
	})
	if err != nil {
		return err
	}
	p.process = process
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return process.WaitFor(ctx, "the "+p.name+" to be ready", p.ready)
}

func (p *Program) ready(ctx context.Context) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.HealthAddress+"/readyz", nil)
	if err != nil {
		return false, err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return false, fmt.Errorf("readyz answers %s", answer.Status)
	}
	return true, nil
}

func (p *Program) stop() error { return p.end((*controlplane.Process).Stop) }

func (p *Program) kill() error { return p.end((*controlplane.Process).Kill) }

func (p *Program) end(how func(*controlplane.Process) error) error {
	var errs []error
	for _, held := range p.reserved {
		errs = append(errs, held.Close())
	}
	p.reserved = nil
	if p.process != nil {
		errs = append(errs, how(p.process))
		p.process = nil
	}
	return errors.Join(errs...)
}

// admits tries a ticket that is never stored through the whole way of admission.
func (i *Installation) admits(ctx context.Context) (bool, error) {
	ticket := &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "probe-"},
		Spec:       flightsv1.FlightTicketSpec{From: "Mumbai", To: "London", Number: 1},
	}
	if err := i.Client.Create(ctx, ticket, client.DryRunAll); err != nil {
		return false, err
	}
	if !slices.Contains(ticket.Finalizers, flightsv1.BookingFinalizer) {
		return false, errors.New("the ticket passed without the mutating webhook")
	}
	return true, nil
}
