package crash

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/test/installation"
	"github.com/flight-operator/flight-operator/test/scene"
)

const unknownOutcome = booking.Unknown

// testsAtATime is how many tests run beside one another. Each has a controller or two, and a sweep has some more.
const testsAtATime = 12

// The installation that all tests of this package share.
var (
	house *installation.Installation
	stage scene.Stage
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	// Most of these tests wait for a lease, a lag or a process; so more of them run at a time than there are processors.
	os.Args = append(os.Args, fmt.Sprintf("-test.parallel=%d", testsAtATime))
	log.SetLogger(logr.Discard()) // the client logs warnings of the API server
	ctx := context.Background()
	var err error
	// Each test has controllers of its own.
	if house, err = installation.Start(ctx, installation.Options{Progress: os.Stderr, WithoutController: true}); err != nil {
		fmt.Fprintln(os.Stderr, "installation:", err)
		return 1
	}
	code := 1
	if err := prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
	} else {
		code = m.Run()
	}
	if err := house.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "installation:", err)
		return 1
	}
	return code
}

// prepare puts the status guard in force.
func prepare(ctx context.Context) error {
	stage = scene.Stage{Config: house.Plane.Config, Client: house.Client, Kubectl: house.Plane.KubectlCommand}
	apply := house.Plane.KubectlCommand(ctx, "apply", "-f", "-")
	apply.Stdin = strings.NewReader(statusGuard)
	if out, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("apply the status guard: %w: %s", err, out)
	}
	return nil
}

// tail returns the last lines of a file, or why it can't be read: both are for somebody who looks for the reason of a
// failure.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// statusGuard is a ValidatingAdmissionPolicy by which a test has the API server refuse a write of the controller: that
// of an operation, or that of a booking, for tickets with an annotation. It is there from the start, because a new policy
// takes a while to be in force.
const statusGuard = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: test-refuse-status}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [flights.com], apiVersions: ["*"], operations: [UPDATE], resources: [flighttickets/status]}
  variables:
  - {name: refused, expression: "has(object.metadata.annotations) && 'test/refuse' in object.metadata.annotations ? object.metadata.annotations['test/refuse'] : ''"}
  validations:
  - {expression: "variables.refused != 'operation' || !has(object.status.operation)", message: the test refuses the operation}
  - {expression: "variables.refused != 'booking' || !has(object.status.booking)", message: the test refuses the booking}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: test-refuse-status}
spec: {policyName: test-refuse-status, validationActions: [Deny]}
`
