package scene

import (
	"context"
	"fmt"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// Await watches one object until it is as wanted, and returns it. The object names it; what is for the message of a
// failure.
func Await[O client.Object](s *Scene, object O, what string, wanted func(O) bool) O {
	s.Helper()
	last := "it was never seen"
	for s.Context.Err() == nil { // the API server ends a watch now and then
		events, err := s.watch(s.Context, object)
		if err != nil {
			s.Fatalf("watch until %s: %v", what, err)
		}
		for event := range events.ResultChan() {
			seen, ok := event.Object.(O)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			if wanted(seen) {
				events.Stop()
				return seen
			}
			last = Describe(seen)
		}
		events.Stop()
	}
	s.Fatalf("%s did not become %s; it was last\n%s", object.GetName(), what, last)
	return object
}

// AwaitGone watches one object until it is deleted.
func AwaitGone[O client.Object](s *Scene, object O) {
	s.Helper()
	if err := awaitGone(s.Context, s, object); err != nil {
		s.Fatal(err)
	}
}

func awaitGone[O client.Object](ctx context.Context, s *Scene, object O) error {
	key := client.ObjectKeyFromObject(object)
	for ctx.Err() == nil {
		events, err := s.watch(ctx, object) // before the read: a deletion between the two is not missed
		if err != nil {
			return fmt.Errorf("watch until %s is gone: %w", key, err)
		}
		err = s.Client.Get(ctx, key, object)
		if apierrors.IsNotFound(err) {
			events.Stop()
			return nil
		}
		for event := range events.ResultChan() {
			if event.Type == watch.Deleted {
				break
			}
		}
		events.Stop()
	}
	return fmt.Errorf("%s does not go; it was last\n%s", key, Describe(object))
}

// watch watches one object from its present state on.
func (s *Scene) watch(ctx context.Context, object client.Object) (watch.Interface, error) {
	kind, err := apiutil.GVKForObject(object, s.Client.Scheme())
	if err != nil {
		return nil, err
	}
	kind.Kind += "List"
	list, err := s.Client.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	options := &client.ListOptions{
		Namespace: object.GetNamespace(),
		Raw:       &metav1.ListOptions{FieldSelector: "metadata.name=" + object.GetName()},
	}
	return s.Client.Watch(ctx, list.(client.ObjectList), options)
}

// Describe shows a status, for the message of a failure. Nothing else: a spec may hold passengers.
func Describe(object client.Object) string {
	var status any
	switch o := object.(type) {
	case *flightsv1.FlightTicket:
		status = o.Status
	case *flightsv1.BookingProvider:
		status = o.Status
	case *flightsv1.FlightPolicy:
		status = o.Status
	}
	text, err := yaml.Marshal(status)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Ticket names a ticket of the scene.
func (s *Scene) Ticket(name string) *flightsv1.FlightTicket {
	return &flightsv1.FlightTicket{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
}

// Booked waits for a ticket that is booked as its spec asks.
func (s *Scene) Booked(name string, seats int32) *flightsv1.FlightTicket {
	s.Helper()
	return Await(s, s.Ticket(name), fmt.Sprintf("booked with %d seats", seats), func(t *flightsv1.FlightTicket) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, flightsv1.ConditionReady) &&
			t.Status.ObservedGeneration == t.Generation && t.Status.Booking != nil && t.Status.Booking.Order.Seats == seats
	})
}

// Waiting waits for a ticket that is not ready for a reason, and returns the message.
func (s *Scene) Waiting(name, reason string) string {
	s.Helper()
	var message string
	Await(s, s.Ticket(name), reason, func(t *flightsv1.FlightTicket) bool {
		ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
		if ready == nil || ready.Reason != reason || ready.ObservedGeneration != t.Generation {
			return false
		}
		message = ready.Message
		return ready.Status == metav1.ConditionFalse
	})
	return message
}

// ProviderIs waits for a reason of the condition Ready of the scene's provider, and returns the message.
func (s *Scene) ProviderIs(reason string) string {
	s.Helper()
	var message string
	Await(s, s.Provider, reason, func(p *flightsv1.BookingProvider) bool {
		ready := meta.FindStatusCondition(p.Status.Conditions, flightsv1.ConditionReady)
		if ready == nil || ready.Reason != reason || ready.ObservedGeneration != p.Generation {
			return false
		}
		message = ready.Message
		return true
	})
	return message
}

// awaitNone waits until the scene has no ticket.
func (s *Scene) awaitNone(ctx context.Context) {
	tickets := &flightsv1.FlightTicketList{}
	if err := s.Client.List(ctx, tickets, client.InNamespace(s.Namespace)); err != nil {
		s.Errorf("clean up: %v", err)
	}
	for i := range tickets.Items {
		if err := awaitGone(ctx, s, &tickets.Items[i]); err != nil {
			s.Errorf("clean up: %v", err)
		}
	}
}

// after is a context for what is done when the test is over.
func (s *Scene) after() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.patience())
}

// Told waits for an event about an object that has a reason and says every one of the parts.
func (s *Scene) Told(namespace, kind, name, reason string, parts ...string) {
	s.Helper()
	heard := map[string]string{}
	for s.Context.Err() == nil {
		events, err := s.Client.Watch(s.Context, &eventsv1.EventList{}, client.InNamespace(namespace))
		if err != nil {
			s.Fatalf("watch events: %v", err)
		}
		for event := range events.ResultChan() {
			e, ok := event.Object.(*eventsv1.Event)
			if !ok || e.Regarding.Kind != kind || e.Regarding.Name != name {
				continue
			}
			heard[e.Reason] = e.Note
			if e.Reason == reason && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(e.Note, p) }) {
				events.Stop()
				return
			}
		}
		events.Stop()
	}
	s.Fatalf("no event %s of %s %s says %q; there were %v", reason, kind, name, parts, heard)
}
