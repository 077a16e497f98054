// Package stress lets 200 clients race for quotas on a real control plane, with three replicas of the webhook and the
// controller behind proxies that delay what they watch, invent conflicts and lose answers, while processes are killed
// and policies change. Then test/stress/history judges what was stored.
//
// It knows the installation and the kinds. What a ticket claims it computes by itself, never by the engine. What goes
// wrong is drawn from a seed, which it prints.
package stress

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// plan is how much is done. `make stress` sets the environment variables; without them a short form runs.
type plan struct {
	// duration is how long the clients race (STRESS_DURATION), seed what is drawn from (STRESS_SEED).
	duration time.Duration
	seed     uint64
	// pause is how long a client rests at the most between two requests (STRESS_PAUSE): the more the machine has to do
	// besides, the longer, or nothing is measured but how webhooks time out.
	pause time.Duration
	// scenarios is how often each scenario is played (SEEDS).
	scenarios int
	// life is what the controller takes for a request's life (STRESS_REQUEST_LIFE): quotas come into force and entries age
	// after it. Here requests end within requestTime, since their clients give up then.
	life time.Duration
}

var (
	chosen plan
	city   *town
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(logr.Discard()) // the client logs warnings of the API server
	var err error
	if chosen, err = readPlan(); err != nil {
		fmt.Fprintln(os.Stderr, "plan:", err)
		return 1
	}
	if city, err = newTown(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "installation:", err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		city.house.Keep()
		fmt.Fprintln(os.Stderr, "the logs stay in", city.house.Dir)
	}
	if err := city.close(); err != nil {
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
		duration: span("STRESS_DURATION", time.Minute), seed: uint64(number("STRESS_SEED", 1)), //nolint:gosec // it is positive
		pause: span("STRESS_PAUSE", 4*time.Second), scenarios: number("SEEDS", 20),
		life: span("STRESS_REQUEST_LIFE", requestTime+10*time.Second),
	}
	return p, err
}
