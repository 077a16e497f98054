package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// Pauses before a batch is tried again. They are random, so that replicas that collided don't do so again.
const (
	shortPause = 4 * time.Millisecond
	longPause  = 50 * time.Millisecond
)

// worker serves one bucket. It belongs to one goroutine.
type worker struct {
	store *Store
	place types.NamespacedName

	known  bool                   // bucket and asOf say something
	bucket *flightsv1.QuotaBucket // as it was last read or written; nil: there is none
	asOf   uint64                 // when that was true, by the store's count
	trail  error                  // what last went wrong, for those whose time ends
	pace   pace
}

// tryOnce waits a little, if an earlier try failed, and makes an attempt within the time of the requests.
func (w *worker) tryOnce(batch []*request, try int) []*request {
	ctx, cancel := context.WithDeadline(context.Background(), deadlineOf(batch))
	defer cancel()
	if try > 0 {
		pause(ctx, try)
	}
	return w.attempt(ctx, batch)
}

// pause waits for a random time that grows with each try.
func pause(ctx context.Context, try int) {
	longest := min(shortPause<<min(try, 10), longPause)
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// timely answers the requests whose time is over and returns the others.
func (w *worker) timely(batch []*request) []*request {
	var rest []*request
	for _, r := range batch {
		if r.ctx.Err() == nil {
			rest = append(rest, r)
			continue
		}
		r.answer(answer{err: w.late(r)})
	}
	return rest
}

func (w *worker) late(r *request) error {
	if r.reservation == nil {
		return w.trail
	}
	return busy(*r.reservation, "others were ahead until the request ended", w.trail)
}

// attempt tries to do what a batch asks for, answers what is settled, and returns what is to be tried again.
func (w *worker) attempt(ctx context.Context, batch []*request) []*request {
	w.pace.began = time.Now()
	if !w.known || w.recounted(batch) {
		if err := w.read(ctx); err != nil {
			return w.failed(batch, err)
		}
	}
	batch = w.believable(ctx, batch)
	p := w.plan(batch)
	if p.refusedBefore(w.asOf) { // what is known may be older than the request: ask the API server, and decide anew
		if err := w.read(ctx); err != nil {
			return w.failed(batch, err)
		}
		batch = w.believable(ctx, batch)
		p = w.plan(batch)
	}
	if p.page == nil || !p.page.Changed() {
		p.answer()
		return nil
	}
	return w.write(ctx, p)
}

// read asks the API server.
func (w *worker) read(ctx context.Context) error {
	asOf := w.store.now()
	bucket, err := w.store.read(ctx, w.place)
	if err != nil {
		w.known = false
		return err
	}
	w.known, w.bucket, w.asOf = true, bucket, asOf
	return nil
}

// recounted reports whether a generation that is known not to have counted the bucket may have done so since, before a
// request of the batch came in. While requests keep coming, what is known may be old.
func (w *worker) recounted(batch []*request) bool {
	return w.bucket != nil && w.bucket.CountedRevision != "" && slices.ContainsFunc(batch, func(r *request) bool {
		return r.reservation != nil && w.asOf < r.arrived && !quota.CountedBy(w.bucket, r.reservation.PolicyGeneration)
	})
}

// believable answers the reservations for which the policy says that a bucket that their generation hasn't counted can't be
// believed, and returns the others.
func (w *worker) believable(ctx context.Context, batch []*request) []*request {
	said := map[quota.Claim]error{}
	var rest []*request
	for _, r := range batch {
		if r.reservation != nil && (w.bucket == nil || !quota.CountedBy(w.bucket, r.reservation.PolicyGeneration)) {
			if err := w.asked(ctx, said, r.reservation.Claim); err != nil {
				r.answer(answer{err: err})
				continue
			}
		}
		rest = append(rest, r)
	}
	return rest
}

// asked asks for each policy generation once.
func (w *worker) asked(ctx context.Context, said map[quota.Claim]error, c quota.Claim) error {
	which := quota.Claim{Policy: c.Policy, PolicyUID: c.PolicyUID, PolicyGeneration: c.PolicyGeneration, Key: c.Key}
	err, known := said[which]
	if !known {
		err = w.store.believable(ctx, c, w.bucket)
		said[which] = err
	}
	return err
}

// failed keeps the requests for another try, or answers them if another try can't help.
func (w *worker) failed(batch []*request, err error) []*request {
	w.known, w.trail = false, err
	if outcomeOf(err) != refused { // it may go better next time
		return batch
	}
	for _, r := range batch {
		r.answer(answer{err: err})
	}
	return nil
}

// write stores the page, and answers the batch or keeps it for another try.
func (w *worker) write(ctx context.Context, p *plan) []*request {
	bucket, asOf, start := p.page.Bucket(), w.store.now(), time.Now()
	err := save(ctx, w.store.options.Writer, bucket)
	outcome := outcomeOf(err)
	w.store.options.Metrics.Wrote(outcome.result(), len(p.fitting), time.Since(start))
	switch outcome {
	case stored:
		w.known, w.bucket, w.asOf = true, bucket, asOf
		w.pace.kept()
		w.confirm(ctx, p)
		p.answer()
		return nil
	case overtaken:
		w.pace.lost()
		w.known, w.trail = false, fmt.Errorf("write quota bucket %s: %w", w.place, err)
		return p.batch
	case namespaceGone:
		return w.withoutBucket(p, err)
	case lost:
		p.doubt()
	case refused: // nothing is stored
	}
	return w.failed(p.batch, fmt.Errorf("write quota bucket %s: %w", w.place, err))
}

// confirm asks for the policy again after a write to a bucket that a claim's generation hasn't counted. The policy may have changed
// since it was asked for before the write, and the controller stamped and drained all buckets that it found; this one may
// have been made after that. What can't be confirmed is refused and taken back.
func (w *worker) confirm(ctx context.Context, p *plan) {
	said := map[quota.Claim]error{}
	confirmed := p.fitting[:0]
	for _, f := range p.fitting {
		if f.reservation != nil && !p.page.CountedBy(f.reservation.PolicyGeneration) {
			if err := w.asked(ctx, said, f.reservation.Claim); err != nil {
				f.uncertain = true // it is stored, so it has to be taken back
				p.refused = append(p.refused, misfit{f.request, err})
				continue
			}
		}
		confirmed = append(confirmed, f)
	}
	p.fitting = confirmed
}

// withoutBucket answers when no bucket can be made any more, because its namespace is going: what would be counted goes
// with it. Buckets of scope Cluster are not in the ticket's namespace, and without them nothing is known.
func (w *worker) withoutBucket(p *plan, err error) []*request {
	w.known = false
	for _, m := range p.refused {
		m.answer(answer{err: m.err})
	}
	for _, f := range p.fitting {
		if f.reservation != nil && f.reservation.Scope == quota.Cluster {
			f.answer(answer{err: fmt.Errorf("write quota bucket %s: %w", w.place, err)})
			continue
		}
		f.answer(answer{})
	}
	return nil
}
