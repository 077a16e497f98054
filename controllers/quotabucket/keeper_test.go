package quotabucket

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
	"github.com/flight-operator/flight-operator/internal/quota/store"
)

// centres is a policy that counts the seats of a cost centre, of tickets that have one, times a price.
func centres(price, limit int, more string) string {
	return fmt.Sprintf(`package centres

quota contains {"key": input.ticket.spec.costCenter, "scope": "Cluster", "amount": input.ticket.spec.number*%d, "limit": %d%s} if {
	input.ticket.spec.costCenter
}
`, price, limit, more)
}

func TestAPolicyThatIsAppliedToStoredTicketsOpensTheirBucketsAndIsInForceAfterARequestsLife(t *testing.T) {
	s := newScene(t)
	s.ticket("a", "4711", 2)
	last := s.ticket("b", "4711", 3)
	s.ticket("c", "0815", 1)
	s.ticket("none", "", 5)
	c := s.start(plane.Config)
	p := s.policy("opening", centres(1, 10, ""))
	s.says(p, "4711", "used 5, retained 0, 0 entries, by 1")
	s.says(p, "0815", "used 1, retained 0, 0 entries, by 1")
	s.counted(p.Name)
	waits := func() string {
		s.Helper()
		return c.Waiting([]flightsv1.FlightPolicy{*s.policyOf(p.Name)})[p.UID]
	}
	if waits() == "" {
		t.Error("it is in force before any replica serves it")
	}
	s.serve(p.Name)
	s.eventually("replicas serve it", func() (bool, error) {
		text := waits()
		return text == "its quotas are counted; requests that were reviewed before it may be on their way still", errors.New(text)
	})
	c.forward(2 * life)
	// A straggler: it was reviewed before the policy was there, and is stored now.
	s.ticket("straggler", "4711", 4)
	s.poke(last)
	s.eventually("it is in force", func() (bool, error) { return waits() == "", errors.New(waits()) })
	if b := s.bucket(p, quota.Cluster, "4711"); b.Used != 9 {
		t.Errorf("it was called in force when %d were used, without the straggler", b.Used)
	}
}

func TestACountSettlesEntriesAndAgeingDropsThoseWhoseRequestStoredNothing(t *testing.T) {
	s := newScene(t)
	c := s.start(plane.Config)
	p := s.policy("ageing", centres(1, 10, ""))
	s.counted(p.Name)
	name := types.NamespacedName{Namespace: s.namespace, Name: "lost"}
	if err := s.reserve(p, name, "uid-lost", 1, "4711", 4, 10); err != nil {
		t.Fatal(err)
	}
	s.says(p, "4711", "used 0, retained 0, 1 entries, by 1")
	stored := s.ticket("stored", "4711", 2)
	if err := s.reserve(p, client.ObjectKeyFromObject(stored), stored.UID, 1, "4711", 2, 10); err != nil {
		t.Fatal(err)
	}
	s.says(p, "4711", "used 2, retained 0, 1 entries, by 1")
	c.forward(life / 2)
	s.poke(stored)
	s.says(p, "4711", "used 2, retained 0, 1 entries, by 1")
	c.forward(life)
	s.poke(stored)
	s.says(p, "4711", "used 2, retained 0, 0 entries, by 1")
	if err := s.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	s.says(p, "4711", "none")
}

