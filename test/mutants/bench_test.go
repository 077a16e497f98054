package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flight-operator/flight-operator/internal/controlplane"
)

// trial bounds what the tests of one mutant may take. None needs a tenth of it.
const trial = 3 * time.Minute

// bench builds test programs of the work tree, as it is or with one file replaced, and runs them.
type bench struct{ root, dir string }

func newBench(t *testing.T) *bench {
	t.Helper()
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	return &bench{root: root, dir: t.TempDir()}
}

// sound runs the named tests of the chosen mutants with everything in place: each must be there and pass.
func (b *bench) sound(t *testing.T, chosen []mutant) {
	packages := map[string][]mutant{}
	for _, m := range chosen {
		packages[m.pkg] = append(packages[m.pkg], m)
	}
	for pkg, mutants := range packages {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			program, err := b.build(t.Context(), pkg, nil)
			if err != nil {
				t.Fatal(err)
			}
			names := map[string]bool{}
			for _, m := range mutants {
				top, _, _ := strings.Cut(m.test, "/")
				names[regexp.QuoteMeta(top)] = true
			}
			output, _ := b.run(t.Context(), program, pkg, "^("+strings.Join(keys(names), "|")+")$")
			for _, m := range mutants {
				if !m.reported(output, "PASS") {
					t.Errorf("%s does not pass with everything in place:\n%s", m.test, tail(output))
				}
			}
		})
	}
}

func keys(set map[string]bool) []string {
	var all []string
	for key := range set {
		all = append(all, key)
	}
	return all
}

// try takes a guard out and runs the test that must miss it. The error says why the mutant was not caught.
func (b *bench) try(t *testing.T, m mutant) (verdict, error) {
	sources, err := b.sources(m.in)
	if err != nil {
		return broken, err
	}
	file, mutated, err := m.apply(sources)
	if err != nil {
		return broken, err
	}
	program, err := b.build(t.Context(), m.pkg, map[string]string{file: mutated})
	if err != nil {
		return broken, fmt.Errorf("the mutant does not compile, so that no test can say anything about it: %w", err)
	}
	var elements []string
	for part := range strings.SplitSeq(m.test, "/") {
		elements = append(elements, "^"+regexp.QuoteMeta(part)+"$")
	}
	return m.judge(b.run(t.Context(), program, m.pkg, strings.Join(elements, "/")))
}

// build compiles the test program of a package. Replaced holds other texts for some of the files, by their path from the
// root; the files stay as they are.
func (b *bench) build(ctx context.Context, pkg string, replaced map[string]string) (program string, err error) {
	dir, err := os.MkdirTemp(b.dir, "")
	if err != nil {
		return "", err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range replaced {
		copied := filepath.Join(dir, filepath.Base(file))
		overlay.Replace[filepath.Join(b.root, file)] = copied
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "program.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-buildvcs=false", "-ldflags=-s -w",
		"-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./"+pkg)
	cmd.Dir = b.root
	// The race detector of the run around this one must not leak in: it would compile everything anew.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, tail(string(out)))
	}
	return program, nil
}

// run runs tests of a program in the folder of its package, as go test does.
func (b *bench) run(ctx context.Context, program, pkg, pattern string) (output string, passed bool) {
	cmd := exec.CommandContext(ctx, program, "-test.v", "-test.failfast", "-test.timeout="+trial.String(), "-test.run="+pattern)
	cmd.Dir = filepath.Join(b.root, pkg)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	_ = os.Remove(program) // it is large, and the next one is another
	return out.String(), err == nil
}

// sources reads the files that a package is compiled of, by their path from the root.
func (b *bench) sources(folder string) (map[string]string, error) {
	entries, err := os.ReadDir(filepath.Join(b.root, folder))
	if err != nil {
		return nil, fmt.Errorf("read the package to mutate: %w", err)
	}
	texts := map[string]string{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(b.root, folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read a file to mutate: %w", err)
		}
		texts[filepath.ToSlash(filepath.Join(folder, entry.Name()))] = string(text)
	}
	return texts, nil
}

// apply takes the guard out of the one file that holds it.
func (m mutant) apply(sources map[string]string) (file, text string, err error) {
	if m.old == "" || m.old == m.new {
		return "", "", errors.New("the mutant replaces nothing")
	}
	count := 0
	for name, original := range sources {
		if n := strings.Count(original, m.old); n > 0 {
			count += n
			file, text = name, strings.Replace(original, m.old, m.new, 1)
		}
	}
	if count != 1 {
		return "", "", fmt.Errorf("the text to take out is there %d times in %s, not once: bring the table of mutants up to date:\n%s",
			count, m.in, m.old)
	}
	return file, text, nil
}

// judge says what a run of the named test tells about the mutant.
func (m mutant) judge(output string, passed bool) (verdict, error) {
	switch {
	case !passed && m.reported(output, "FAIL"):
		return caught, nil
	case passed && m.reported(output, "PASS"):
		return survived, fmt.Errorf("%s in %s passes though %s", m.test, m.pkg, m.without)
	default:
		return broken, fmt.Errorf("%s in %s neither passes nor fails:\n%s", m.test, m.pkg, tail(output))
	}
}

// reported says whether a program's output holds a result of the mutant's test.
func (m mutant) reported(output, result string) bool {
	for line := range strings.Lines(output) {
		if strings.HasPrefix(strings.TrimSpace(line), "--- "+result+": "+m.test+" (") {
			return true
		}
	}
	return false
}

// tail is how an output ends, for a message.
func tail(output string) string {
	const enough = 3000
	return output[max(0, len(output)-enough):]
}
