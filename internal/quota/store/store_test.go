package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

func TestTheFirstEntryOfABucketIsOneWrite(t *testing.T) {
	b := newBench(t, 5)
	var told tally
	s, err := New(Options{Reader: b, Writer: b, OperatorNamespace: b.namespace, Metrics: &told})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := b.reserve(s, b.create("trip", b.claim(2))); err != nil {
		t.Fatal(err)
	}
	if told.results[Written] != 1 || len(told.batches) != 1 {
		t.Errorf("writes %v of batches %v, want one", told.results, told.batches)
	}
	bucket := b.bucket(b.claim(2))
	if got := bucket.Finalizers; len(got) != 1 || got[0] != flightsv1.QuotaFinalizer {
		t.Errorf("the bucket has the finalizers %v", got)
	}
	if bucket.Reserved != 2 || bucket.Available != 3 || bucket.Used != 0 || bucket.CountedRevision != "" {
		t.Errorf("the bucket says reserved %d, available %d, used %d, counted at %q", bucket.Reserved, bucket.Available, bucket.Used, bucket.CountedRevision)
	}
}

func TestAMissingBucketIsNotAnEmptyOneUntilThePolicyIsCounted(t *testing.T) {
	b := newBench(t, 5)
	s := b.store(wire{})
	for what, change := range map[string]func() error{
		"another generation": func() error { return b.change(b.policy) },
		"the first count":    func() error { b.policy.Status.CountedGeneration = 0; return b.Status().Update(t.Context(), b.policy) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		var counting *CountingError
		if _, err := b.reserve(s, b.create("trip", b.claim(1))); !errors.As(err, &counting) {
			t.Errorf("before %s is counted: %v", what, err)
		}
		if _, err := s.Check(t.Context(), b.create("trip", b.claim(1))); !errors.As(err, &counting) {
			t.Errorf("a dry run before %s is counted: %v", what, err)
		}
		if b.bucket(b.claim(1)) != nil {
			t.Errorf("before %s is counted, the bucket was made", what)
		}
		b.counted(b.policy)
	}
	if _, err := b.reserve(s, b.create("trip", b.claim(1))); err != nil {
		t.Errorf("once it is counted: %v", err)
	}
}

func TestABucketThatAnEarlierGenerationCountedIsNotBelieved(t *testing.T) {
	b := newBench(t, 5)
	s := b.store(wire{})
	b.open(b.claim(0), 1)
	if err := b.change(b.policy); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"before the policy is counted", "once the policy says that it is"} {
		var counting *CountingError
		if _, err := b.reserve(s, b.create("trip", b.claim(1))); !errors.As(err, &counting) {
			t.Errorf("%s: %v", when, err)
		}
		if _, err := s.Check(t.Context(), b.create("trip", b.claim(1))); !errors.As(err, &counting) {
			t.Errorf("%s, a dry run: %v", when, err)
		}
		b.counted(b.policy)
	}
	b.wanted(b.claim(1), 0, 0)
	b.open(b.claim(0), 1)
	if _, err := b.reserve(s, b.create("trip", b.claim(1))); err != nil {
		t.Errorf("once the bucket is counted: %v", err)
	}
}

func TestWhatAnEarlierGenerationCountedIsReadAgainForWhoComesLater(t *testing.T) {
	b := newBench(t, 5)
	s := b.store(wire{})
	w := &worker{store: s, place: s.place(quota.Reservation{Claim: b.claim(1), Ticket: b.create("trip").Ticket})}
	b.open(b.claim(0), 1)
	if err := w.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.change(b.policy); err != nil {
		t.Fatal(err)
	}
	b.counted(b.policy)
	b.open(b.claim(0), 1)
	reservations, err := b.create("trip", b.claim(1)).Reservations(strings.Repeat("0a", 16))
	if err != nil {
		t.Fatal(err)
	}
	late := &request{ctx: t.Context(), arrived: s.now(), reservation: &reservations[0], result: make(chan answer, 1)}
	if again := w.attempt(t.Context(), []*request{late}); len(again) > 0 {
		t.Fatal("the request is left to another try")
	}
	if a := <-late.result; a.err != nil {
		t.Errorf("the answer rests on an old count: %v", a.err)
	}
}

func TestAClaimOfAnEarlierPolicyIsStale(t *testing.T) {
	b := newBench(t, 5)
	s := b.store(wire{})
	old, oldest := b.claim(1), b.claimOf(b.policy, "missing", 1, 5)
	b.open(old, 0)
	if err := b.change(b.policy); err != nil {
		t.Fatal(err)
	}
	b.counted(b.policy)
	b.open(b.claim(0), 0)
	deleted := old
	deleted.PolicyUID, deleted.Policy, deleted.Key = "another", "no-such-policy", "k"
	for what, claim := range map[string]quota.Claim{
		"a bucket that is stamped": old, "a missing bucket": oldest, "a policy that is deleted": deleted,
	} {
		var stale *quota.StaleError
		if _, err := b.reserve(s, b.create("trip", claim)); !errors.As(err, &stale) {
			t.Errorf("%s: %v", what, err)
		}
	}
	b.wanted(old, 0, 0)
}

