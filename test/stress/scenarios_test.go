package stress

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

const (
	sceneNamespace = "stress-scenes"
	firstPolicy    = "stress-first"
	secondPolicy   = "stress-second"
	// In the scenarios so many writes of buckets meet a conflict that nobody caused, and so many answers are lost.
	sceneConflicting, sceneLosing = 0.3, 0.02
	// sideBySide is how many plays of a scenario run at a time, and manySideBySide of one that waits.
	sideBySide, manySideBySide = 4, 64
)

// sceneRego counts seats a cost centre; each scenario has a prefix of its own, with its limit among the parameters.
const sceneRego = `# METADATA
# custom:
#   parameters:
#     type: object
#     required: [limits]
#     properties:
#       limits: {type: object, additionalProperties: {type: integer}}
package stress.scenes

quota contains {
	"key": input.ticket.spec.costCenter,
	"scope": "Cluster",
	"amount": input.ticket.spec.number,
	"limit": limit,
} if {
	some prefix, limit in input.parameters.limits
	startswith(input.ticket.spec.costCenter, prefix)
}
`

// play is where the scenarios are played.
type play struct {
	*testing.T
	persons []client.WithWatch
	watcher *watcher
}

// Whatever conflicts and lost answers there are, and though all caches lag, each scenario comes out as a user expects. SEEDS
// says how often each is played; no two plays meet the same conflicts.
func TestScenariosComeOutRightThoughWritesCollide(t *testing.T) {
	p := &play{T: t}
	admin := city.house.Client
	makeNamespace(t, admin, sceneNamespace)
	p.watcher = watchAll(t, admin, sceneClaims)
	city.await(t, scenePolicies()...)
	addRefuser(t, admin)
	for n := range people {
		person, err := city.person(fmt.Sprintf("traveller-%d", n))
		if err != nil {
			t.Fatal(err)
		}
		p.persons = append(p.persons, person)
	}
	city.faults.set(sceneConflicting, sceneLosing)
	defer city.faults.set(0, 0)
	for name, scenario := range map[string]func(seed int) error{
		"1: a waiter that was denied stays refused": p.deniedWaiter,
		"2: nothing is charged for nothing":         p.chargedForNothing,
		"4: a review that comes twice":              p.reviewedTwice,
	} {
		t.Run(name, func(t *testing.T) { playAll(t, sideBySide, scenario) })
	}
	t.Run("2: and what was charged comes back", func(t *testing.T) { playAll(t, manySideBySide, p.comesBack) })
	// This one takes the whole machine: a webhook that is late is none of its subjects.
	t.Run("3: everybody at once", func(t *testing.T) { playAll(t, 1, p.everybody) })
	p.settles()
}

// playAll plays a scenario for each seed.
func playAll(t *testing.T, atOnce int, scenario func(seed int) error) {
	t.Helper()
	var playing sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for seed := range chosen.scenarios {
		slots <- struct{}{}
		playing.Go(func() {
			defer func() { <-slots }()
			if err := scenario(seed); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
	playing.Wait()
}

// settles wants the ledger to be right in the end, for all plays together.
func (p *play) settles() {
	began := time.Now()
	for {
		h, faulty := p.watcher.soFar()
		leaks, missed := h.Leaks(), unseen(p.Context(), city.house.Client, h)
		if len(leaks) == 0 && missed == "" && len(faulty) == 0 || time.Since(began) > patience {
			for _, l := range leaks {
				p.Errorf("leak: %s", l)
			}
			for _, o := range h.OverAdmissions() {
				p.Errorf("over-admission: %s", o)
			}
			if missed != "" || len(faulty) > 0 {
				p.Errorf("the watcher missed something: %s %v", missed, errors.Join(faulty...))
			}
			return
		}
		pause(p.Context(), 2*time.Second)
	}
}

// ask sends one request of one of the people, and says what became of it.
func (p *play) ask(n int, do func(context.Context, client.Client) error) (answer, error) {
	ctx, cancel := context.WithTimeout(p.Context(), requestTime)
	defer cancel()
	err := do(ctx, p.persons[n%len(p.persons)])
	return meaning(err), err
}

func (p *play) create(n int, name, costCenter string, seats int32, options ...client.CreateOption) (answer, error) {
	return p.ask(n, func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, sceneTicket(name, costCenter, seats), options...)
	})
}

func sceneTicket(name, costCenter string, seats int32) *flightsv1.FlightTicket {
	return &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: sceneNamespace, Name: costCenter + "-" + name},
		Spec:       flightsv1.FlightTicketSpec{From: "Mumbai", To: "London", Number: seats, CostCenter: costCenter, Suspend: true},
	}
}

// want is an error that says what else was answered.
func want(what string, wanted, got answer, err error) error {
	if got == wanted {
		return nil
	}
	return fmt.Errorf("%s was %s, not %s: %w", what, got, wanted, err)
}
