package crash

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// follower keeps every version of a ticket that the API server told of, past the proxies.
type follower struct {
	client client.WithWatch
	key    client.ObjectKey

	mu       sync.Mutex
	versions []*flightsv1.FlightTicket
	gone     bool
	changed  chan struct{}
}

// follow begins to follow a ticket, which need not exist yet, until the context ends.
func follow(ctx context.Context, c client.WithWatch, key client.ObjectKey) *follower {
	f := &follower{client: c, key: key, changed: make(chan struct{})}
	go f.run(ctx)
	return f
}

func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil { // the API server ends a watch now and then
		events, err := f.client.Watch(ctx, &flightsv1.FlightTicketList{}, client.InNamespace(f.key.Namespace),
			client.MatchingFields{"metadata.name": f.key.Name})
		if err != nil {
			continue // the test fails when it waits in vain
		}
		f.missedEnd(ctx)
		for event := range events.ResultChan() {
			if ticket, ok := event.Object.(*flightsv1.FlightTicket); ok {
				f.note(ticket, event.Type == watch.Deleted)
			}
		}
		events.Stop()
	}
}

// missedEnd notes that the ticket went while nobody watched.
func (f *follower) missedEnd(ctx context.Context) {
	err := f.client.Get(ctx, f.key, &flightsv1.FlightTicket{})
	if last, _, _ := f.look(); last != nil && apierrors.IsNotFound(err) {
		f.note(last, true)
	}
}

func (f *follower) note(ticket *flightsv1.FlightTicket, gone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.versions, f.gone = append(f.versions, ticket), gone
	close(f.changed)
	f.changed = make(chan struct{})
}

// look returns the last version, whether it is gone, and a channel that is closed at the next change.
func (f *follower) look() (last *flightsv1.FlightTicket, gone bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.versions); n > 0 {
		last = f.versions[n-1]
	}
	return last, f.gone, f.changed
}
