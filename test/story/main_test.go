package story

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/installation"
	"github.com/flight-operator/flight-operator/test/scene"
)

// building is the installation that the tests look at: one that is already there, or their own.
type building struct {
	stage scene.Stage
	// provider is the name of the default BookingProvider, admin where the switches of its simulator are.
	provider, admin string
	// metrics and logs are by program: flight-webhook, flight-controller.
	metrics, logs map[string]string
	// audit is the API server's log of requests; empty in an installation that was there already.
	audit string
	// plugin is the program kubectl-flights.
	plugin string
}

var house building

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(logr.Discard()) // the client logs warnings, which these tests read from kubectl
	begin := build
	if os.Getenv("TEST_KUBECONFIG") != "" {
		begin = enter
	}
	leave, err := begin()
	if err != nil {
		fmt.Fprintln(os.Stderr, "installation:", err)
		return 1
	}
	code := m.Run()
	if err := leave(); err != nil {
		fmt.Fprintln(os.Stderr, "installation:", err)
		return max(code, 1)
	}
	return code
}

// requestLife is how long quotas wait for requests that are on their way. The tests' own are answered before they go on, and
// a quota of theirs concerns one test.
const requestLife = "--request-life=5s"

// build starts an installation of the tests' own.
func build() (leave func() error, err error) {
	i, err := installation.Start(context.Background(), installation.Options{Progress: os.Stderr, Audit: true, ControllerArgs: []string{requestLife}})
	if err != nil {
		return nil, err
	}
	house = building{
		stage:    scene.Stage{Config: i.Plane.Config, Client: i.Client, Kubectl: i.Plane.KubectlCommand},
		provider: installation.ProviderName, admin: i.Simulator.AdminURL,
		metrics: map[string]string{
			"flight-webhook":    "https://" + i.Webhook.MetricsAddress + "/metrics",
			"flight-controller": "https://" + i.Controller.MetricsAddress + "/metrics",
		},
		logs:  map[string]string{"flight-webhook": i.Webhook.Log, "flight-controller": i.Controller.Log},
		audit: i.Plane.AuditLog(), plugin: i.PluginPath(),
	}
	return i.Stop, nil
}

// enter takes the installation of `make dev`, as .dev/env describes it:
//
//	. .dev/env && TEST_KUBECONFIG=$KUBECONFIG go test ./test/story
//
// A KUBECONFIG alone is never used: it may be a person's own.
func enter() (leave func() error, err error) {
	of := func(name string) string {
		if os.Getenv(name) == "" && err == nil {
			err = fmt.Errorf("TEST_KUBECONFIG is set and %s is not: take both from .dev/env, or unset TEST_KUBECONFIG", name)
		}
		return os.Getenv(name)
	}
	kubeconfig := of("TEST_KUBECONFIG")
	house = building{
		provider: installation.ProviderName, admin: of("SIMULATOR_ADMIN_URL"),
		metrics: map[string]string{"flight-webhook": of("WEBHOOK_METRICS_URL"), "flight-controller": of("CONTROLLER_METRICS_URL")},
		logs:    map[string]string{"flight-webhook": of("WEBHOOK_LOG"), "flight-controller": of("CONTROLLER_LOG")},
	}
	if err != nil {
		return nil, err
	}
	if house.plugin, err = exec.LookPath("kubectl-flights"); err != nil {
		return nil, fmt.Errorf("find the plugin of .dev/env: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("load TEST_KUBECONFIG: %w", err)
	}
	house.stage.Config = config
	house.stage.Kubectl = func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "kubectl", args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		return cmd
	}
	house.stage.Client, err = scene.NewClient(config)
	return func() error { return nil }, err
}

// kubectl runs kubectl when a test is over, outside its scene.
func (b building) kubectl(args ...string) (string, error) {
	out, err := b.stage.Kubectl(context.Background(), args...).CombinedOutput()
	return string(out), err
}

// ledger is what the simulator of the default provider has booked.
func (b building) ledger(s *scene.Scene) simulator.Snapshot {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context, http.MethodGet, b.admin+"/_simulator/ledger", nil)
	if err != nil {
		s.Fatal(err)
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	var snapshot simulator.Snapshot
	if err := json.NewDecoder(answer.Body).Decode(&snapshot); err != nil {
		s.Fatalf("read the ledger: %v", err)
	}
	return snapshot
}
