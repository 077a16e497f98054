package controlplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// build is one program on its way from a pinned module into the cache.
type build struct {
	name    Program
	recipe  recipe
	folder  string // of the nested module
	version string
	flags   string // for the linker
	cache   string // of all programs
	key     string // of this build's inputs: another key is another folder, so a stale program is never taken
}

// newBuild works out what a build depends on. It runs nothing.
func newBuild(root string, name Program, r recipe) (build, error) {
	folder := filepath.Join(root, filepath.FromSlash(r.folder))
	gomod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return build{}, err
	}
	version, err := pinnedVersion(gomod, r.module)
	if err != nil {
		return build{}, err
	}
	cache, err := CacheFolder()
	if err != nil {
		return build{}, err
	}
	b := build{name: name, recipe: r, folder: folder, version: version, flags: linkFlags(r.module, version), cache: cache}
	b.key, err = b.inputs()
	return b, err
}

// CacheFolder is where built programs are kept: FLIGHT_OPERATOR_CACHE, or a folder of the user's cache. It need not
// exist yet.
func CacheFolder() (string, error) {
	if folder := os.Getenv("FLIGHT_OPERATOR_CACHE"); folder != "" {
		return filepath.Abs(folder)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache folder (FLIGHT_OPERATOR_CACHE can name one): %w", err)
	}
	return filepath.Join(user, "flight-operator"), nil
}

// inputs digests everything that can make one build differ from another.
func (b build) inputs() (string, error) {
	digest := sha256.New()
	fmt.Fprintln(digest, b.recipe.target, b.flags, runtime.GOOS, runtime.GOARCH, runtime.Version())
	files, err := filepath.Glob(filepath.Join(b.folder, "*.go"))
	if err != nil {
		return "", err
	}
	for _, file := range append(files, filepath.Join(b.folder, "go.mod"), filepath.Join(b.folder, "go.sum")) {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(digest, filepath.Base(file), len(text))
		digest.Write(text)
	}
	return hex.EncodeToString(digest.Sum(nil))[:16], nil
}

// path is where the finished program stands.
func (b build) path() string {
	return filepath.Join(b.cache, string(b.name)+"-"+b.version+"-"+b.key, string(b.name))
}

// ensure returns the program's path, building it first if nobody has.
func (b build) ensure(ctx context.Context, progress io.Writer) (string, error) {
	if _, err := os.Stat(b.path()); err == nil {
		return b.path(), nil
	}
	if err := os.MkdirAll(filepath.Dir(b.path()), 0o755); err != nil {
		return "", err
	}
	// One lock for all programs: two heavy builds at once take longer than one after the other.
	unlock, err := Lock(ctx, filepath.Join(b.cache, "lock"), func() {
		fmt.Fprintf(progress, "waiting for another process that builds in %s\n", b.cache)
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(b.path()); err == nil {
		return b.path(), nil // the holder of the lock before us built it
	}
	fmt.Fprintf(progress, "building %s %s from its module: %s on 2 cores, once\n", b.name, b.version, b.recipe.patience)
	start := time.Now()
	defer Reassure(progress, "building "+string(b.name), "")()
	if err := b.compile(ctx); err != nil {
		return "", err
	}
	fmt.Fprintf(progress, "built %s %s in %s\n", b.name, b.version, time.Since(start).Round(time.Second))
	return b.path(), nil
}

// compile builds beside the final place and renames, so that no half-written program is ever found there.
func (b build) compile(ctx context.Context) error {
	fresh := fmt.Sprintf("%s.%d", b.path(), os.Getpid())
	defer os.Remove(fresh) // after the rename there is nothing to remove

	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", b.flags, "-o", fresh, b.recipe.target)
	cmd.Dir = b.folder
	// What a caller's environment adds for its own build (-race, another target, a workspace) must not leak in.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the Go tool then ends its compilers
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", errors.Join(ctx.Err(), err), lastLines(said.String(), 20))
	}
	return os.Rename(fresh, b.path())
}

// Lock takes an exclusive lock on a file, which it makes where there is none, and returns its release. The kernel drops it when a holder dies. waiting is
// called once if somebody else holds it.
func Lock(ctx context.Context, path string, waiting func()) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for the lock %s: %w", path, ctx.Err()), file.Close())
		case <-time.After(200 * time.Millisecond): // a blocking flock can't be given up
		}
	}
}

// Reassure tells progress every 30 s that something still goes on, until the returned stop is called; stop waits for a
// line that is being written. The notice, if there is one, comes first and once, after 5 s: what is done sooner needs none.
func Reassure(progress io.Writer, what, notice string) (stop func()) {
	start := time.Now()
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		ticker := time.NewTicker(30 * time.Second)
		defer ticker.Stop()
		soon := time.NewTimer(5 * time.Second)
		defer soon.Stop()
		for {
			select {
			case <-quit:
				return
			case <-soon.C:
				if notice != "" {
					fmt.Fprintln(progress, notice)
				}
			case <-ticker.C:
				fmt.Fprintf(progress, "still %s: %s\n", what, time.Since(start).Round(time.Second))
			}
		}
	}()
	return func() { close(quit); <-gone }
}

// lastLines keeps the end of a program's output, which is where it says why it failed.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
