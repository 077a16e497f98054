package installation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// Replica is a webhook process beside that of the installation, under the same account and with the same certificate.
// Nothing sends reviews to its Address by itself. Its methods are for one goroutine at a time.
type Replica struct {
	// Address serves reviews, MetricsAddress metrics. They stay over restarts.
	Address, MetricsAddress string
	// Log is the file with everything that it wrote, over all restarts.
	Log string

	installation *Installation
	program      *Program
}

// ReplicaOptions describe a replica. Only Name is required.
type ReplicaOptions struct {
	// Name is unique among the programs of the installation. It is the replica's name in its Lease.
	Name string
	// Server is where it reaches the API server, and Authority the PEM that signs the certificate there: a proxy's, as a
	// rule. Empty means the API server itself.
	Server    string
	Authority []byte
	// Binary replaces the program that Start has built.
	Binary string
	// Args are added to its flags.
	Args []string
}

// AddReplica prepares a replica of the webhook. It doesn't start before Start, and ends with the installation's plane.
func (i *Installation) AddReplica(ctx context.Context, o ReplicaOptions) (*Replica, error) {
	p := &Program{name: o.Name, program: "webhook", Log: filepath.Join(i.Dir, o.Name+".log")}
	if o.Binary != "" {
		p.program = o.Name
		i.built[o.Name] = o.Binary
	}
	if err := p.reserve(); err != nil {
		return nil, fmt.Errorf("find ports for %s: %w", o.Name, err)
	}
	config, err := i.Plane.ServiceAccountConfig(ctx, Namespace, "flight-webhook")
	if err != nil {
		return nil, err
	}
	if o.Server != "" {
		config = &rest.Config{Host: o.Server, BearerToken: config.BearerToken, TLSClientConfig: rest.TLSClientConfig{CAData: o.Authority}}
	}
	if err := os.MkdirAll(sidesIn(i.Dir), 0o700); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(sidesIn(i.Dir), o.Name+".kubeconfig")
	if err := i.Plane.WriteKubeconfig(kubeconfig, config); err != nil {
		return nil, err
	}
	p.args = append([]string{
		"--kubeconfig=" + kubeconfig, "--namespace=" + Namespace, "--tls-dir=" + i.Webhook.tlsDir(i.Dir),
		"--metrics-bind-address=" + p.MetricsAddress, "--health-probe-bind-address=" + p.HealthAddress,
		"--webhook-bind-address=" + p.Address, "--replica=" + o.Name, "--drain=0s",
	}, o.Args...)
	return &Replica{Address: p.Address, MetricsAddress: p.MetricsAddress, Log: p.Log, installation: i, program: p}, nil
}

// Start starts it and returns once it is ready.
func (r *Replica) Start(ctx context.Context) error { return r.installation.start(ctx, r.program) }

// Stop ends it with SIGTERM and waits. One that doesn't run is fine.
func (r *Replica) Stop() error { return r.program.stop() }

// Kill ends it with SIGKILL and waits. One that doesn't run is fine.
func (r *Replica) Kill() error { return r.program.kill() }

// Running says whether it was started and has not ended.
func (r *Replica) Running() bool { return r.program.Running() }
