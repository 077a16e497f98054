package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flight-operator/flight-operator/internal/quota"
)

// Two quotas on one ticket: the first is full, and every write of the other meets a conflict first. Whoever the full one
// refuses stays refused, in whichever order the two are written, and the other one is charged nothing.
func TestScenario1AWaiterThatWasDeniedStaysRefused(t *testing.T) {
	b := newBench(t, 100)
	other := b.newPolicy()
	for _, key := range []string{"a", "b", "c", "d"} { // the names of buckets are hashes: some keys give either order
		full, free := b.claimOf(b.policy, key, 1, 3), b.claimOf(other, key, 1, 100)
		b.open(full, 3)
		b.open(free, 0)
		s := b.store(wire{before: b.conflictingWith(free, 5)})
		var tickets sync.WaitGroup
		for i := range 20 {
			tickets.Go(func() {
				hold, err := b.reserve(s, b.create(fmt.Sprintf("trip-%d", i), full, free))
				var refused *quota.RefusedError
				if !errors.As(err, &refused) || hold != nil {
					t.Errorf("a request beyond a full quota got %v, %v", hold, err)
				}
			})
		}
		tickets.Wait()
		s.Close()
		b.wanted(full, 0, 0)
		b.wanted(free, 0, 0)
	}
}

// conflictingWith writes a bucket just before a store does, so often.
func (b *bench) conflictingWith(c quota.Claim, times int32) func(*http.Request) error {
	var done atomic.Int32
	return func(r *http.Request) error {
		if !writes(r) || done.Add(1) > times {
			return nil
		}
		return b.touch(c)
	}
}

// touch writes a bucket anew, with nothing else in it.
func (b *bench) touch(c quota.Claim) error {
	bucket, err := readBucket(context.Background(), b.Client, c.Place(b.namespace, b.namespace))
	if err != nil {
		return err
	}
	bucket.Annotations = map[string]string{"touched-at": bucket.ResourceVersion}
	return b.Update(context.Background(), bucket)
}

// Another webhook refuses after ours, or the name is taken: what was charged comes back at once, and after a crash once
// the entries have aged. 50 repeats don't exhaust the quota.
func TestScenario2NothingIsChargedForNothing(t *testing.T) {
	b := newBench(t, 2)
	claim := b.claim(2)
	s := b.store(wire{})
	for i := range 50 {
		hold, err := b.reserve(s, b.create("trip", claim))
		if err != nil {
			t.Fatalf("repeat %d: %v", i, err)
		}
		s.Release(hold)
	}
	// This one's process dies before it can take anything back.
	if _, err := b.reserve(s, b.create("lost", claim)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.reserve(s, b.create("next", claim)); err == nil {
		t.Fatal("the lost entry held nothing")
	}
	start := time.Now()
	ages := quota.Ages{}.See(b.bucket(claim).Entries, start)
	overdue := ages.Overdue(b.bucket(claim).Entries, start.Add(quota.Patience+time.Second), quota.Patience)
	if len(overdue) != 1 {
		t.Fatalf("%d entries are overdue, want 1", len(overdue))
	}
	editor := &Editor{Reader: b, Writer: b, Deleter: b}
	if _, err := editor.Edit(t.Context(), claim.Place(b.namespace, b.namespace), nil, func(p *quota.Page) error {
		p.Release(overdue[0].Nonce)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.reserve(s, b.create("next", claim)); err != nil {
		t.Errorf("after the entry aged: %v", err)
	}
}

// 200 creates by three replicas against 10 seats: 10 get in, 190 are told that there is no room, and nobody anything else.
func TestScenario3EverybodyAtOnce(t *testing.T) {
	b := newBench(t, 10)
	claim := b.claim(1)
	stores := []*Store{b.store(wire{}), b.store(wire{}), b.store(wire{})}
	var in, out atomic.Int32
	var tickets sync.WaitGroup
	for i := range 200 {
		tickets.Go(func() {
			_, err := b.reserve(stores[i%len(stores)], b.create(fmt.Sprintf("trip-%d", i), claim))
			var refused *quota.RefusedError
			switch {
			case err == nil:
				in.Add(1)
			case errors.As(err, &refused):
				out.Add(1)
			default:
				t.Errorf("neither held nor refused: %v", err)
			}
		})
	}
	tickets.Wait()
	if in.Load() != 10 || out.Load() != 190 {
		t.Errorf("%d are in and %d are out, want 10 and 190", in.Load(), out.Load())
	}
	b.wanted(claim, 10, 10)
}

// The same review twice, an update reviewed again, a dry run: one charge, none for the dry run, and the same words.
func TestScenario4ReviewedTwice(t *testing.T) {
	b := newBench(t, 5)
	claim := b.claim(3)
	s := b.store(wire{})
	for range 2 {
		if _, err := b.reserve(s, b.create("trip", claim)); err != nil {
			t.Fatal(err)
		}
	}
	b.wanted(claim, 2, 3)
	update := b.create("trip", b.claim(4))
	update.Old, update.Generation = []quota.Claim{claim}, 2
	for range 2 {
		if _, err := b.reserve(s, update); err != nil {
			t.Fatal(err)
		}
	}
	b.wanted(claim, 4, 4)

	before := b.bucket(claim).ResourceVersion
	if _, err := s.Check(t.Context(), b.create("another", b.claim(1))); err != nil {
		t.Errorf("a dry run that fits: %v", err)
	}
	var texts []string
	for range 2 {
		_, err := s.Check(t.Context(), b.create("another", b.claim(2)))
		_, again := b.reserve(s, b.create("another", b.claim(2)))
		texts = append(texts, fmt.Sprint(err), fmt.Sprint(again))
	}
	for _, text := range texts {
		want := fmt.Sprintf("quota \"seats\" of policy %s has no room: requested 2, limit 5, used 0, reserved 4, left 1; it never resets", b.policy.Name)
		if text != want {
			t.Errorf("said\n%s, want\n%s", text, want)
		}
	}
	if after := b.bucket(claim).ResourceVersion; after != before {
		t.Error("dry runs or refusals wrote to the bucket")
	}
	if empty := b.claimOf(b.policy, "never asked for", 1, 1); b.bucket(empty) != nil {
		t.Error("there is a bucket that nobody asked for")
	} else if _, err := s.Check(t.Context(), b.create("dry", empty)); err != nil || b.bucket(empty) != nil {
		t.Errorf("a dry run on a missing bucket: %v, or it made the bucket", err)
	}
}
