package store

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// Deleter deletes from the API server.
type Deleter interface {
	Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error
}

// Editor is the controller's hand on buckets: counts, stamps, releases of what is overdue, removal. It holds no state
// and may be used concurrently.
type Editor struct {
	// Reader reads live.
	Reader Reader
	// Writer writes under resourceVersions, and Deleter deletes; one client is both.
	Writer  Writer
	Deleter Deleter
}

// Edit reads a bucket live, lets change work on it, and writes what it changed under the resourceVersion that was read;
// on a conflict it begins anew, until the context ends. So change may run several times, and a count must take a new
// snapshot each time. If change returns an error, nothing is written.
//
// A bucket that isn't there is made from the claim opening; with none, and in a namespace that is being deleted, that it
// is missing is no error, and the bucket returned is nil. A bucket that change left as it is isn't written.
func (e *Editor) Edit(ctx context.Context, place types.NamespacedName, opening *quota.Claim, change func(*quota.Page) error) (*flightsv1.QuotaBucket, error) {
	for try := 0; ; try++ {
		if try > 0 {
			pause(ctx, try)
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("edit quota bucket %s: %w", place, err)
		}
		bucket, again, err := e.edit(ctx, place, opening, change)
		if !again {
			return bucket, err
		}
	}
}

// edit tries once, and says whether somebody else was ahead, so that it has to be tried again.
func (e *Editor) edit(ctx context.Context, place types.NamespacedName, opening *quota.Claim, change func(*quota.Page) error) (_ *flightsv1.QuotaBucket, again bool, _ error) {
	bucket, err := readBucket(ctx, e.Reader, place)
	if err != nil || bucket == nil && opening == nil {
		return nil, false, err
	}
	var page *quota.Page
	if bucket != nil {
		page = quota.Open(bucket)
	} else {
		page = quota.Blank(*opening, place)
	}
	if err := change(page); err != nil {
		return nil, false, err
	}
	if !page.Changed() {
		return bucket, false, nil
	}
	written := page.Bucket()
	switch err := save(ctx, e.Writer, written); outcomeOf(err) {
	case stored:
		return written, false, nil
	case namespaceGone:
		return nil, false, nil
	case overtaken:
		return nil, true, nil
	default:
		return nil, false, fmt.Errorf("write quota bucket %s: %w", place, err)
	}
}

// Remove removes a bucket for good if allowed says so, of the bucket as it is at that moment: nothing that a review
// writes in between gets lost. It reports whether the bucket is gone. Deletion comes before the finalizer goes, so that
// at no time somebody else's deletion could take a bucket with entries away.
func (e *Editor) Remove(ctx context.Context, place types.NamespacedName, allowed func(*quota.Page) bool) (bool, error) {
	for try := 0; ; try++ {
		if try > 0 {
			pause(ctx, try)
		}
		if err := ctx.Err(); err != nil {
			return false, fmt.Errorf("remove quota bucket %s: %w", place, err)
		}
		bucket, err := readBucket(ctx, e.Reader, place)
		switch {
		case err != nil:
			return false, err
		case bucket == nil:
			return true, nil
		case !allowed(quota.Open(bucket)), letGo(bucket):
			return false, nil
		}
		if err := e.remove(ctx, bucket); err != nil && outcomeOf(err) != overtaken {
			return false, fmt.Errorf("remove quota bucket %s: %w", place, err)
		}
	}
}

// remove takes one step: it asks for the deletion, or lets a bucket go whose deletion was asked for.
func (e *Editor) remove(ctx context.Context, bucket *flightsv1.QuotaBucket) error {
	if bucket.DeletionTimestamp.IsZero() {
		return e.Deleter.Delete(ctx, bucket, client.Preconditions{UID: &bucket.UID, ResourceVersion: &bucket.ResourceVersion})
	}
	bucket.Finalizers = withoutQuota(bucket.Finalizers)
	return e.Writer.Update(ctx, bucket)
}

// letGo reports that only finalizers of others keep a bucket.
func letGo(b *flightsv1.QuotaBucket) bool {
	return !b.DeletionTimestamp.IsZero() && len(withoutQuota(b.Finalizers)) == len(b.Finalizers)
}

func withoutQuota(finalizers []string) []string {
	var others []string
	for _, f := range finalizers {
		if f != flightsv1.QuotaFinalizer {
			others = append(others, f)
		}
	}
	return others
}
