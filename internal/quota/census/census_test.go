package census_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/quota"
	"github.com/flight-operator/flight-operator/internal/quota/census"
)

// cache is a store of tickets that stands still unless a test changes it.
type cache struct {
	revision int
	tickets  map[string]*flightsv1.FlightTicket
	// between runs after the tickets are listed: what happens before the revision is read again.
	between func()
}

func newCache() *cache { return &cache{revision: 100, tickets: map[string]*flightsv1.FlightTicket{}} }

func (c *cache) List() []any {
	var all []any
	for _, name := range slices.Sorted(maps.Keys(c.tickets)) {
		all = append(all, c.tickets[name])
	}
	if c.between != nil {
		c.between()
	}
	return all
}

func (c *cache) LastStoreSyncResourceVersion() string { return strconv.Itoa(c.revision) }

// put stores a ticket with so many seats, changed.
func (c *cache) put(name string, seats int32, change ...func(*flightsv1.FlightTicket)) {
	c.revision++
	t := &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: types.UID("uid-" + name), Generation: 1, ResourceVersion: strconv.Itoa(c.revision),
		},
		Spec: flightsv1.FlightTicketSpec{From: "Mumbai", To: "London", Number: seats},
	}
	if was := c.tickets[name]; was != nil {
		t.Generation = was.Generation
		if was.Spec.Number != seats {
			t.Generation++
		}
	}
	for _, f := range change {
		f(t)
	}
	c.tickets[name] = t
}

// seats is a policy that counts seats: all in one bucket, and under another key those of tickets with a cost centre.
const seats = `package seats

quota contains {"key": "all", "scope": "Namespace", "amount": input.ticket.spec.number, "limit": 10} if input.ticket.spec.number < 5
quota contains {"key": input.ticket.spec.costCenter, "scope": "Cluster", "amount": input.ticket.spec.number, "limit": 7} if input.ticket.spec.costCenter
`

type bench struct {
	*testing.T
	cache  *cache
	engine *policy.Engine
	census *census.Census
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, cache: newCache(), engine: policy.NewEngine(policy.RuleQuota)}
	b.census = census.New(b.cache, b.engine.Quotas, "operator")
	b.policy(1, seats)
	return b
}

