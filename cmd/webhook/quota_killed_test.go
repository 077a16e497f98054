package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// childArguments is the variable that makes this test binary the program, with these arguments as a JSON list: a program
// that is killed must be a process of its own.
const childArguments = "FLIGHT_WEBHOOK_CHILD"

func runChild(arguments string) int {
	var args []string
	err := json.Unmarshal([]byte(arguments), &args)
	if err == nil {
		err = start(args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// spawn runs the program as a process, waits until it is ready, and returns what kills it.
func (w *webhookProgram) spawn(t *testing.T) (kill func()) {
	t.Helper()
	if _, err := processLogger(); err != nil { // this process's clients want one too
		t.Fatal(err)
	}
	o := w.options
	args, err := json.Marshal([]string{
		"--kubeconfig", o.Kubeconfig, "--tls-dir", o.TLSDir, "--replica", o.replica, "--drain", "0s", "--webhook-bind-address", o.webhookBindAddress,
		"--metrics-bind-address", o.MetricsBindAddress, "--health-probe-bind-address", o.HealthProbeBindAddress,
	})
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), childArguments+"="+string(args))
	program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	program.Stderr = &said
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = program.Process.Kill() // it may have ended
		_ = program.Wait()         // that it was killed is no news
		if t.Failed() {
			t.Logf("the killed program said:\n%s", said.String())
		}
	})
	t.Cleanup(kill)
	eventually(t, "readyz", func(ctx context.Context) error { return w.probe(ctx, "/readyz") })
	return kill
}

func TestAWebhookThatIsKilledLosesNoSeatAndGivesNoneTwice(t *testing.T) {
	w := newReplica(t, "replica-to-kill")
	kill := w.spawn(t)
	w.register(t, nil)
	k := countedTill(t, seatsTo20, w)
	var stored atomic.Int32
	round := func(name string) {
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				err := k.admin.Create(context.Background(), k.ticket(fmt.Sprintf("%s-%d", name, i), 1))
				if err == nil && stored.Add(1) == 5 {
					kill() // what is answered is stored; others are on their way
				}
			})
		}
		all.Wait()
	}
	round("before")
	kill()
	k.covered(stored.Load())
	w.spawn(t)
	eventually(t, "the program answers again", func(ctx context.Context) error {
		err := k.hasty.Create(ctx, k.ticket("again", 1))
		if err == nil {
			stored.Add(1)
		}
		if apierrors.IsForbidden(err) { // what was held when it was killed may fill the quota
			return nil
		}
		return err
	})
	round("after")
	k.covered(stored.Load())
	k.count()
	b := k.bucket(quota.Namespace, "seats")
	if b.Used != int64(stored.Load()) || b.Used+b.Reserved != 20 {
		t.Errorf("%d are stored, the bucket says used %d and reserved %d: want a full bucket", stored.Load(), b.Used, b.Reserved)
	}
}

const seatsTo20 = `package seats
quota contains {"key": "seats", "scope": "Namespace", "amount": input.ticket.spec.number, "limit": 20}
`

// covered fails unless every stored ticket has an entry, and the entries no more than the limit.
func (k *till) covered(stored int32) {
	k.Helper()
	b := k.bucket(quota.Namespace, "seats")
	entries := map[string]bool{}
	for _, e := range b.Entries {
		entries[e.Name] = true
	}
	var tickets flightsv1.FlightTicketList
	if err := k.admin.List(k.Context(), &tickets); err != nil {
		k.Fatal(err)
	}
	found := int32(0)
	for i := range tickets.Items {
		if ft := &tickets.Items[i]; ft.Namespace == k.namespace {
			found++
			if !entries[ft.Name] {
				k.Errorf("%s is stored without an entry", ft.Name)
			}
		}
	}
	if found < stored || b.Reserved > 20 {
		k.Errorf("%d are stored, %d answers said so, and %d are reserved", found, stored, b.Reserved)
	}
}