// The policy changes after it was read and before the first entry is stored: the controller may have looked for old
// buckets in between, so nothing may rest on this one.
func TestAPolicyThatChangesDuringTheFirstWriteRefuses(t *testing.T) {
	b := newBench(t, 5)
	change := once(func() error { return b.change(b.policy.DeepCopy()) })
	s := b.store(wire{before: func(r *http.Request) error {
		if writes(r) {
			return change()
		}
		return nil
	}})
	var stale *quota.StaleError
	if _, err := b.reserve(s, b.create("trip", b.claim(1))); !errors.As(err, &stale) {
		t.Errorf("got %v", err)
	}
	s.Close()
	b.wanted(b.claim(1), 0, 0)
}

func TestALostReplyIsAskedForAndTheEntryWrittenOnce(t *testing.T) {
	for what, open := range map[string]bool{"an update": true, "a create": false} {
		b := newBench(t, 5)
		if open {
			b.open(b.claim(1), 0)
		}
		lose := once(func() error { return errLost })
		s := b.store(wire{after: func(r *http.Request) error {
			if writes(r) {
				return lose()
			}
			return nil
		}})
		if _, err := b.reserve(s, b.create("trip", b.claim(2))); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		b.wanted(b.claim(2), 1, 2)
	}
}

// The write is stored, its answer is lost, and so is the request: its entry is taken back.
func TestARequestThatEndsDuringTheWriteHoldsNothing(t *testing.T) {
	b := newBench(t, 5)
	b.open(b.claim(1), 0)
	ctx, cancel := context.WithCancel(t.Context())
	lose := once(func() error { cancel(); return errLost })
	s := b.store(wire{after: func(r *http.Request) error {
		if writes(r) {
			return lose()
		}
		return nil
	}})
	var busy *quota.BusyError
	if _, err := s.Reserve(ctx, b.create("trip", b.claim(2))); !errors.As(err, &busy) {
		t.Errorf("got %v", err)
	}
	s.Close()
	b.wanted(b.claim(2), 0, 0)
}

// The first bucket's write is stored and its answer lost; the next bucket has no room.
func TestWhatALostWriteStoredIsTakenBackWhenALaterBucketRefuses(t *testing.T) {
	b := newBench(t, 5)
	for _, key := range []string{"a", "b", "c", "d"} { // the names of buckets are hashes: some keys give either order
		full := b.claimOf(b.policy, key, 1, 0)
		b.open(full, 0)
		lose := once(func() error { return errLost })
		s := b.store(wire{after: func(r *http.Request) error {
			if writes(r) {
				return lose()
			}
			return nil
		}})
		var refused *quota.RefusedError
		if _, err := b.reserve(s, b.create("trip", full, b.claim(2))); !errors.As(err, &refused) {
			t.Errorf("got %v", err)
		}
		s.Close()
		if bucket := b.bucket(b.claim(2)); bucket != nil && len(bucket.Entries) > 0 {
			t.Errorf("%d entries are left", len(bucket.Entries))
		}
	}
}

