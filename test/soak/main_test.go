// Package soak lets a running installation work for a while under everything that can go wrong at once, and then asks
// what it cost: calls, status writes, memory, and above all whether what is booked is what the tickets say.
//
// It knows the installation, the kinds and the simulator. What goes wrong is drawn from a seed, which it prints.
package soak

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flight-operator/flight-operator/test/installation"
	"github.com/flight-operator/flight-operator/test/scene"
)

// plan is how much is done. Each field has an environment variable; `make soak` sets them, and without them a short form
// runs.
type plan struct {
	// duration is how long things go wrong (SOAK_DURATION), tickets how many there may be (SOAK_TICKETS), seed what
	// goes wrong is drawn from (SOAK_SEED).
	duration time.Duration
	tickets  int
	seed     uint64
	// waiting is how many tickets wait for their provider (SOAK_WAITING), rate how many calls a second it then takes
	// (SOAK_RATE).
	waiting, rate int
	// poll is how often the controller looks at what nobody announces (SOAK_POLL).
	poll time.Duration
}

var (
	chosen plan
	house  *installation.Installation
	stage  scene.Stage
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(logr.Discard()) // the client logs warnings of the API server
	var err error
	if chosen, err = readPlan(); err != nil {
		fmt.Fprintln(os.Stderr, "plan:", err)
		return 1
	}
	house, err = installation.Start(context.Background(), installation.Options{
		Progress: os.Stderr, ControllerArgs: []string{"--poll-interval=" + chosen.poll.String()},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "installation:", err)
		return 1
	}
	stage = scene.Stage{
		Config: house.Plane.Config, Client: house.Client, Kubectl: house.Plane.KubectlCommand,
		Patience: 2*chosen.duration + 15*time.Minute,
	}
	code := m.Run()
	if code != 0 {
		house.Keep()
		fmt.Fprintln(os.Stderr, "the logs stay in", house.Dir)
	}
	if err := house.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "installation:", err)
		return 1
	}
	return code
}

func readPlan() (p plan, err error) {
	number := func(name string, short int) int {
		text := os.Getenv(name)
		if text == "" {
			return short
		}
		n, wrong := strconv.Atoi(text)
		if wrong != nil || n < 1 {
			err = fmt.Errorf("%s is %q: use a number above 0", name, text)
		}
		return n
	}
	span := func(name string, short time.Duration) time.Duration {
		text := os.Getenv(name)
		if text == "" {
			return short
		}
		d, wrong := time.ParseDuration(text)
		if wrong != nil || d <= 0 {
			err = fmt.Errorf("%s is %q: use a duration such as 10m", name, text)
		}
		return d
	}
	p = plan{
		duration: span("SOAK_DURATION", 8*time.Second), tickets: number("SOAK_TICKETS", 12),
		seed:    uint64(number("SOAK_SEED", 1)), //nolint:gosec // it is positive
		waiting: number("SOAK_WAITING", 40), rate: number("SOAK_RATE", 30), poll: span("SOAK_POLL", time.Minute),
	}
	return p, err
}
