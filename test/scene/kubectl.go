package scene

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
)

// Manifest is the ticket that the README begins with.
const Manifest = `apiVersion: flights.com/v1
kind: FlightTicket
metadata:
  name: my-flight-ticket
spec:
  from: "Mumbai"
  to: "London"
  number: 2
`

// Answer is what kubectl printed, and the code that it ended with.
type Answer struct {
	Out, Err string
	Code     int
}

// Run runs kubectl in the scene's namespace, with a manifest on its standard input where there is one. It fails the
// test only if kubectl can't be run. It may be called concurrently.
func (s *Scene) Run(manifest string, args ...string) Answer {
	s.Helper()
	cmd := s.Kubectl(s.Context, append([]string{"--namespace=" + s.Namespace}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(manifest), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Errorf("kubectl %q: %v", args, err) // not Fatalf: users who race run it on goroutines of their own
		return Answer{Err: err.Error(), Code: -1}
	}
	return Answer{Out: out.String(), Err: errs.String(), Code: cmd.ProcessState.ExitCode()}
}

// Do runs kubectl, which must succeed, and returns what it printed.
func (s *Scene) Do(manifest string, args ...string) string {
	s.Helper()
	a := s.Run(manifest, args...)
	if a.Code != 0 {
		s.Fatalf("kubectl %q ended with code %d: %s%s", args, a.Code, a.Out, a.Err)
	}
	return a.Out
}

// Apply applies a manifest and returns the warnings.
func (s *Scene) Apply(manifest string, args ...string) string {
	s.Helper()
	a := s.Run(manifest, append([]string{"apply", "-f", "-"}, args...)...)
	if a.Code != 0 {
		s.Fatalf("kubectl apply %q ended with code %d: %s", args, a.Code, a.Err)
	}
	return a.Err
}

// Refused runs kubectl, which must fail, and returns what a person reads.
func (s *Scene) Refused(manifest string, args ...string) string {
	s.Helper()
	a := s.Run(manifest, args...)
	if a.Code == 0 {
		s.Errorf("kubectl %q was let through: %s", args, a.Out)
	}
	return a.Err
}

// Says fails unless a text holds every one of the parts.
func (s *Scene) Says(text string, parts ...string) {
	s.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			s.Errorf("the text does not say\n  %s\nit says\n  %s", part, text)
		}
	}
}

// TicketManifest is the ticket of Manifest under a name of its own, booked with the scene's provider. Lines are added to
// its spec, and take the place of those with the same field.
func (s *Scene) TicketManifest(name string, lines ...string) string {
	spec := []string{`from: "Mumbai"`, `to: "London"`, `number: 2`}
	if s.Provider != nil {
		spec = append(spec, "providerRef: {name: "+s.Provider.Name+"}")
	}
	for _, line := range lines {
		field, _, _ := strings.Cut(line, ":")
		kept := spec[:0:0]
		for _, old := range spec {
			if !strings.HasPrefix(old, field+":") {
				kept = append(kept, old)
			}
		}
		spec = append(kept, line)
	}
	return "apiVersion: flights.com/v1\nkind: FlightTicket\nmetadata: {name: " + name + "}\nspec:\n  " +
		strings.Join(spec, "\n  ") + "\n"
}
