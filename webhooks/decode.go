package webhooks

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// maxObject bounds what is decoded: the API server stores no object above 1.5 MiB, and ours are far smaller.
const maxObject = 3 << 19

// decode reads an object as the API server does: member names are matched exactly, so that no second spelling of a
// field can hide what is stored.
func decode(raw runtime.RawExtension, into any) error {
	switch {
	case len(raw.Raw) == 0:
		return errors.New("the review holds no object")
	case len(raw.Raw) > maxObject:
		return fmt.Errorf("the object has %d bytes, over the limit of %d", len(raw.Raw), maxObject)
	}
	if err := json.Unmarshal(raw.Raw, into); err != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	return nil
}

// decodePair reads the object of a review and, at update, the stored one. The old one is nil at create.
func decodePair[T any](req admission.Request) (object, old *T, err error) {
	object = new(T)
	if err := decode(req.Object, object); err != nil {
		return nil, nil, err
	}
	if len(req.OldObject.Raw) == 0 {
		return object, nil, nil
	}
	old = new(T)
	if err := decode(req.OldObject, old); err != nil {
		return nil, nil, fmt.Errorf("stored object: %w", err)
	}
	return object, old, nil
}
