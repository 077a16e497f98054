package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/internal/controlplane"
	"github.com/flight-operator/flight-operator/test/installation"
)

const allRuns = `
The operator runs. In another terminal, in this folder:

  . .dev/env
  kubectl apply -f config/samples/flightticket.yaml
  kubectl get tickets
`

const afterwards = `
The ledger of the booking API: curl $SIMULATOR_ADMIN_URL/_simulator/ledger
Logs: .dev/run/*.log. Ctrl-C ends it all.
`

const ownController = `
All but the controller runs: that is left to you, and tickets stay unbooked until it runs. In another terminal, in this
folder, under its own account:

  . .dev/env
  go run ./cmd/controller --kubeconfig .dev/run/controller.kubeconfig --tls-dir .dev/run/controller-tls \
    --metrics-bind-address 127.0.0.1:0 --health-probe-bind-address 127.0.0.1:0

And in a third one:

  . .dev/env
  kubectl apply -f config/samples/flightticket.yaml
  kubectl get tickets
`

// upOptions are what a person may choose.
type upOptions struct{ policies, withoutController bool }

func upCommand() *cobra.Command {
	var o upOptions
	c := &cobra.Command{
		Use:   "up",
		Short: "Start the operator on a control plane of its own, until Ctrl-C",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return up(c.Context(), o, c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&o.policies, "policies", o.policies, "apply config/policies too; without it no policy is in force")
	c.Flags().BoolVar(&o.withoutController, "without-controller", o.withoutController,
		"start everything but the controller, and say how to run it yourself")
	return c
}

// providerManners is how the simulated provider behaves in demo and up: like one that remembers idempotency keys.
func providerManners() simulator.Settings {
	return simulator.Settings{IdempotencyKeyTTL: metav1.Duration{Duration: time.Hour}, Currency: "EUR"}
}

// up keeps an installation until the context ends.
func up(ctx context.Context, o upOptions, out io.Writer) (err error) {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	home := devFolder(filepath.Join(root, ".dev"))
	unlock, err := home.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := home.clear(); err != nil {
		return fmt.Errorf("clear %s: %w", home, err)
	}
	i, err := installation.Start(ctx, installation.Options{
		Progress: out, Dir: home.run(), Settings: providerManners(), WithoutController: o.withoutController,
	})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, i.Stop(), home.forget())
	}()
	if o.policies {
		said, err := i.Kubectl(ctx, "apply", "-k", "config/policies")
		if err != nil {
			return err
		}
		fmt.Fprint(out, said)
	}
	if err := home.write(i, o); err != nil {
		return err
	}
	var controllerEnds <-chan struct{}
	if o.withoutController {
		fmt.Fprint(out, ownController, afterwards)
	} else {
		fmt.Fprint(out, allRuns, afterwards)
		controllerEnds = i.Controller.Done()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-i.Webhook.Done():
		return i.Webhook.Err()
	case <-controllerEnds:
		return i.Controller.Err()
	}
}

// devFolder is .dev: what the other terminal needs.
type devFolder string

func (d devFolder) run() string        { return filepath.Join(string(d), "run") }
func (d devFolder) kubeconfig() string { return filepath.Join(string(d), "kubeconfig") }
func (d devFolder) env() string        { return filepath.Join(string(d), "env") }
func (d devFolder) bin() string        { return filepath.Join(string(d), "bin") }

// lock keeps a second one out. The kernel drops the lock when its holder dies.
func (d devFolder) lock() (unlock func(), err error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(string(d), "lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = fmt.Errorf("it runs already, in another terminal: use that one (. .dev/env), or end it there with Ctrl-C (%s: %w)", path, err)
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// clear removes what an earlier run left, logs included.
func (d devFolder) clear() error {
	return errors.Join(d.forget(), os.RemoveAll(d.run()))
}

// forget removes what would lead to a control plane that is gone.
func (d devFolder) forget() error {
	return errors.Join(os.RemoveAll(d.kubeconfig()), os.RemoveAll(d.env()), os.RemoveAll(d.bin()))
}

// write makes kubeconfig, kubectl with its plugin, and env.
func (d devFolder) write(i *installation.Installation, o upOptions) error {
	if err := i.Plane.WriteKubeconfig(d.kubeconfig(), i.Plane.Config); err != nil {
		return err
	}
	if err := os.MkdirAll(d.bin(), 0o700); err != nil {
		return err
	}
	for _, program := range [][2]string{{i.Plane.KubectlPath(), "kubectl"}, {i.PluginPath(), "kubectl-flights"}} {
		if err := os.Symlink(program[0], filepath.Join(d.bin(), program[1])); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("export PATH=%q:\"$PATH\"\n", d.bin())
	for _, variable := range d.variables(i, o) {
		text += fmt.Sprintf("export %s=%q\n", variable[0], variable[1])
	}
	return os.WriteFile(d.env(), []byte(text), 0o600)
}

// variables are names and values of what env exports. It says nothing of a controller that isn't ours.
func (d devFolder) variables(i *installation.Installation, o upOptions) [][2]string {
	variables := [][2]string{
		{"KUBECONFIG", d.kubeconfig()},
		{"SIMULATOR_URL", i.Simulator.URL},
		{"SIMULATOR_ADMIN_URL", i.Simulator.AdminURL},
		{"WEBHOOK_URL", "https://" + i.Webhook.Address},
		{"WEBHOOK_METRICS_URL", "https://" + i.Webhook.MetricsAddress + "/metrics"},
		{"WEBHOOK_LOG", i.Webhook.Log},
		{"SIMULATOR_LOG", i.Simulator.Log},
	}
	if o.withoutController {
		return variables
	}
	return append(variables,
		[2]string{"CONTROLLER_METRICS_URL", "https://" + i.Controller.MetricsAddress + "/metrics"},
		[2]string{"CONTROLLER_LOG", i.Controller.Log})
}
