package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/internal/controlplane"
)

// Namespace is the operator's own.
const Namespace = "flight-operator-system"

// Options choose what is started. The zero value is a whole installation that books with a simulator.
type Options struct {
	// Progress is told what happens, one line each. Nil means nobody is.
	Progress io.Writer
	// Dir takes logs, kubeconfigs and certificates, and stays after Stop, which removes the credentials in it. Empty means
	// a temporary folder, which Stop removes; after a failed Start it stays, for its logs.
	Dir string
	// WithoutController leaves the controller to a later StartController.
	WithoutController bool
	// ControllerArgs and WebhookArgs are added to the programs' flags.
	ControllerArgs, WebhookArgs []string
	// Settings of the simulator. The provider declares the same: key lifetime, lookup, read lag, processing.
	Settings simulator.Settings
	// Audit writes every request to the file of Plane.AuditLog.
	Audit bool
}

// Stage is a part of a start and what it took.
type Stage struct {
	Name string
	Took time.Duration
}

// Installation is a running operator. Its methods may be used concurrently, except that programs are started and
// stopped by one goroutine at a time, and Stop comes last.
type Installation struct {
	// Plane is the control plane.
	Plane *controlplane.Plane
	// Simulator is the booking API.
	Simulator *Simulator
	// Client acts as the administrator. It knows the built-in kinds and ours.
	Client client.WithWatch
	// Dir holds logs, kubeconfigs and certificates.
	Dir string
	// Webhook and Controller are the programs.
	Webhook, Controller *Program
	// Stages says how long each part of the start took.
	Stages []Stage

	options   Options
	temporary bool              // Dir is ours to remove
	unmount   func()            // ends the watch of the mounted Secrets
	built     map[string]string // paths of the programs

	mu    sync.Mutex
	sides []*Side
}

// Start builds the programs, starts a control plane, cert-manager, the simulator, the webhook and the controller, and
// returns once a ticket would be admitted and the provider is ready. The caller must Stop it. The context bounds the
// start only. The error says which part failed, how its log ends and where the log is; nothing is left running.
func Start(ctx context.Context, o Options) (*Installation, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	i := &Installation{options: o}
	if err := i.openDir(); err != nil {
		return nil, fmt.Errorf("make the folder of the installation: %w", err)
	}
	for _, stage := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"control plane", i.startPlane},
		{"programs built", i.build},
		{"cert-manager", i.startCertManager},
		{"manifests and certificates", i.install},
		{"programs started", i.startPrograms},
	} {
		began := time.Now()
		if err := stage.do(ctx); err != nil {
			return nil, errors.Join(i.failed(ctx, stage.name, err), i.Stop())
		}
		took := time.Since(began)
		i.Stages = append(i.Stages, Stage{stage.name, took})
		fmt.Fprintf(o.Progress, "%s: %.1f s\n", stage.name, took.Seconds())
	}
	return i, nil
}

// failed says where the files of a failed start are, and keeps them, unless somebody just gave up.
func (i *Installation) failed(ctx context.Context, stage string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", stage, err)
	}
	i.temporary = false
	return fmt.Errorf("%s: %w\n(files of this run: %s)", stage, err, i.Dir)
}

// Keep makes a temporary Dir outlive Stop, for whoever wants to read its logs.
func (i *Installation) Keep() { i.temporary = false }

func (i *Installation) openDir() (err error) {
	if i.options.Dir == "" {
		i.temporary = true
		i.Dir, err = os.MkdirTemp("", "flight-operator-")
		return err
	}
	if i.Dir, err = filepath.Abs(i.options.Dir); err != nil {
		return err
	}
	return os.MkdirAll(i.Dir, 0o700)
}

func (i *Installation) startPlane(ctx context.Context) (err error) {
	i.Plane, err = controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true,
		CRDs:              []string{}, // they come with the manifests, as they do for everybody
		Audit:             i.options.Audit,
		Credentials:       i.credentials(),
		Progress:          i.options.Progress,
	})
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), flightsv1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("build the scheme: %w", err)
	}
	i.Client, err = client.NewWithWatch(i.Plane.Config, client.Options{Scheme: scheme})
	return err
}

func (i *Installation) startCertManager(ctx context.Context) error {
	_, err := i.Plane.StartCertManager(ctx)
	return err
}

// Stop ends every process that Start and its like started, each by its own id, and waits for them. The programs go
// first, so that none of them logs the end of the control plane.
func (i *Installation) Stop() error {
	var errs []error
	if i.Controller != nil {
		errs = append(errs, i.Controller.stop())
	}
	for _, s := range i.sides {
		errs = append(errs, s.Kill())
	}
	if i.Webhook != nil {
		errs = append(errs, i.Webhook.stop())
	}
	if i.unmount != nil {
		i.unmount()
	}
	if i.Plane != nil {
		errs = append(errs, i.Plane.Stop())
	}
	if i.temporary {
		errs = append(errs, os.RemoveAll(i.Dir))
	}
	return errors.Join(append(errs, i.removeCredentials())...)
}

// removeCredentials leaves logs alone in a folder that stays.
func (i *Installation) removeCredentials() error {
	var errs []error
	for _, path := range i.credentials() {
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(errs...)
}

// credentials are the files and folders in Dir that must not outlive the run.
func (i *Installation) credentials() []string {
	paths := []string{tokensIn(i.Dir), sidesIn(i.Dir)}
	for _, name := range []string{"webhook", "controller"} {
		p := newProgram(name)
		paths = append(paths, p.kubeconfigIn(i.Dir), p.tlsDir(i.Dir))
	}
	return paths
}
