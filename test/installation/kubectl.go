package installation

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience is how long WaitFor waits. Nothing depends on how much of it is used.
const Patience = 90 * time.Second

// Kubectl runs kubectl as the administrator, in the root of the work tree, and returns its standard output. The error
// holds what it wrote to standard error.
func (i *Installation) Kubectl(ctx context.Context, args ...string) (string, error) {
	return i.Plane.Kubectl(ctx, args...)
}

// Apply runs `kubectl apply -f -` on the text, with the arguments added, and returns what a person reads: both streams
// together, for warnings and refusals come on standard error. The error says that it failed, with the same text.
func (i *Installation) Apply(ctx context.Context, text string, args ...string) (string, error) {
	cmd := i.Plane.KubectlCommand(ctx, append([]string{"apply", "-f", "-"}, args...)...)
	cmd.Stdin = strings.NewReader(text)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl apply: %w: %s", err, out.String())
	}
	return out.String(), nil
}

// WaitFor asks until the condition holds, for Patience at the most. An error of the condition isn't final: it is told if
// the wait is in vain, and so is the end of a program that has died.
func (i *Installation) WaitFor(ctx context.Context, description string, holds func(context.Context) (bool, error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, Patience, true, func(ctx context.Context) (bool, error) {
		ok, err := holds(ctx)
		last = err
		if dead := i.dead(); !ok && dead != nil {
			return false, dead
		}
		return ok && err == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case last != nil:
		return fmt.Errorf("wait for %s: %w; last answer: %w", description, err, last)
	default:
		return fmt.Errorf("wait for %s: %w", description, err)
	}
}

// dead tells of a program that ended by itself.
func (i *Installation) dead() error {
	for _, p := range []*Program{i.Webhook, i.Controller} {
		if p != nil && p.process != nil {
			if err := p.process.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
