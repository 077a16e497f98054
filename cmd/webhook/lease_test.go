package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flight-operator/flight-operator/cmd/internal/program"
	"github.com/flight-operator/flight-operator/internal/replica"
)

// A replica that can't tell what it serves isn't waited for when a policy is called served. It must not decide then.
func TestAReplicaThatNobodyCountsDecidesNothing(t *testing.T) {
	w := startWebhook(t)
	c := newClient(t, plane.Config)
	place := metav1.ObjectMeta{Namespace: program.DefaultNamespace, Name: replica.LeasePrefix + w.options.replica}
	if err := c.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: program.DefaultNamespace, Name: "flight-webhook"}}); err != nil {
		t.Fatal(err)
	}
	attempt := func(ctx context.Context) error {
		return c.Create(ctx, newTicket("default", "attempt"), client.DryRunAll)
	}
	eventually(t, "tickets are refused while the replica has no lease", func(ctx context.Context) error {
		if err := client.IgnoreNotFound(c.Delete(ctx, &coordinationv1.Lease{ObjectMeta: place})); err != nil {
			return err
		}
		err := attempt(ctx)
		if err == nil {
			return errors.New("a ticket was admitted")
		}
		if !strings.Contains(err.Error(), "nothing was stored, retry") {
			return fmt.Errorf("refused for another reason: %w", err)
		}
		return nil
	})
	if w.probe(t.Context(), "/readyz") == nil {
		t.Error("the replica calls itself ready")
	}
	if out, err := kubectl(t, "", "apply", "-f", filepath.Join(plane.Root(), "config/rbac/bindings.yaml")); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, "it is ready again", func(ctx context.Context) error { return w.probe(ctx, "/readyz") })
	if err := attempt(t.Context()); err != nil {
		t.Errorf("a ticket is refused after the replica has caught up: %v", err)
	}
}
