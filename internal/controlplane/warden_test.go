package controlplane_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A starter that is killed, or that `go test` ends at its time-out, stops nothing itself. Its warden does: here the
// starter's end is the closing of the warden's pipe, as the kernel does it.
func TestTheWardenEndsWhatAStarterLeft(t *testing.T) {
	for _, test := range []struct {
		name, word string
		survives   bool
	}{
		{"when the starter died", "", false},
		{"but nothing when the starter has cleaned up itself", "stopped\n", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := filepath.Join(t.TempDir(), "run")
			credential := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(credential, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			child := startLinked(t, run, "sleep", "600")
			warden := exec.Command("./warden.sh", run, credential)
			pipe, err := warden.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if !test.survives {
				writeOnceItIsGone(t, run)
			}
			if err := warden.Start(); err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(pipe, test.word)
			if err := errors.Join(err, pipe.Close(), warden.Wait()); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{run, credential} {
				_, err = os.Stat(path)
				if exists := err == nil; exists != test.survives {
					t.Errorf("%s exists: %t", path, exists)
				}
			}
			if alive := child.Process.Signal(syscall.Signal(0)) == nil; test.survives && !alive {
				t.Error("the child was ended")
			}
			if !test.survives {
				if err := child.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
					t.Errorf("the child ended with %v", err)
				}
			}
		})
	}
}

// startLinked starts a program through launch.sh, as the plane does, and waits until its process id is noted.
func startLinked(t *testing.T, run, program string, args ...string) *exec.Cmd {
	t.Helper()
	script, err := filepath.Abs("launch.sh")
	if err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(run, program)
	if err := errors.Join(os.Mkdir(run, 0o700), os.Symlink(script, link), os.Symlink(path, link+".bin")); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(link, args...)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill() }) // it may have ended, as it should
	eventually(t, "the process id of the child", func(context.Context) (bool, error) {
		text, err := os.ReadFile(link + ".pid")
		return err == nil && strings.HasSuffix(string(text), "\n"), nil
	})
	return child
}

// writeOnceItIsGone starts what a kubectl is to the warden: a process in no file, that writes after the first removal.
func writeOnceItIsGone(t *testing.T, run string) {
	t.Helper()
	writer := exec.Command("/bin/sh", "-c", `while [ -e "$1" ]; do :; done; mkdir -p "$1/kube-cache"`, "sh", run)
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			_ = writer.Process.Kill() // the folder may still be there
		}
		if err := writer.Wait(); err != nil {
			t.Errorf("the writer ended with %v", err)
		}
	})
}
