package installation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/flight-operator/flight-operator/internal/controlplane"
)

// builtPrograms are those of ours that run here, and what people use beside kubectl.
func builtPrograms() []string {
	return []string{"webhook", "controller", "booking-simulator", "kubectl-flights"}
}

// PluginPath is the program kubectl-flights; kubectl finds it as `kubectl flights` where its folder is on the PATH.
func (i *Installation) PluginPath() string { return i.built["kubectl-flights"] }

// Build compiles our programs as they are in the work tree, so that a later Start finds them done. Start does it too.
func Build(ctx context.Context, progress io.Writer) error {
	_, unlock, err := compile(ctx, progress)
	if err != nil {
		return err
	}
	unlock()
	return nil
}

// build compiles our programs and puts them into the run folder: a second run that builds a later state can't replace
// what this one is about to start again.
func (i *Installation) build(ctx context.Context) error {
	fresh, unlock, err := compile(ctx, i.options.Progress)
	if err != nil {
		return err
	}
	defer unlock()
	i.built = map[string]string{}
	folder := filepath.Join(i.Plane.Dir(), "bin")
	for _, name := range builtPrograms() {
		i.built[name] = filepath.Join(folder, name)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for name, path := range i.built {
		if err := os.Link(filepath.Join(fresh, name), path); err != nil { // the folders are on two file systems
			return os.CopyFS(folder, os.DirFS(fresh))
		}
	}
	return nil
}

// compile builds into a folder of the cache that belongs to this work tree, for there the Go tool finds what it linked
// the last time and need not do it again. The folder is the caller's until it calls unlock.
func compile(ctx context.Context, progress io.Writer) (folder string, unlock func(), err error) {
	root, err := controlplane.Root()
	if err != nil {
		return "", nil, err
	}
	cache, err := controlplane.CacheFolder()
	if err != nil {
		return "", nil, err
	}
	tree := sha256.Sum256([]byte(root))
	folder = filepath.Join(cache, fmt.Sprintf("work-tree-%x", tree[:8]))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", nil, err
	}
	unlock, err = controlplane.Lock(ctx, folder+".lock", func() {
		fmt.Fprintln(progress, "waiting for another run that builds")
	})
	if err != nil {
		return "", nil, err
	}
	defer controlplane.Reassure(progress, "building our programs",
		"building webhook, controller, booking-simulator and kubectl-flights: about 4 minutes on 2 cores the first time, then seconds")()
	if err := goBuild(ctx, root, folder); err != nil {
		unlock()
		return "", nil, err
	}
	return folder, unlock, nil
}

func goBuild(ctx context.Context, root, folder string) error {
	args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", folder + string(filepath.Separator)}
	for _, name := range builtPrograms() {
		args = append(args, "./cmd/"+name)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	// What the caller's environment adds for its own build, such as the race detector, must not leak in.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the Go tool then ends its compilers
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build our programs: %w\n%s", errors.Join(ctx.Err(), err), out)
	}
	return nil
}
