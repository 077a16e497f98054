package stress

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/test/stress/history"
)

const (
	// patience is how long anything may take that has to come: a policy that is counted, a ledger that is right. It is
	// above every bound that the protocol states, for a busy machine.
	patience = 6 * time.Minute
	// bound is how long something may be charged for nothing, as docs/quota-protocol.md says.
	bound = 3 * time.Minute
	// slack is how much later than a client the watcher may hear of something.
	slack = 2 * time.Second
	// Of the writes of buckets so many meet a conflict that nobody caused, and so many answers are lost.
	conflicting, losing = 0.05, 0.01
)

// From a policy's Ready on no stored revision has more claims than a limit allows, whoever races; and when everything has
// come to rest, the ledger is right to the unit.
func TestQuotasHoldUnderAnyRace(t *testing.T) {
	admin := city.house.Client
	t.Logf("STRESS_SEED=%d, %d clients, %s", chosen.seed, clients, chosen.duration)
	makeNamespaces(t, admin)
	w := watchAll(t, admin, claimsOf)
	city.await(t, racePolicies()...)
	addRefuser(t, admin)
	city.faults.set(conflicting, losing)
	d, bad := newDiary(), &trouble{town: city, dice: rand.New(rand.NewPCG(chosen.seed, 2))} //nolint:gosec // repeatable

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	var working sync.WaitGroup
	working.Go(func() {
		if err := bad.run(ctx, chosen.duration); err != nil {
			t.Error(err)
		}
	})
	working.Go(func() { defer cancel(); untilItProves(ctx, d, began.Add(chosen.duration)) })
	if err := race(ctx, city, chosen, d); err != nil {
		t.Error(err)
	}
	working.Wait()
	city.faults.set(0, 0)
	r := report{diary: d, trouble: bad, faults: city.faults, span: time.Since(began)}
	r.rest(t, w)
	r.print(t)
	r.judge(t)
}

// untilItProves waits until the race has lasted, and until enough has happened: a machine that is busy otherwise needs
// longer for it.
func untilItProves(ctx context.Context, d *diary, end time.Time) {
	const enoughIn, enoughOut = 50, 20
	pause(ctx, time.Until(end))
	for ctx.Err() == nil && time.Now().Before(end.Add(patience)) && (d.total(admitted, creates) < enoughIn || d.total(noRoom) < enoughOut) {
		pause(ctx, time.Second)
	}
}

func makeNamespaces(t *testing.T, admin client.Client) {
	t.Helper()
	for n := range raceNamespaces {
		makeNamespace(t, admin, fmt.Sprintf("%s%d", racePrefix, n))
	}
}

// makeNamespace makes one that goes when the test ends, with what is in it.
func makeNamespace(t *testing.T, admin client.Client, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), namespace); err != nil {
			t.Error(err)
		}
	})
}

// report is what came of a race.
type report struct {
	diary   *diary
	trouble *trouble
	faults  *faults
	span    time.Duration

	history  history.History
	faulty   []error
	restless string // why the tickets that the watcher saw aren't those that are there; empty if they are
	rested   time.Duration
	over     []history.OverAdmission
	leaks    []history.Leak
	refusals []history.Refusal
	reasons  []history.Reason
	returned []time.Duration // how long something was charged for nothing, by the clock of one controller
	whole    []time.Duration // the same, over all controllers
}

// rest waits until the ledger is right, or for as long as it may take, and judges.
func (r *report) rest(t *testing.T, w *watcher) {
	t.Helper()
	city.await(t, racePolicies()...)
	began := time.Now()
	for {
		r.history, r.faulty = w.soFar()
		r.restless = unseen(t.Context(), city.house.Client, r.history)
		r.leaks = r.history.Leaks()
		if len(r.leaks) == 0 && r.restless == "" || time.Since(began) > patience || t.Context().Err() != nil {
			break
		}
		pause(t.Context(), 2*time.Second)
	}
	r.rested = time.Since(began)
	r.over = r.history.OverAdmissions()
	r.refusals = r.diary.placed(r.history)
	r.reasons = r.history.Explain(r.refusals, slack)
	charges, _ := r.history.ChargedForNothing()
	for _, c := range charges {
		r.returned, r.whole = append(r.returned, c.Since(r.trouble.revived)), append(r.whole, c.Took())
	}
}

// unseen says in what the history differs from the tickets that are there.
func unseen(ctx context.Context, admin client.Client, h history.History) string {
	list := &flightsv1.FlightTicketList{}
	if err := admin.List(ctx, list); err != nil {
		return err.Error()
	}
	last := map[string]uint64{}
	for _, t := range h.Tickets {
		last[string(t.UID)] = t.Revision
		if t.Gone {
			delete(last, string(t.UID))
		}
	}
	for i := range list.Items {
		t := &list.Items[i]
		if last[string(t.UID)] != revision(t.ResourceVersion) {
			return fmt.Sprintf("ticket %s/%s is at revision %s, last seen at %d", t.Namespace, t.Name, t.ResourceVersion, last[string(t.UID)])
		}
		delete(last, string(t.UID))
	}
	if len(last) > 0 {
		return fmt.Sprintf("%d tickets were seen last that aren't there", len(last))
	}
	return ""
}

// judge fails the test for whatever must not be.
func (r *report) judge(t *testing.T) {
	t.Helper()
	for _, o := range r.over {
		t.Errorf("over-admission: %s", o)
	}
	for _, l := range r.leaks {
		t.Errorf("leak: %s", l)
	}
	for _, err := range r.faulty {
		t.Errorf("the watcher missed something: %v", err)
	}
	if r.restless != "" {
		t.Errorf("the watcher missed something: %s", r.restless)
	}
	for i, reason := range r.reasons {
		if reason == history.Unexplained {
			t.Errorf("refused although room was left, and nothing explains it: %+v", r.refusals[i])
		}
	}
	for text, n := range r.diary.oddities() {
		t.Errorf("%d times an answer that nobody expects: %s", n, text)
	}
	if longest := slices.Max(append(r.returned, 0)); longest > bound {
		t.Errorf("something was charged for nothing for %s, longer than %s", longest, bound)
	}
	if r.diary.total(admitted, creates) == 0 || len(r.refusals) == 0 || len(r.returned) == 0 {
		t.Error("nobody was admitted, refused or charged for nothing: this race proves nothing")
	}
}