func TestWhenKeysChangeOldBucketsAreStampedAndDrainedBeforeNewOnesOpen(t *testing.T) {
	s := newScene(t)
	c := s.start(plane.Config)
	p := s.policy("keys", centres(1, 10, ""))
	s.ticket("a", "4711", 3)
	s.says(p, "4711", "used 3, retained 0, 0 entries, by 1")
	s.counted(p.Name)
	lost := types.NamespacedName{Namespace: s.namespace, Name: "lost"}
	if err := s.reserve(p, lost, "uid-lost", 1, "4711", 2, 10); err != nil {
		t.Fatal(err)
	}
	s.change(p.Name, `package centres

quota contains {"key": "everybody", "scope": "Cluster", "amount": input.ticket.spec.number, "limit": 9}
`)
	s.says(p, "4711", "used 0, retained 0, 1 entries, by 2")
	// An earlier generation's claims are refused from now on, and the new key is not open while its entry is.
	var stale *quota.StaleError
	if err := s.reserve(p, lost, "uid-other", 1, "4711", 1, 10); !errors.As(err, &stale) {
		t.Errorf("an earlier generation's claim got %v", err)
	}
	var counting *store.CountingError
	if err := s.reserve(s.policyOf(p.Name), lost, "uid-other", 1, "everybody", 1, 9); !errors.As(err, &counting) {
		t.Errorf("a claim on the new key got %v", err)
	}
	if s.bucket(p, quota.Cluster, "everybody") != nil {
		t.Error("the new key's bucket is there before the old one is drained")
	}
	c.forward(2 * life)
	s.poke(s.ticket("b", "4711", 1))
	s.says(p, "everybody", "used 4, retained 0, 0 entries, by 2")
	s.counted(p.Name)
	s.says(p, "4711", "none")
}

func TestBucketsOfAPolicyThatIsGoneOrHasNoQuotaAnyMoreGo(t *testing.T) {
	s := newScene(t)
	s.start(plane.Config)
	s.ticket("a", "4711", 3)
	for what, end := range map[string]func(*flightsv1.FlightPolicy){
		"deleted":   func(p *flightsv1.FlightPolicy) { s.remove(p) },
		"made anew": func(p *flightsv1.FlightPolicy) { s.remove(p); s.policy(p.Name, centres(1, 5, "")) },
		"without a rule": func(p *flightsv1.FlightPolicy) {
			s.change(p.Name, "package centres\n\ndeny contains \"no\" if false\n")
		},
	} {
		p := s.policy("going", centres(1, 10, ""))
		s.says(p, "4711", "used 3, retained 0, 0 entries, by 1")
		if err := s.reserve(p, types.NamespacedName{Namespace: s.namespace, Name: "lost"}, "uid", 1, "4711", 1, 10); err != nil {
			t.Fatal(err)
		}
		end(p)
		s.says(p, "4711", "none")
		if what == "made anew" {
			s.says(s.policyOf(p.Name), "4711", "used 3, retained 0, 0 entries, by 1")
		}
		s.remove(named(p.Name))
	}
}

// remove deletes an object that may be gone.
func (s *scene) remove(o client.Object) {
	s.Helper()
	if err := client.IgnoreNotFound(s.Delete(s.Context(), o)); err != nil {
		s.Fatal(err)
	}
}

