package store

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// CountingError says that a bucket isn't there, or was counted by an earlier generation of the policy, and that the
// controller hasn't yet counted the stored tickets by this one: what is missing can't be told from what is empty (rule 7). A repeat may be admitted.
type CountingError struct {
	Policy, Key string
	// Generation is the policy's, and Counted the one whose tickets are counted.
	Generation, Counted int64
}

func (e *CountingError) Error() string {
	return fmt.Sprintf("quota %q of policy %s is being counted (generation %d of the policy; generation %d is done): try again in a moment",
		e.Key, e.Policy, e.Generation, e.Counted)
}

// read reads a bucket live; nil if there is none.
func (s *Store) read(ctx context.Context, place types.NamespacedName) (*flightsv1.QuotaBucket, error) {
	return readBucket(ctx, s.options.Reader, place)
}

func readBucket(ctx context.Context, reader Reader, place types.NamespacedName) (*flightsv1.QuotaBucket, error) {
	bucket := &flightsv1.QuotaBucket{}
	err := reader.Get(ctx, place, bucket)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read quota bucket %s: %w", place, err)
	}
	return bucket, nil
}

// believable says as an error why a bucket that this generation of the policy hasn't counted must not be believed: the
// policy, read live, has another generation, or this one isn't counted. A bucket that an earlier generation counted isn't
// believed in any case: the controller counts every bucket that it finds, and it will find this one.
func (s *Store) believable(ctx context.Context, c quota.Claim, bucket *flightsv1.QuotaBucket) error {
	policy := &flightsv1.FlightPolicy{}
	err := s.options.Reader.Get(ctx, types.NamespacedName{Name: c.Policy}, policy)
	switch {
	case apierrors.IsNotFound(err):
		return &quota.StaleError{Policy: c.Policy, Generation: c.PolicyGeneration}
	case err != nil:
		return &quota.BusyError{Policy: c.Policy, Key: c.Key, Reason: "the policy can't be read", Cause: err}
	case policy.UID != c.PolicyUID || policy.Generation != c.PolicyGeneration:
		return &quota.StaleError{Policy: c.Policy, Generation: c.PolicyGeneration, Newest: policy.Generation}
	case policy.Status.CountedGeneration != c.PolicyGeneration:
		return &CountingError{Policy: c.Policy, Key: c.Key, Generation: c.PolicyGeneration, Counted: policy.Status.CountedGeneration}
	case bucket != nil && bucket.CountedRevision != "":
		return &CountingError{Policy: c.Policy, Key: c.Key, Generation: c.PolicyGeneration, Counted: bucket.CountedGeneration}
	}
	return nil
}
