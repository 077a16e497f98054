package policy_test

import (
	"os"
	"path/filepath"
	"testing"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
	"sigs.k8s.io/yaml"
)

func TestShippedManifestsHoldPoliciesThatCompile(t *testing.T) {
	for _, pattern := range []string{"../../config/samples/flightpolicy-*.yaml", "../../config/policies/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no manifests at %s (%v)", pattern, err)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var p flightsv1.FlightPolicy
			if err := yaml.UnmarshalStrict(text, &p); err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if err := policy.NewEngine(policy.Rules()...).Validate(t.Context(), &p); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
