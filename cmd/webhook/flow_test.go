package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/internal/program"
)

func TestTheRequestsOfTheWebhookDoNotQueueBehindThoseThatWaitForIt(t *testing.T) {
	serviceAccount(t)
	admin := newClient(t, plane.Config)
	file := filepath.Join(plane.Root(), "config/webhook/flowschema.yaml")
	if out, err := kubectl(t, "", "apply", "-f", file); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	flow := &flowcontrolv1.FlowSchema{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "flight-webhook"}, flow); err != nil {
		t.Fatal(err)
	}
	deleteAfter(t, admin, flow)
	config, err := plane.ServiceAccountConfig(t.Context(), program.DefaultNamespace, "flight-webhook")
	if err != nil {
		t.Fatal(err)
	}
	var used string
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				used = response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
			}
			return response, err
		})
	})
	webhook := newClient(t, config)
	eventually(t, "the API server knows the flow", func(ctx context.Context) error {
		err := webhook.Get(ctx, client.ObjectKey{Namespace: "default", Name: "none"}, &flightsv1.QuotaBucket{})
		if client.IgnoreNotFound(err) != nil || used != string(flow.UID) {
			return fmt.Errorf("a read ends with %w in flow %q, want %s", err, used, flow.UID)
		}
		return nil
	})
}
