package controlplane_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/flight-operator/flight-operator/internal/controlplane"
)

func TestGivenAssetsAreTakenWhereTheyExist(t *testing.T) {
	assets := t.TempDir()
	given := filepath.Join(assets, "kubectl")
	if err := os.WriteFile(given, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	paths, err := controlplane.Programs(t.Context(), nil, controlplane.Kubectl, controlplane.ControllerManager)
	if err != nil {
		t.Fatal(err)
	}
	if got := paths[controlplane.Kubectl]; got != given {
		t.Errorf("kubectl is %s, want the given %s", got, given)
	}
	if got := paths[controlplane.ControllerManager]; strings.HasPrefix(got, assets) {
		t.Errorf("kube-controller-manager is %s, which nobody gave", got)
	}
}

func TestAProgramThatNobodyKnowsIsRefused(t *testing.T) {
	if _, err := controlplane.Programs(t.Context(), nil, "kube-what"); err == nil || !strings.Contains(err.Error(), `"kube-what"`) {
		t.Errorf("got %v", err)
	}
}

// One process at a time builds; who waits is told so and can give up.
func TestABuildWaitsForTheLockAndCanBeGivenUp(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("FLIGHT_OPERATOR_CACHE", cache)
	t.Setenv("KUBEBUILDER_ASSETS", "") // else there may be nothing to build
	held, err := os.Create(filepath.Join(cache, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close() // nothing was written
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	said := &cancelling{cancel: cancel}
	_, err = controlplane.Programs(ctx, said, controlplane.Etcd)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v", err)
	}
	if !strings.Contains(said.text.String(), "waiting for another process") {
		t.Errorf("the person who waits was told %q", said.text.String())
	}
}

// cancelling gives up as soon as it is told anything.
type cancelling struct {
	cancel context.CancelFunc
	text   bytes.Buffer
}

func (c *cancelling) Write(p []byte) (int, error) {
	c.cancel()
	return c.text.Write(p)
}