func TestAnAPIServerThatRefusesOurWritesIsNotAskedAgain(t *testing.T) {
	b := newBench(t, 5)
	config, err := plane.AddUser("nobody")
	if err != nil {
		t.Fatal(err)
	}
	powerless, err := client.New(config, client.Options{Scheme: b.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	var told tally
	s, err := New(Options{Reader: b, Writer: powerless, OperatorNamespace: b.namespace, Metrics: &told})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := b.reserve(s, b.create("trip", b.claim(1))); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("got %v", err)
	}
	if len(told.batches) != 1 || told.results[Failed] != 1 {
		t.Errorf("tried %d times: %v", len(told.batches), told.results)
	}
}

// Claims that wait while a write is on its way go into the next one, together.
func TestWaitingClaimsAreMergedIntoOneWrite(t *testing.T) {
	b := newBench(t, 100)
	b.open(b.claim(0), 0)
	var told tally
	writing, proceed := make(chan struct{}), make(chan struct{})
	hold := once(func() error { close(writing); <-proceed; return nil })
	c := connect(t, wire{before: func(r *http.Request) error {
		if writes(r) {
			return hold()
		}
		return nil
	}})
	s, err := New(Options{Reader: c, Writer: c, OperatorNamespace: b.namespace, Metrics: &told})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var tickets sync.WaitGroup
	reserve := func(i int) {
		tickets.Go(func() {
			if _, err := b.reserve(s, b.create(fmt.Sprintf("trip-%d", i), b.claim(1))); err != nil {
				t.Error(err)
			}
		})
	}
	reserve(0)
	<-writing
	for i := range 20 {
		reserve(i + 1)
	}
	b.waiting(s, 20)
	close(proceed)
	tickets.Wait()
	if len(told.batches) != 2 || told.batches[1] != 20 {
		t.Errorf("the batches were %v, want 1 and 20", told.batches)
	}
}

// waiting returns once so many requests wait in the lane of the bench's bucket.
func (b *bench) waiting(s *Store, n int) {
	b.Helper()
	place := b.claim(0).Place(b.namespace, b.namespace)
	for b.Context().Err() == nil {
		s.mu.Lock()
		there := len(s.lanes[place].waiting)
		s.mu.Unlock()
		if there == n {
			return
		}
	}
}

// What a worker knows is from before the request came in; somebody else has made room since.
func TestARefusalRestsOnWhatTheAPIServerSaysNow(t *testing.T) {
	b := newBench(t, 1)
	b.open(b.claim(0), 0)
	stored, proceed := make(chan struct{}), make(chan struct{})
	hold := once(func() error { close(stored); <-proceed; return nil })
	s := b.store(wire{after: func(r *http.Request) error {
		if writes(r) {
			return hold()
		}
		return nil
	}})
	var tickets sync.WaitGroup
	for i := range 2 {
		tickets.Go(func() {
			if i == 1 {
				<-stored
			}
			if _, err := b.reserve(s, b.create(fmt.Sprintf("trip-%d", i), b.claim(1))); err != nil {
				t.Errorf("trip-%d: %v", i, err)
			}
		})
	}
	<-stored
	b.waiting(s, 1)
	bucket := b.bucket(b.claim(0))
	bucket.Entries = nil
	if err := b.Update(t.Context(), bucket); err != nil {
		t.Error(err)
	}
	close(proceed)
	tickets.Wait()
}

func TestWarningsAndAllRefusalsAreTold(t *testing.T) {
	b := newBench(t, 5)
	s := b.store(wire{})
	near := b.claimOf(b.policy, "near", 4, 5)
	near.WarnAt = 4
	hold, err := b.reserve(s, b.create("trip", near, b.claim(1)))
	if err != nil {
		t.Fatal(err)
	}
	if len(hold.Notices) != 1 || !strings.HasSuffix(hold.Notices[0].String(), "4 of 5 taken, 1 left") {
		t.Errorf("the notices are %v", hold.Notices)
	}
	_, err = b.reserve(s, b.create("greedy", near, b.claim(5), b.claimOf(b.policy, "free", 1, 5)))
	var refused *quota.RefusedError
	if !errors.As(err, &refused) || len(refused.Refusals) != 2 || refused.Refusals[0].Key != "near" || refused.Refusals[1].Key != "seats" {
		t.Errorf("got %v", err)
	}
}

func TestABucketFullOfEntriesIsBusy(t *testing.T) {
	b := newBench(t, quota.MaxAmount)
	claim := b.claim(1)
	b.open(claim, 0)
	bucket := b.bucket(claim)
	for i := range quota.MaxEntries {
		bucket.Entries = append(bucket.Entries, flightsv1.QuotaEntry{
			Nonce: fmt.Sprintf("%032x", i), Namespace: b.namespace, Name: fmt.Sprint(i), UID: "u", Generation: 1, PolicyGeneration: 1, Amount: 1,
		})
	}
	if err := b.Update(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	var busy *quota.BusyError
	if _, err := b.reserve(b.store(wire{}), b.create("trip", claim)); !errors.As(err, &busy) {
		t.Errorf("got %v", err)
	}
	b.wanted(claim, quota.MaxEntries, 0) // as this test wrote it
}

func TestInANamespaceThatIsBeingDeletedAMissingBucketIsNoHindrance(t *testing.T) {
	b := newBench(t, 5)
	if err := b.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}); err != nil {
		t.Fatal(err)
	}
	s := b.store(wire{})
	if _, err := b.reserve(s, b.create("trip", b.claim(1))); err != nil {
		t.Errorf("a bucket of the ticket's namespace: %v", err)
	}
	wide := b.claim(1)
	wide.Scope = quota.Cluster
	if _, err := b.reserve(s, b.create("trip", wide)); err == nil {
		t.Error("a bucket of the whole cluster could not be made, and the ticket was let in")
	}
	editor := &Editor{Reader: b, Writer: b, Deleter: b}
	claim := b.claim(1)
	for what, opening := range map[string]*quota.Claim{"no opening": nil, "an opening": &claim} {
		bucket, err := editor.Edit(t.Context(), claim.Place(b.namespace, b.namespace), opening, b.counts(claim, 1))
		if bucket != nil || err != nil {
			t.Errorf("the controller with %s: %v, %v", what, bucket, err)
		}
	}
}

// A worker lives as long as somebody waits, and the store's end leaves nothing behind.
func TestWorkersEndWhenNobodyWaits(t *testing.T) {
	b := newBench(t, 5)
	s := b.store(wire{})
	reserve := func(name string) {
		if _, err := b.reserve(s, b.create(name, b.claim(1))); err != nil {
			t.Fatal(err)
		}
	}
	reserve("first") // opens the connections
	before := goleak.IgnoreCurrent()
	reserve("second")
	if err := goleak.Find(before); err != nil {
		t.Errorf("after a reservation: %v", err)
	}
	s.Close()
	var busy *quota.BusyError
	if _, err := b.reserve(s, b.create("late", b.claim(1))); !errors.As(err, &busy) {
		t.Errorf("after the end: %v", err)
	}
	if err := goleak.Find(before); err != nil {
		t.Errorf("after the end: %v", err)
	}
}
