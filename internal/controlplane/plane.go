package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// startPatience is how long each of etcd, kube-apiserver and kube-controller-manager may take to answer. They need
// 2 s on an idle machine; a machine that compiles at the same time needs far longer.
const startPatience = 90 * time.Second

// Options choose what a plane is made of. The zero value is an API server with our CRDs.
type Options struct {
	// ControllerManager starts kube-controller-manager too: without it a deleted namespace stays in Terminating,
	// nothing is garbage collected, and aggregated ClusterRoles stay empty.
	ControllerManager bool
	// CRDs are files and folders to install, relative to the root of the work tree. Nil means config/crd, an empty
	// list means none.
	CRDs []string
	// APIServerFlags are added to the API server's own, each as name=value without dashes.
	APIServerFlags []string
	// Audit writes every request (verb, user, object, decision) to the file of Plane.AuditLog.
	Audit bool
	// Credentials are files and folders of the caller, absolute, that must not outlive a starter that is killed. After a
	// Stop they are still there.
	Credentials []string
	// Progress is told what is built when a program is missing. Nil means standard error.
	Progress io.Writer
}

// Plane is a running control plane. Its methods may be used concurrently, except for Stop.
type Plane struct {
	// Config is the administrator's.
	Config *rest.Config

	root, dir string
	env       *envtest.Environment
	client    client.Client
	kubectl   string
	progress  io.Writer
	release   func() error // of the warden

	mu        sync.Mutex
	processes []*Process
	logs      []*os.File // of the programs that envtest starts
}

// Start builds what is missing, starts the control plane and returns it once it answers. The caller must Stop it.
// The context bounds the start only. The error says which part failed and how its log ends; nothing is left running.
func Start(ctx context.Context, o Options) (_ *Plane, err error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	names := []Program{Etcd, APIServer, Kubectl}
	if o.ControllerManager {
		names = append(names, ControllerManager)
	}
	paths, err := Programs(ctx, o.Progress, names...)
	if err != nil {
		return nil, err
	}
	p, err := newPlane(paths, o)
	if err != nil {
		return nil, fmt.Errorf("prepare the control plane: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop())
		}
	}()
	if err := p.startAPIServer(paths, o); err != nil {
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	if err := p.WriteKubeconfig(p.adminKubeconfig(), p.Config); err != nil {
		return nil, err
	}
	if o.ControllerManager {
		if err := p.startControllerManager(ctx, paths[ControllerManager]); err != nil {
			return nil, fmt.Errorf("start kube-controller-manager: %w", err)
		}
	}
	return p, ctx.Err()
}

// newPlane makes the run folder and its warden.
func newPlane(paths map[Program]string, o Options) (*Plane, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "flight-operator-plane-")
	if err != nil {
		return nil, err
	}
	release, err := startWarden(root, dir, o.Credentials)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the warden: %w", err), os.RemoveAll(dir))
	}
	p := &Plane{root: root, dir: dir, kubectl: paths[Kubectl], progress: o.Progress, release: release}
	if err := os.Mkdir(p.Dir(), 0o700); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// startAPIServer starts etcd and the API server and installs the CRDs.
func (p *Plane) startAPIServer(paths map[Program]string, o Options) error {
	env, err := p.environment(paths, o)
	if err != nil {
		return err
	}
	p.env = env
	if p.Config, err = env.Start(); err != nil {
		return fmt.Errorf("%w\nkube-apiserver's log ends:\n%s\netcd's log ends:\n%s", err,
			tail(p.logPath(string(APIServer)), 15), tail(p.logPath(string(Etcd)), 5))
	}
	p.client, err = client.New(p.Config, client.Options{Scheme: scheme.Scheme})
	return err
}

