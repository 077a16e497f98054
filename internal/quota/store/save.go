package store

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// save creates or updates a bucket, under the resourceVersion it was read with. On success bucket is what is stored.
func save(ctx context.Context, writer Writer, bucket *flightsv1.QuotaBucket) error {
	if bucket.ResourceVersion == "" {
		return writer.Create(ctx, bucket)
	}
	return writer.Update(ctx, bucket)
}

// outcome is what an answer of the API server means for a write.
type outcome int

const (
	// stored: it is written.
	stored outcome = iota
	// overtaken: it is not written, because the bucket is another one than the one that was read.
	overtaken
	// namespaceGone: it is not written, because its namespace is being deleted or is gone.
	namespaceGone
	// refused: it is not written and never will be: rights or the bucket's shape.
	refused
	// lost: nobody knows; it may even be written later.
	lost
)

// result is the outcome in the words of the metrics.
func (o outcome) result() Result {
	switch o {
	case stored:
		return Written
	case overtaken:
		return Conflict
	default:
		return Failed
	}
}

// outcomeOf reads the error of a write. What it doesn't know is lost, which is the careful reading.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return stored
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return namespaceGone
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return overtaken
	case apierrors.IsNotFound(err):
		return missing(err)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsUnauthorized(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err):
		return refused
	}
	return lost
}

// missing tells what is not there. An update whose bucket is gone was overtaken by its removal.
func missing(err error) outcome {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return refused
	}
	switch status.Status().Details.Kind {
	case "namespaces":
		return namespaceGone
	case "quotabuckets":
		if status.Status().Details.Name == "" { // the kind itself isn't served: the CRD is missing
			return refused
		}
		return overtaken
	}
	return refused
}
