package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// Side is a controller process beside that of the installation, under the same account and with the same binary. It
// serves no metrics. Its methods are for one goroutine at a time.
type Side struct {
	installation *Installation
	program      *Program
	args         []string
}

// AddSide prepares a controller that reaches the API server at an address, whose certificate an authority (PEM) signs: a
// proxy's, as a rule. The name is unique in the installation. It doesn't start before Start, and Installation.Stop kills
// it. It may be called concurrently.
func (i *Installation) AddSide(ctx context.Context, name, address string, authority []byte, args ...string) (*Side, error) {
	config, err := i.Plane.ServiceAccountConfig(ctx, Namespace, "flight-controller")
	if err != nil {
		return nil, err
	}
	behind := &rest.Config{Host: address, BearerToken: config.BearerToken, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	if err := os.MkdirAll(sidesIn(i.Dir), 0o700); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(sidesIn(i.Dir), name+".kubeconfig")
	if err := i.Plane.WriteKubeconfig(kubeconfig, behind); err != nil {
		return nil, err
	}
	s := &Side{
		installation: i,
		program:      &Program{name: name, program: "controller", Log: filepath.Join(i.Dir, name+".log")},
		args: append([]string{
			"--kubeconfig=" + kubeconfig, "--namespace=" + Namespace, "--tls-dir=" + i.Controller.tlsDir(i.Dir),
			"--metrics-bind-address=0",
		}, args...),
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sides = append(i.sides, s)
	return s, nil
}

// sidesIn is the folder of the sides' kubeconfigs, which hold tokens.
func sidesIn(dir string) string { return filepath.Join(dir, "sides") }

// Log is the file with everything that it wrote, over all restarts.
func (s *Side) Log() string { return s.program.Log }

// Start starts it and returns once it is ready. One that waits for a lease is ready too.
func (s *Side) Start(ctx context.Context) error {
	listener, err := listenBelowEphemeral()
	if err != nil {
		return fmt.Errorf("find a port for %s: %w", s.program.name, err)
	}
	s.program.HealthAddress = listener.Addr().String()
	s.program.reserved = append(s.program.reserved, listener)
	s.program.args = append(s.args[:len(s.args):len(s.args)], "--health-probe-bind-address="+s.program.HealthAddress)
	return s.installation.start(ctx, s.program)
}

// Running says whether it was started and has not ended.
func (s *Side) Running() bool { return s.program.Running() }

// Stop ends it with SIGTERM and waits. One that doesn't run is fine.
func (s *Side) Stop() error { return s.program.stop() }

// Kill ends it with SIGKILL, frozen or not, and waits. One that doesn't run is fine.
func (s *Side) Kill() error { return s.program.kill() }

// Freeze stops it in the middle of whatever it does, until Thaw.
func (s *Side) Freeze() error {
	if !s.Running() {
		return errors.New("freeze a controller that doesn't run")
	}
	return s.program.process.Freeze()
}

// Thaw lets it go on.
func (s *Side) Thaw() error {
	if !s.Running() {
		return errors.New("thaw a controller that doesn't run")
	}
	return s.program.process.Thaw()
}

// Done is closed once the process has ended. It must have been started.
func (s *Side) Done() <-chan struct{} { return s.program.Done() }
