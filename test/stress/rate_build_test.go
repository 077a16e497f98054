package stress

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flight-operator/flight-operator/internal/controlplane"
)

// The line of the store by which waiting claims share a worker, and what takes its place: a worker for each, which reads
// the bucket, writes it, and tries again when somebody else was ahead.
const (
	storeFile  = "internal/quota/store/lane.go"
	sharedLane = "l, served := s.lanes[place]\n"
	ownLane    = "l, served := &lane{}, false\n"
)

// buildWithoutBatches builds the webhook with each claim written by itself. It does so by a copy of one file that the Go
// tool is given in place of the original, so that what is shipped has no such switch.
func buildWithoutBatches(ctx context.Context, dir string) (program string, err error) {
	root, err := controlplane.Root()
	if err != nil {
		return "", err
	}
	original := filepath.Join(root, storeFile)
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if strings.Count(string(text), sharedLane) != 1 {
		return "", fmt.Errorf("%s doesn't hold %q once: bring this up to date", storeFile, sharedLane)
	}
	replaced, list := filepath.Join(dir, "lane.go"), filepath.Join(dir, "overlay.json")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: replaced}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(replaced, []byte(strings.Replace(string(text), sharedLane, ownLane, 1)), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "webhook")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", list, "-o", program, "./cmd/webhook")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the webhook without batches: %w\n%s", err, out)
	}
	return program, nil
}

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// The part of docs/bench.md that the benchmark writes.
const sectionBegins, sectionEnds = "<!-- generated: quota -->\n", "<!-- end of quota -->"

// writeSection puts a table into its place in a page.
func writeSection(path, table string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), sectionBegins)
	_, after, ends := strings.Cut(rest, sectionEnds)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for the figures: %q and %q", path, sectionBegins, sectionEnds)
	}
	return os.WriteFile(path, []byte(before+sectionBegins+table+sectionEnds+after), 0o644) //nolint:gosec // a page of the docs
}
