package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopPatience is how long a process may take to end after SIGTERM before it is killed.
const stopPatience = 20 * time.Second

// ProcessOptions describe a program that runs beside the plane.
type ProcessOptions struct {
	// Name is unique among the plane's running processes. It names the log.
	Name string
	// Path of the executable.
	Path string
	// Args for it, without its name.
	Args []string
	// Env is added to the environment of this process, from which KUBECONFIG is taken out.
	Env []string
	// Log is the file that its output is added to; none means one in the run folder.
	Log string
}

// Process is a child that ends with the plane, and also when the starter dies without stopping the plane.
type Process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of the end; written before done is closed
}

// StartProcess starts a program that ends when the plane stops. It returns as soon as the program runs; whether it
// is ready is for the caller to find out.
func (p *Plane) StartProcess(o ProcessOptions) (*Process, error) {
	link, err := p.link(o.Name, o.Path)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", o.Name, err)
	}
	if o.Log == "" {
		o.Log = p.logPath(o.Name)
	}
	child := &Process{name: o.Name, log: o.Log, cmd: exec.Command(link, o.Args...), done: make(chan struct{})}
	child.cmd.Env = append(environWithout("KUBECONFIG"), o.Env...)
	// A group of its own: Ctrl-C at a terminal reaches the starter only, which then stops the children in order.
	child.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := openLog(child.log)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", o.Name, err)
	}
	defer log.Close() // the child holds its own descriptor
	// A file and no pipe: nothing waits for a copying goroutine, and an orphan can't block on a reader that is gone.
	child.cmd.Stdout, child.cmd.Stderr = log, log
	if err := child.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	go func() {
		child.err = child.cmd.Wait()
		close(child.done)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.processes = append(p.processes, child)
	return child, nil
}

// Done is closed once the process has ended.
func (c *Process) Done() <-chan struct{} { return c.done }

// Log is the path of the file with the output.
func (c *Process) Log() string { return c.log }

// Err says how the process ended, with the end of its log, or nil while it runs.
func (c *Process) Err() error {
	select {
	case <-c.done:
		return fmt.Errorf("%s ended (%w); its log %s ends:\n%s", c.name, orExit(c.err), c.log, tail(c.log, 20))
	default:
		return nil
	}
}

// Stop asks the process to end with SIGTERM, kills it after 20 s, and waits. A process that has ended is fine.
func (c *Process) Stop() error {
	if err := c.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-time.After(stopPatience):
		return errors.Join(fmt.Errorf("%s did not end within %s of SIGTERM and was killed", c.name, stopPatience), c.Kill())
	}
}

// Kill ends the process at once, as a crash would, and waits.
func (c *Process) Kill() error {
	if err := c.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.done
	return nil
}

// Freeze stops the process in the middle of what it does, as on a node that stands still, until Thaw. It returns once
// every thread stands still: the signal alone lets others run on while the first is being stopped. A frozen process can
// be killed. Linux only.
func (c *Process) Freeze() error {
	if err := c.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	return c.WaitFor(ctx, c.name+" to stand still", func(context.Context) (bool, error) { return frozen(c.cmd.Process.Pid) })
}

// frozen says whether all threads of a process are stopped.
func frozen(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false, fmt.Errorf("list the threads of process %d: %w", pid, errors.Join(err, os.ErrNotExist))
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			return false, err
		}
		// The state is the letter after the name, which stands in parentheses and may hold some itself.
		_, state, _ := strings.Cut(string(text[strings.LastIndex(string(text), ")"):]), " ")
		if !strings.HasPrefix(state, "T") {
			return false, nil
		}
	}
	return true, nil
}

// Thaw lets a frozen process go on. It knows nothing of the time that has passed.
func (c *Process) Thaw() error { return c.signal(syscall.SIGCONT) }

// signal sends one signal; to a process that has ended it does nothing.
func (c *Process) signal(s syscall.Signal) error {
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", c.name, err)
	}
	return nil
}

// orExit gives an exit without an error a text.
func orExit(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// link makes RUN/NAME start the program through launch.sh, which notes its process id for the warden. The script
// stands in the work tree: one that this process had just written might still be open for writing in a child that
// is forked at the same moment, and then can't be executed.
func (p *Plane) link(name, program string) (string, error) {
	script := filepath.Join(p.root, "internal", "controlplane", "launch.sh")
	path := filepath.Join(p.dir, name)
	for link, target := range map[string]string{path: script, path + ".bin": program} {
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if err := os.Symlink(target, link); err != nil {
			return "", err
		}
	}
	return path, nil
}

// startWarden starts the process that cleans up if this one dies. Its standard input is a pipe whose other end the
// kernel closes with us.
func startWarden(root, dir string, credentials []string) (release func() error, err error) {
	script := filepath.Join(root, "internal", "controlplane", "warden.sh")
	cmd := exec.Command("/bin/sh", append([]string{script, dir}, credentials...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() error {
		_, err := io.WriteString(pipe, "stopped\n")
		return errors.Join(err, pipe.Close(), cmd.Wait())
	}, nil
}

// WaitFor polls until ready answers true. It gives up when the context ends or the process does, and then says what
// was waited for and what the last answer was.
func (c *Process) WaitFor(ctx context.Context, what string, ready func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, last := ready(ctx)
		if ok {
			return nil
		}
		select {
		case <-ticker.C:
		case <-c.done:
			return fmt.Errorf("wait for %s: %w", what, c.Err())
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; the log of %s (%s) ends:\n%s",
				what, errors.Join(ctx.Err(), last), c.name, c.log, tail(c.log, 20))
		}
	}
}

func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// tail returns the last lines of a file, or why it can't be read: both are for a person's eyes.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text), lines)
}

// environWithout returns this process's environment without one variable.
func environWithout(name string) []string {
	var kept []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, name+"=") {
			kept = append(kept, entry)
		}
	}
	return kept
}
