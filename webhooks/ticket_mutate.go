package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/places"
)

// The bounds of the groups that are stored and shown to policies.
const (
	maxGroups     = 200
	maxGroupBytes = 16 << 10
)

// draft is what the mutating webhook reads and writes of a ticket: its metadata. The spec is only looked at, and only
// for its places: the rest may be of a wrong type still, which the schema tells better.
type draft struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     json.RawMessage   `json:"spec,omitempty"`
}

// ends are the places in a spec.
type ends struct{ From, To string }

// ends reads the places, or none when they can't be read.
func (d *draft) ends() ends {
	var e struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	if err := kubejson.Unmarshal(d.Spec, &e); err != nil {
		return ends{}
	}
	return ends{e.From, e.To}
}

// mutateTicket writes down who asked and who decided, keeps the finalizer on and labels the route. A second run changes nothing.
func mutateTicket(_ context.Context, req admission.Request) outcome {
	ticket, old, err := decodePair[draft](req)
	if err != nil {
		return undecided(req, err)
	}
	before, err := json.Marshal(draft{Metadata: ticket.Metadata})
	if err != nil {
		return undecided(req, errors.New("the metadata can't be written"))
	}
	if old == nil {
		if err := stampRequester(&ticket.Metadata, req.UserInfo); err != nil {
			return undecided(req, err)
		}
	} else {
		restore(ticket.Metadata.Annotations, old.Metadata.Annotations, &ticket.Metadata.Annotations,
			flightsv1.RequestedByAnnotation, flightsv1.RequestedByGroupsAnnotation)
	}
	stampDecider(&ticket.Metadata, old, req.UserInfo.Username)
	keepFinalizer(&ticket.Metadata, old)
	labelRoute(ticket, old)

	after, err := json.Marshal(draft{Metadata: ticket.Metadata})
	if err != nil {
		return undecided(req, errors.New("the metadata can't be written"))
	}
	return outcome{response: admission.PatchResponseFromRaw(before, after), result: resultAllowed}
}

// stampRequester stores the creator. What a manifest says of it is overwritten.
func stampRequester(m *metav1.ObjectMeta, user authenticationv1.UserInfo) error {
	groups, err := json.Marshal(capGroups(user.Groups))
	if err != nil {
		return fmt.Errorf("write the groups of the requester: %w", err)
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[flightsv1.RequestedByAnnotation] = user.Username
	m.Annotations[flightsv1.RequestedByGroupsAnnotation] = string(groups)
	return nil
}

// stampDecider stores who decides something by annotation, and otherwise keeps who did last: nobody can name somebody
// else. Whether the user may decide is the validating webhook's question.
func stampDecider(m *metav1.ObjectMeta, old *draft, username string) {
	var before map[string]string
	if old != nil {
		before = old.Metadata.Annotations
	}
	for _, d := range decisions() {
		if d.decides(m.Annotations, before) {
			m.Annotations[flightsv1.DecidedByAnnotation] = username
			return
		}
	}
	restore(m.Annotations, before, &m.Annotations, flightsv1.DecidedByAnnotation)
}

// capGroups returns the groups that policies see, sorted: the same at admission and, from the annotation, later.
func capGroups(groups []string) []string {
	sorted := slices.Compact(slices.Sorted(slices.Values(groups)))
	kept := make([]string, 0, min(len(sorted), maxGroups))
	room := maxGroupBytes
	for _, g := range sorted {
		room -= len(g)
		if len(kept) == maxGroups || room < 0 {
			break
		}
		kept = append(kept, g)
	}
	return kept
}

// restore gives some keys of a map the value that they had, or takes them away if they had none.
func restore(now, before map[string]string, into *map[string]string, keys ...string) {
	for _, key := range keys {
		value, had := before[key]
		switch {
		case !had:
			delete(now, key)
		case now == nil:
			now = map[string]string{key: value}
		default:
			now[key] = value
		}
	}
	*into = now
}

// keepFinalizer puts the finalizer on unless the stored ticket is being deleted: then the controller takes it off, and
// the API server would refuse to add one.
func keepFinalizer(m *metav1.ObjectMeta, old *draft) {
	if old != nil && old.Metadata.DeletionTimestamp != nil {
		return
	}
	if !slices.Contains(m.Finalizers, flightsv1.BookingFinalizer) {
		m.Finalizers = append(m.Finalizers, flightsv1.BookingFinalizer)
	}
}

// labelRoute sets the labels of the route. While the places stay as they are, so do the labels: a newer table of places
// must not change them in passing, and the controller, which may change no label, must be able to write. Places that
// don't resolve get no label; the validating webhook says what is wrong with them.
func labelRoute(ticket, old *draft) {
	now := ticket.ends()
	if old != nil && old.ends() == now {
		restore(ticket.Metadata.Labels, old.Metadata.Labels, &ticket.Metadata.Labels, flightsv1.OriginLabel, flightsv1.DestinationLabel)
		return
	}
	wanted := map[string]string{}
	for key, text := range map[string]string{flightsv1.OriginLabel: now.From, flightsv1.DestinationLabel: now.To} {
		if place, err := places.Lookup(text); err == nil {
			wanted[key] = place.IATA
		}
	}
	restore(ticket.Metadata.Labels, wanted, &ticket.Metadata.Labels, flightsv1.OriginLabel, flightsv1.DestinationLabel)
}
