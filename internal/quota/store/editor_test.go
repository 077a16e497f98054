package store

import (
	"errors"
	"testing"
	"time"

	"github.com/flight-operator/flight-operator/internal/quota"
)

func (b *bench) editor() *Editor { return &Editor{Reader: b, Writer: b, Deleter: b} }

func TestAnEditBeginsAnewWhenSomebodyElseWrote(t *testing.T) {
	b := newBench(t, 5)
	claim := b.claim(1)
	b.open(claim, 2)
	runs := 0
	bucket, err := b.editor().Edit(t.Context(), claim.Place(b.namespace, b.namespace), nil, func(p *quota.Page) error {
		if runs++; runs < 3 {
			if err := b.touch(claim); err != nil {
				return err
			}
		}
		return b.counts(claim, 4)(p)
	})
	if err != nil || runs != 3 || bucket.Used != 4 {
		t.Errorf("after %d runs used is %v: %v", runs, bucket, err)
	}
	unchanged, err := b.editor().Edit(t.Context(), claim.Place(b.namespace, b.namespace), nil, b.counts(claim, 4))
	if err != nil || unchanged.ResourceVersion != bucket.ResourceVersion {
		t.Errorf("a count that changes nothing was written: %v", err)
	}
	refusal := errors.New("no")
	if _, err := b.editor().Edit(t.Context(), claim.Place(b.namespace, b.namespace), nil, func(p *quota.Page) error {
		p.Stamp(9)
		return refusal
	}); !errors.Is(err, refusal) || b.bucket(claim).ResourceVersion != bucket.ResourceVersion {
		t.Errorf("a change that gave up was written, or its error lost: %v", err)
	}
}

func TestABucketIsRemovedOnlyWhileNothingIsInIt(t *testing.T) {
	b := newBench(t, 5)
	claim := b.claim(1)
	place := claim.Place(b.namespace, b.namespace)
	removable := func(p *quota.Page) bool { return p.Removable(time.Now()) }
	b.open(claim, 1)
	if gone, err := b.editor().Remove(t.Context(), place, removable); gone || err != nil {
		t.Errorf("a bucket in use: gone %v, %v", gone, err)
	}
	b.open(claim, 0)
	s := b.store(wire{})
	looks := 0
	gone, err := b.editor().Remove(t.Context(), place, func(p *quota.Page) bool {
		if looks++; looks == 2 { // between its deletion and the finalizer's going, a review comes in
			if _, err := b.reserve(s, b.create("trip", claim)); err != nil {
				t.Error(err)
			}
		}
		return removable(p)
	})
	if gone || err != nil || b.bucket(claim) == nil {
		t.Errorf("with a review in between: gone %v, %v", gone, err)
	}
	b.wanted(claim, 1, 1)
	if _, err := b.editor().Edit(t.Context(), place, nil, func(p *quota.Page) error {
		p.Release(p.Bucket().Entries[0].Nonce)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if gone, err := b.editor().Remove(t.Context(), place, removable); !gone || err != nil || b.bucket(claim) != nil {
			t.Errorf("an empty bucket: gone %v, %v", gone, err)
		}
	}
}