// environment describes etcd and the API server to envtest, with nothing left to its search of the machine.
func (p *Plane) environment(paths map[Program]string, o Options) (*envtest.Environment, error) {
	existing := false
	env := &envtest.Environment{
		UseExistingCluster:       &existing, // else USE_EXISTING_CLUSTER would turn a test loose on a person's cluster
		ControlPlaneStartTimeout: startPatience,
		ControlPlaneStopTimeout:  stopPatience,
		ErrorIfCRDPathMissing:    true,
	}
	if o.CRDs == nil {
		o.CRDs = []string{"config/crd"}
	}
	for _, path := range o.CRDs {
		env.CRDDirectoryPaths = append(env.CRDDirectoryPaths, filepath.Join(p.root, path))
	}
	api := env.ControlPlane.GetAPIServer()
	env.ControlPlane.Etcd = &envtest.Etcd{DataDir: filepath.Join(p.dir, "etcd-data")}
	env.ControlPlane.KubectlPath = paths[Kubectl]
	api.CertDir = p.certDir()
	for _, dir := range []string{api.CertDir, env.ControlPlane.Etcd.DataDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if err := p.attach(&api.Path, &api.Out, &api.Err, APIServer, paths); err != nil {
		return nil, err
	}
	etcd := env.ControlPlane.Etcd
	if err := p.attach(&etcd.Path, &etcd.Out, &etcd.Err, Etcd, paths); err != nil {
		return nil, err
	}
	return env, p.configureAPIServer(api, o)
}

// attach gives one of envtest's programs its launcher and its log.
func (p *Plane) attach(path *string, out, errs *io.Writer, name Program, paths map[Program]string) (err error) {
	if *path, err = p.link(string(name), paths[name]); err != nil {
		return fmt.Errorf("prepare %s: %w", name, err)
	}
	log, err := openLog(p.logPath(string(name)))
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", name, err)
	}
	p.logs = append(p.logs, log)
	*out, *errs = log, log
	return nil
}

// configureAPIServer sets the flags in which our API server differs from envtest's default.
func (p *Plane) configureAPIServer(api *envtest.APIServer, o Options) error {
	flags := api.Configure()
	// envtest turns the ServiceAccount plugin off; a cluster has it on.
	flags.Disable("disable-admission-plugins")
	flags.Set("authorization-mode", "RBAC")
	if o.Audit {
		policy := filepath.Join(p.dir, "audit-policy.yaml")
		if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
			return fmt.Errorf("write the audit policy: %w", err)
		}
		flags.Set("audit-policy-file", policy)
		flags.Set("audit-log-path", p.AuditLog())
	}
	for _, flag := range o.APIServerFlags {
		name, value, ok := strings.Cut(flag, "=")
		if !ok || strings.HasPrefix(name, "-") {
			return fmt.Errorf("API server flag %q must have the form name=value", flag)
		}
		flags.Append(name, value)
	}
	return nil
}

// Stop ends every process, last started first, waits for them and removes the run folder. It may be called twice.
func (p *Plane) Stop() error {
	p.mu.Lock()
	processes := p.processes
	p.processes = nil
	p.mu.Unlock()
	var errs []error
	for _, child := range slices.Backward(processes) {
		errs = append(errs, child.Stop())
	}
	if p.env != nil {
		errs = append(errs, p.env.Stop())
		p.env = nil
	}
	for _, log := range p.logs {
		errs = append(errs, log.Close())
	}
	p.logs = nil
	if p.release != nil {
		errs = append(errs, p.release(), os.RemoveAll(p.dir))
		p.release = nil
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the control plane: %w", err)
	}
	return nil
}

// Root is the root of the work tree.
func (p *Plane) Root() string { return p.root }

// Dir is a folder of this run for files of the caller; Stop removes it.
func (p *Plane) Dir() string { return filepath.Join(p.dir, "files") }

// AuditLog is the file with one JSON audit.k8s.io/v1 Event a line, written before the request is answered.
func (p *Plane) AuditLog() string { return filepath.Join(p.dir, "audit.log") }

func (p *Plane) certDir() string               { return filepath.Join(p.dir, "certs") }
func (p *Plane) logPath(program string) string { return filepath.Join(p.dir, program+".log") }
func (p *Plane) adminKubeconfig() string       { return filepath.Join(p.dir, "admin.kubeconfig") }