func (b *bench) policy(generation int64, rego string) {
	b.Helper()
	if err := b.engine.Set(b.Context(), &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "seats", UID: "uid-seats", Generation: generation}, Spec: flightsv1.FlightPolicySpec{Rego: rego},
	}); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) look() {
	b.Helper()
	if err := b.census.Look(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// all is the bucket of the key "all", centre that of a cost centre.
var all = types.NamespacedName{Namespace: "team", Name: quota.BucketName("uid-seats", quota.Namespace, "all")}

func centre(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "operator", Name: quota.BucketName("uid-seats", quota.Cluster, name)}
}

// says is what a snapshot says: its tickets with their amounts, by name.
func (b *bench) says(place types.NamespacedName, entries ...flightsv1.QuotaEntry) string {
	b.Helper()
	s := b.census.Snapshot(place, "uid-seats", entries)
	var tickets []string
	for t := range s.Tickets {
		text := fmt.Sprintf("%s %d", t.Name.Name, t.Amount)
		if t.Outlived {
			text += " outlived"
		}
		if t.Committed {
			text += " committed"
		}
		tickets = append(tickets, text)
	}
	slices.Sort(tickets)
	return fmt.Sprintf("%s..%s by %d: %s", s.From, s.To, s.PolicyGeneration, strings.Join(tickets, ", "))
}

func (b *bench) wanted(place types.NamespacedName, want string, entries ...flightsv1.QuotaEntry) {
	b.Helper()
	if got := b.says(place, entries...); got != want {
		b.Errorf("the snapshot says %q, want %q", got, want)
	}
}

func costCenter(name string) func(*flightsv1.FlightTicket) {
	return func(t *flightsv1.FlightTicket) { t.Spec.CostCenter = name; t.Generation++ }
}

func TestTicketsAreFoundByBucketAsTheyComeChangeMoveAndGo(t *testing.T) {
	b := newBench(t)
	b.cache.put("a", 2)
	b.cache.put("b", 3, costCenter("4711"))
	b.look()
	b.wanted(all, "102..102 by 1: a 2, b 3")
	b.wanted(centre("4711"), "102..102 by 1: b 3")
	b.cache.put("a", 4)
	b.cache.put("b", 3, costCenter("0815"))
	b.look()
	b.wanted(all, "104..104 by 1: a 4, b 3")
	b.wanted(centre("4711"), "104..104 by 1: ")
	b.wanted(centre("0815"), "104..104 by 1: b 3")
	delete(b.cache.tickets, "b")
	b.cache.revision++
	b.look()
	b.wanted(all, "105..105 by 1: a 4")
	if places := b.census.Places(); len(places) != 1 || places[all].Sample.Limit != 10 {
		t.Errorf("the buckets are %v", places)
	}
}

func TestASnapshotIsBetweenTheRevisionsBeforeAndAfterItsTickets(t *testing.T) {
	b := newBench(t)
	b.cache.put("a", 2)
	b.cache.between = func() { b.cache.put("a", 3) }
	b.look()
	b.cache.between = nil
	b.wanted(all, "101..102 by 1: a 2")
	b.look()
	b.wanted(all, "102..102 by 1: a 3")
}

func TestATicketThatAnEntryNamesIsThereAlthoughItClaimsNothing(t *testing.T) {
	b := newBench(t)
	b.cache.put("a", 5)
	b.look()
	b.wanted(all, "101..101 by 1: a 0", flightsv1.QuotaEntry{Namespace: "team", Name: "a"}, flightsv1.QuotaEntry{Namespace: "team", Name: "gone"})
}

func TestOnlyWhatHasChangedIsEvaluated(t *testing.T) {
	b := newBench(t)
	const many = 1000
	for i := range many {
		b.cache.put(fmt.Sprintf("t%d", i), 1)
	}
	b.look()
	expect := func(what string, want uint64) {
		t.Helper()
		before := b.census.Asked()
		b.look()
		if got := b.census.Asked() - before; got != want {
			t.Errorf("%s: the policy was asked %d times, want %d", what, got, want)
		}
	}
	expect("nothing has changed", 0)
	before := b.census.Places()[all].Version
	b.cache.put("t1", 1, func(t *flightsv1.FlightTicket) { t.Status.ObservedGeneration = 1 })
	expect("a status that no quota sees", 0)
	if b.census.Places()[all].Version == before {
		t.Error("a ticket of another revision must be counted as such")
	}
	b.cache.put("t1", 2)
	expect("a spec", 1)
	b.cache.put("t2", 1, func(t *flightsv1.FlightTicket) { t.Status.Booking = &flightsv1.BookingStatus{ID: "b-1"} })
	expect("a booking", 1)
	b.cache.put("t3", 1, func(t *flightsv1.FlightTicket) { t.UID = "another" })
	expect("a ticket of the same name", 1)
	b.policy(2, seats+"\n# changed")
	expect("a policy", many)
	b.engine.Delete("seats")
	expect("the last policy goes", 0)
	if len(b.census.Places()) != 0 {
		t.Error("buckets are charged by no policy")
	}
}

func TestATicketThatAPolicyFailsOnHoldsUpNoCountOfOthers(t *testing.T) {
	b := newBench(t)
	b.policy(2, `package seats

quota contains {"key": input.route.destination.iata, "scope": "Cluster", "amount": 1, "limit": 3}
`)
	b.cache.put("a", 1)
	b.cache.put("b", 1, func(t *flightsv1.FlightTicket) { t.Spec.To = "Nowhere at all" })
	b.look()
	if err := b.census.Problem("uid-seats"); err != nil {
		t.Errorf("nothing is counted: %v", err)
	}
	err := b.census.Uncounted("uid-seats")
	if err == nil || !strings.Contains(err.Error(), "1 stored tickets are not counted, since the policy fails on them, such as team/b") {
		t.Errorf("got %v", err)
	}
	asked := b.census.Asked()
	b.cache.put("c", 1)
	b.look()
	if now := b.census.Asked(); now != asked+1 {
		t.Errorf("%d questions were asked, want one, about the new ticket", now-asked)
	}
	b.cache.put("b", 1, func(t *flightsv1.FlightTicket) { t.Spec.To = "Paris"; t.Generation++ })
	b.look()
	if err := b.census.Uncounted("uid-seats"); err != nil {
		t.Errorf("once it can be evaluated: %v", err)
	}
}

func TestATicketThatAPolicyRunsOutOfTimeOnIsNotTakenForOneThatClaimsNothing(t *testing.T) {
	b := newBench(t)
	many := strings.TrimSuffix(strings.Repeat("1, ", 100), ", ")
	b.policy(2, fmt.Sprintf(`package seats

quota contains {"key": "all", "scope": "Cluster", "amount": amount, "limit": 3}

amount := 1 if input.ticket.spec.costCenter != "slow"

amount := count([1 | some _ in list; some _ in list; some _ in list; some _ in list]) if input.ticket.spec.costCenter == "slow"

list := [%s]
`, many))
	b.cache.put("a", 1, func(t *flightsv1.FlightTicket) { t.Spec.CostCenter = "slow" })
	b.look()
	if err := b.census.Problem("uid-seats"); err == nil || !strings.Contains(err.Error(), "such as team/a") {
		t.Errorf("got %v", err)
	}
	if err := b.census.Uncounted("uid-seats"); err != nil {
		t.Errorf("it is left out: %v", err)
	}
	b.cache.put("a", 1, func(t *flightsv1.FlightTicket) { t.Spec.CostCenter = "fast"; t.Generation++ })
	b.look()
	if err := b.census.Problem("uid-seats"); err != nil {
		t.Errorf("once it can be asked: %v", err)
	}
}

func TestWhatATicketTakesOutlivesItOnceAllThatIsLeftIsToLetItGo(t *testing.T) {
	deleted := func(t *flightsv1.FlightTicket) { now := metav1.Now(); t.DeletionTimestamp = &now }
	booked := func(t *flightsv1.FlightTicket) { t.Status.Booking = &flightsv1.BookingStatus{ID: "b-1"} }
	kept := func(t *flightsv1.FlightTicket) { t.Spec.DeletionPolicy = flightsv1.DeletionPolicyRetain }
	said := func(t *flightsv1.FlightTicket) {
		t.Annotations = map[string]string{flightsv1.RetainBookingAnnotation: "b-1"}
	}
	tried := func(t *flightsv1.FlightTicket) { t.Status.Attempts = 1 }
	open := func(t *flightsv1.FlightTicket) { t.Status.Operation = &flightsv1.OperationStatus{} }
	cancelled := func(t *flightsv1.FlightTicket) { now := metav1.Now(); t.Status.Booking.CancelledAt = &now }
	type changes []func(*flightsv1.FlightTicket)
	for name, test := range map[string]struct {
		retain bool
		is     changes
		want   string
	}{
		"a booking that stays":                    {false, changes{deleted, booked, kept}, "a 2 outlived committed"},
		"a booking that stays by a person's word": {false, changes{deleted, booked, said}, "a 2 outlived committed"},
		"a booking that is to be cancelled":       {false, changes{deleted, booked}, "a 2 committed"},
		"the same under a quota that retains":     {true, changes{deleted, booked}, "a 2 committed"},
		"once it is cancelled":                    {true, changes{deleted, booked, cancelled}, "a 2 outlived"},
		"never booked":                            {true, changes{deleted}, "a 2"},
		"tried, and refused by the provider":      {true, changes{deleted, tried}, "a 2"},
		"tried, and nobody knows yet":             {true, changes{deleted, tried, open}, "a 2 committed"},
		"never booked, under an ordinary quota":   {false, changes{deleted, kept}, "a 2"},
		"an operation is open":                    {true, changes{deleted, booked, kept, open}, "a 2 committed"},
		"not deleted":                             {true, changes{booked, kept}, "a 2 committed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.policy(2, fmt.Sprintf(`package seats

quota contains {"key": "all", "scope": "Namespace", "amount": 2, "limit": 10, "retain": %v}
`, test.retain))
			b.cache.put("a", 2, test.is...)
			b.look()
			b.wanted(all, "101..101 by 2: "+test.want)
		})
	}
}

func TestACacheThatDoesNotKnowItsRevisionIsNotCounted(t *testing.T) {
	c := census.New(unknowing{}, func() []policy.Quota { return nil }, "operator")
	if err := c.Look(context.Background()); err == nil {
		t.Error("it was counted")
	}
}

type unknowing struct{}

func (unknowing) List() []any                          { return nil }
func (unknowing) LastStoreSyncResourceVersion() string { return "" }
