package installation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// build compiles our programs as they are in the work tree, into the run folder: a second run that builds a later state
// at the same time can't replace what this one is about to start again.
func (i *Installation) build(ctx context.Context) error {
	folder := filepath.Join(i.Plane.Dir(), "bin") + string(filepath.Separator)
	names := []string{"webhook", "controller", "booking-simulator"}
	fmt.Fprintln(i.options.Progress, "building webhook, controller and booking-simulator: a few minutes for the first time, then seconds")
	args := []string{"build", "-ldflags=-s -w", "-o", folder}
	i.built = map[string]string{}
	for _, name := range names {
		args = append(args, "./cmd/"+name)
		i.built[name] = folder + name
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = i.Plane.Root()
	// What the caller's environment adds for its own build, such as the race detector, must not leak in.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the Go tool then ends its compilers
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return nil
}