// named is a policy by its name alone.
func named(name string) *flightsv1.FlightPolicy {
	return &flightsv1.FlightPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

const byNamespace = `package seats

quota contains {"key": "all", "scope": "Namespace", "amount": input.ticket.spec.number, "limit": 10, "retain": true}
`

func TestANamespaceThatIsDeletedEndsInWhateverOrderThingsGo(t *testing.T) {
	s := newScene(t)
	s.start(plane.Config)
	s.namespaces = "ending-*"
	p := s.policy("ending", byNamespace)
	for what, prepare := range map[string]func(*flightsv1.FlightTicket){
		"as it stands":           func(*flightsv1.FlightTicket) {},
		"with an open entry":     func(t *flightsv1.FlightTicket) { s.open(p) },
		"the ticket goes before": func(t *flightsv1.FlightTicket) { s.remove(t) },
		"the policy goes before": func(*flightsv1.FlightTicket) { s.remove(p) },
		"the bucket goes before": func(*flightsv1.FlightTicket) { s.remove(s.bucket(p, quota.Namespace, "all")) },
		"the ticket goes last":   func(t *flightsv1.FlightTicket) { s.hold(t) },
	} {
		s.namespace = s.newNamespace("ending-")
		if s.Get(t.Context(), client.ObjectKeyFromObject(p), p) != nil {
			p = s.policy("ending", byNamespace)
		}
		ticket := s.ticket("a", "", 2)
		s.eventually(what+": the bucket", func() (bool, error) {
			b := s.bucket(p, quota.Namespace, "all")
			return b != nil && b.Used == 2, nil
		})
		prepare(ticket)
		s.remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
		if what == "the ticket goes last" {
			s.eventually(what+": the bucket goes", func() (bool, error) { return s.bucket(p, quota.Namespace, "all") == nil, nil })
			s.letGo(ticket)
		}
		s.eventually(what+": the namespace ends", func() (bool, error) {
			err := s.Get(t.Context(), client.ObjectKey{Name: s.namespace}, &corev1.Namespace{})
			return apierrors.IsNotFound(err), err
		})
	}
}

// open reserves for a ticket that is never stored, in the namespace's bucket.
func (s *scene) open(p *flightsv1.FlightPolicy) {
	s.Helper()
	replica, err := store.New(store.Options{Reader: s.Client, Writer: s.Client, OperatorNamespace: s.operator})
	if err != nil {
		s.Fatal(err)
	}
	defer replica.Close()
	if _, err := replica.Reserve(s.Context(), quota.Review{
		Ticket: types.NamespacedName{Namespace: s.namespace, Name: "lost"}, UID: "uid", Generation: 1,
		Claims: []quota.Claim{{Policy: p.Name, PolicyUID: p.UID, PolicyGeneration: p.Generation, Key: "all", Scope: quota.Namespace, Amount: 1, Limit: 10}},
	}); err != nil {
		s.Fatal(err)
	}
}

// hold keeps a ticket from going, and letGo doesn't.
func (s *scene) hold(t *flightsv1.FlightTicket) {
	s.Helper()
	t.Finalizers = []string{flightsv1.BookingFinalizer}
	if err := s.Update(s.Context(), t); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) letGo(t *flightsv1.FlightTicket) {
	s.Helper()
	if err := s.Patch(s.Context(), t, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		s.Fatal(err)
	}
}

func TestTwoCountersAtOnceConvergeToTheUnit(t *testing.T) {
	s := newScene(t)
	leader := s.start(plane.Config)
	behind, proxy := s.proxied()
	old := s.start(behind)
	p := s.policy("two", centres(1, 1000, ""))
	s.counted(p.Name)
	release := proxy.HoldWatches()
	var want int64
	for i := range 30 {
		ticket := s.ticket(fmt.Sprintf("t%d", i), "4711", 2)
		if err := s.reserve(p, client.ObjectKeyFromObject(ticket), ticket.UID, 1, "4711", 2, 1000); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			s.remove(ticket)
		} else {
			want += 2
		}
		if i == 15 {
			release()
			release = proxy.HoldWatches()
		}
	}
	release()
	// What was stored and deleted between two looks is seen by nobody: its entries age.
	poked := s.ticket("poked", "", 1)
	s.eventually("no entry is open", func() (bool, error) {
		leader.forward(life)
		old.forward(life)
		s.poke(poked)
		return len(s.bucket(p, quota.Cluster, "4711").Entries) == 0, nil
	})
	s.says(p, "4711", fmt.Sprintf("used %d, retained 0, 0 entries, by 1", want))
}

// A watch that is late must not make a count newer than it is: its revision is that of the store's contents.
func TestACounterWhoseWatchIsLateChangesNothingThatALaterCountSaid(t *testing.T) {
	s := newScene(t)
	behind, proxy := s.proxied()
	late := s.start(behind)
	p := s.policy("late", centres(1, 100, ""))
	first := s.ticket("a", "4711", 2)
	s.says(p, "4711", "used 2, retained 0, 0 entries, by 1")
	defer proxy.HoldWatches()()
	from := late.Tickets.LastStoreSyncResourceVersion()
	s.start(plane.Config)
	s.ticket("b", "4711", 3)
	s.says(p, "4711", "used 5, retained 0, 0 entries, by 1")
	if err := late.census.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is, to := late.census.Revisions(); is != from || to != from {
		t.Errorf("the late cache says it is at %s to %s, and its watch stands at %s", is, to, from)
	}
	_, err := late.editor.Edit(t.Context(), s.placed(p, quota.Cluster, "4711"), nil, func(page *quota.Page) error {
		b := page.Bucket()
		return page.Count(late.census.Snapshot(placeOf(b), b.PolicyUID, b.Entries))
	})
	var void *quota.VoidError
	if !errors.As(err, &void) {
		t.Errorf("the late count got %v, want that it is void", err)
	}
	if err := late.gate.Bookable(t.Context(), first, nil); err == nil {
		t.Error("the second gate of the late one lets a ticket pass")
	}
	s.says(p, "4711", "used 5, retained 0, 0 entries, by 1")
}

