package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/test/installation"
)

// stage shows what a person would type and read, and has what a step needs to look behind it.
type stage struct {
	*installation.Installation
	out io.Writer
}

// kubectl shows and runs a command and returns what it printed, both streams together. The error is its exit.
func (s *stage) kubectl(ctx context.Context, args ...string) (string, error) {
	fmt.Fprintf(s.out, "  $ kubectl %s\n", shellWords(args))
	return s.run(ctx, "", args...)
}

// apply shows a manifest and applies it.
func (s *stage) apply(ctx context.Context, manifest string) (string, error) {
	manifest = strings.TrimSpace(manifest) + "\n"
	fmt.Fprintf(s.out, "  $ kubectl apply -f - <<EOF\n%s  EOF\n", indented(manifest, "  "))
	return s.run(ctx, manifest, "apply", "-f", "-")
}

func (s *stage) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := s.Plane.KubectlCommand(ctx, args...)
	cmd.Stdin = strings.NewReader(stdin)
	// kubectl looks for its plugins on the PATH.
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(s.PluginPath())+string(os.PathListSeparator)+os.Getenv("PATH"))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	fmt.Fprint(s.out, indented(strings.TrimSpace(said.String()), "    "))
	if err != nil {
		return said.String(), fmt.Errorf("kubectl %s: %w", args[0], err)
	}
	return said.String(), nil
}

// explain shows how everything stands after a step that went wrong, and keeps the logs.
func (s *stage) explain(ctx context.Context) {
	s.Keep()
	if _, err := s.kubectl(ctx, "get", "flights", "-A", "-o", "wide"); err != nil {
		fmt.Fprintf(s.out, "  ✗ %v\n", err)
	}
}

// passed tells what was found to be right.
func (s *stage) passed(format string, args ...any) {
	fmt.Fprintf(s.out, "  ✓ "+format+"\n", args...)
}

// refused fails unless a command was refused with all the texts and the object is not stored.
func (s *stage) refused(ctx context.Context, said string, err error, object client.Object, texts ...string) error {
	if err == nil {
		return errors.New("it was accepted")
	}
	for _, text := range texts {
		if !strings.Contains(said, text) {
			return fmt.Errorf("the refusal does not say %q", text)
		}
	}
	err = s.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if err == nil {
		return fmt.Errorf("%s was refused and is stored", object.GetName())
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("look for %s: %w", object.GetName(), err)
	}
	return nil
}

// ticket reads one from the API server.
func (s *stage) ticket(ctx context.Context, name string) (*flightsv1.FlightTicket, error) {
	var ticket flightsv1.FlightTicket
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, &ticket); err != nil {
		return nil, fmt.Errorf("read ticket %s: %w", name, err)
	}
	return &ticket, nil
}

// booked fails unless the ticket is ready as it stands and the ledger holds one live booking for it with these seats.
// It returns the booking's id.
func (s *stage) booked(ctx context.Context, name string, seats int32) (string, error) {
	ticket, err := s.ticket(ctx, name)
	if err != nil {
		return "", err
	}
	if !meta.IsStatusConditionTrue(ticket.Status.Conditions, flightsv1.ConditionReady) ||
		ticket.Status.ObservedGeneration != ticket.Generation || ticket.Status.Booking == nil {
		return "", fmt.Errorf("ticket %s is not booked as it stands: state %s", name, ticket.Status.State)
	}
	live, err := s.Simulator.Live(ctx)
	if err != nil {
		return "", err
	}
	found := ""
	for _, b := range live {
		if b.Id != ticket.Status.Booking.ID {
			continue
		}
		if b.Order.Seats != seats || b.Reference != ticket.Status.Booking.Reference || b.Reference == "" {
			return "", fmt.Errorf("the ledger has %d seats with reference %q, want %d with %q",
				b.Order.Seats, b.Reference, seats, ticket.Status.Booking.Reference)
		}
		found = b.Id
	}
	if found == "" {
		return "", fmt.Errorf("the ledger has no live booking %s", ticket.Status.Booking.ID)
	}
	return found, nil
}

// newTicket is a key to look a ticket up with.
func newTicket(name string) *flightsv1.FlightTicket {
	return &flightsv1.FlightTicket{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
}

// indented puts a margin before every line and a line's end behind the last one.
func indented(text, margin string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(margin+line, " \n") + "\n")
	}
	return b.String()
}

// shellWords quotes what a shell would take apart.
func shellWords(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		if strings.ContainsAny(arg, " '\"{}$*|&<>()\n") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words[i] = arg
	}
	return strings.Join(words, " ")
}
