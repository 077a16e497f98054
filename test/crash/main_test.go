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

// The installation that all tests of this package share, one after another.
var (
	house *installation.Installation
	stage scene.Stage
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(logr.Discard()) // the client logs warnings of the API server
	ctx := context.Background()
	var err error
	if house, err = installation.Start(ctx, installation.Options{
		Progress: os.Stderr, WithoutController: true,
		// A lease of a dead controller lasts 15 s, and would hide how fast the next one looks at what is open.
		ControllerArgs: []string{"--leader-elect=false", "--log-level=debug"},
	}); err != nil {
		fmt.Fprintln(os.Stderr, "installation:", err)
		return 1
	}
	code := 1
	if err := prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
	} else {
		code = m.Run()
	}
	if code != 0 {
		showLog(house.Controller.Log)
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

// showLog shows how a log ends, for somebody who looks for the reason of a failure.
func showLog(path string) {
	const enough = 200
	text, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "read the controller's log:", err)
		return
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	fmt.Fprintf(os.Stderr, "the controller's log ends:\n%s\n", strings.Join(lines[max(0, len(lines)-enough):], "\n"))
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