func TestWhatIsRetainedOutlivesItsTicketWhichGoesOnlyAfterwards(t *testing.T) {
	s := newScene(t)
	c := s.start(plane.Config)
	p := s.policy("retaining", centres(1, 10, `, "retain": true`))
	ticket := s.ticket("a", "4711", 3)
	s.hold(ticket)
	s.cancelled(ticket)
	s.says(p, "4711", "used 3, retained 0, 0 entries, by 1")
	s.remove(ticket)
	s.says(p, "4711", "used 0, retained 3, 0 entries, by 1")
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(ticket), ticket); err != nil {
		t.Fatal(err)
	}
	if err := c.gate.Departed(t.Context(), ticket); err != nil {
		t.Errorf("it may not go: %v", err)
	}
	s.letGo(ticket)
	other := s.ticket("b", "4711", 1)
	s.cancelled(other)
	s.says(p, "4711", "used 1, retained 3, 0 entries, by 1")
	s.remove(other)
	s.says(p, "4711", "used 0, retained 3, 0 entries, by 1")
	s.eventually("the departure is forgotten", func() (bool, error) {
		s.poke(s.ticket(fmt.Sprintf("poke-%d", s.made()), "", 1))
		return len(s.bucket(p, quota.Cluster, "4711").Departures) == 0, nil
	})
	if b := s.bucket(p, quota.Cluster, "4711"); b.Retained != 3 || b.Available != 7 {
		t.Errorf("retained %d, available %d", b.Retained, b.Available)
	}
}

// cancelled says of a ticket that it had a booking, which is cancelled.
func (s *scene) cancelled(t *flightsv1.FlightTicket) {
	s.Helper()
	now := metav1.Now()
	t.Status.Booking = &flightsv1.BookingStatus{
		ID: "b-1", Provider: flightsv1.ProviderIdentity{Name: "air", UID: "uid-air", Account: "house"}, CancelledAt: &now,
		Order: flightsv1.Order{Origin: "BOM", Destination: "LON", Seats: t.Spec.Number},
	}
	if err := s.Status().Update(s.Context(), t); err != nil {
		s.Fatal(err)
	}
}

func TestATicketThatWasNeverBookedLeavesNothingBehindAndNeedNotWait(t *testing.T) {
	s := newScene(t)
	c := s.start(plane.Config)
	p := s.policy("unbooked", centres(1, 10, `, "retain": true`))
	s.ticket("stays", "4711", 1)
	ticket := s.ticket("a", "4711", 3)
	s.hold(ticket)
	s.says(p, "4711", "used 4, retained 0, 0 entries, by 1")
	s.remove(ticket)
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(ticket), ticket); err != nil {
		t.Fatal(err)
	}
	if err := c.gate.Departed(t.Context(), ticket); err != nil {
		t.Errorf("it may not go: %v", err)
	}
	s.ticket("c", "4711", 2) // a count of the ticket that is leaving
	s.says(p, "4711", "used 6, retained 0, 0 entries, by 1")
	s.letGo(ticket)
	s.says(p, "4711", "used 3, retained 0, 0 entries, by 1")
}

func TestAThousandTicketsInOneBucketAreEvaluatedOnceEach(t *testing.T) {
	s := newScene(t)
	c := s.start(plane.Config)
	p := s.policy("thousand", centres(1, 100_000, ""))
	s.counted(p.Name)
	const many = 1000
	failed := make(chan error, many)
	slots := make(chan struct{}, 32)
	for i := range many {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			failed <- s.Create(context.Background(), &flightsv1.FlightTicket{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("t%d", i)},
				Spec:       flightsv1.FlightTicketSpec{From: "Mumbai", To: "London", Number: 1, CostCenter: "4711"},
			})
		}()
	}
	for range many {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	s.says(p, "4711", "used 1000, retained 0, 0 entries, by 1")
	if asked := c.census.Asked(); asked > 2*many {
		t.Errorf("the policy was asked %d times for %d tickets", asked, many)
	}
}
