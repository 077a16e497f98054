package quota_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

var place = types.NamespacedName{Namespace: "team", Name: seats(0).Bucket()}

// counted is a bucket of the claim's quota, counted at revision 100.
func counted(used int64, change ...func(*flightsv1.QuotaBucket)) *flightsv1.QuotaBucket {
	b := quota.Blank(seats(0), place).Bucket()
	b.Used, b.CountedRevision, b.CountedGeneration, b.ResourceVersion = used, "100", 1, "101"
	for _, c := range change {
		c(b)
	}
	return b
}

// entry is an open entry of a ticket.
func entry(nonce, ticket string, amount, settled int64) flightsv1.QuotaEntry {
	return flightsv1.QuotaEntry{
		Nonce: nonce, Namespace: "team", Name: ticket, UID: types.UID("uid-" + ticket), Generation: 1, PolicyGeneration: 1,
		Amount: amount, Settled: settled,
	}
}

func entries(list ...flightsv1.QuotaEntry) func(*flightsv1.QuotaBucket) {
	return func(b *flightsv1.QuotaBucket) { b.Entries = list }
}

// reservation is the reservation of a ticket.
func reservation(ticket string, amount, old int64) quota.Reservation {
	return quota.Reservation{
		Claim: seats(amount), Old: old, Nonce: "own", UID: types.UID("uid-" + ticket), Generation: 1,
		Ticket: types.NamespacedName{Namespace: "team", Name: ticket},
	}
}

func TestReserving(t *testing.T) {
	for _, test := range []struct {
		name     string
		bucket   *flightsv1.QuotaBucket
		ask      quota.Reservation
		reserved int64  // then
		settled  int64  // of the new entry
		refusal  string // in place of both
	}{
		{"the last seats", counted(7), reservation("a", 3, 0), 3, 0, ""},
		{"one seat too many", counted(8), reservation("a", 3, 0), 0, 0, `quota "2027-03" of policy seats has no room: requested 3, limit 10, used 8, reserved 0, left 2; it never resets`},
		{"seats that another entry holds", counted(5, entries(entry("x", "b", 3, 0))), reservation("a", 3, 0), 0, 0, "used 5, reserved 3, left 2"},
		{"seats that are retained", counted(5, func(b *flightsv1.QuotaBucket) { b.Retained = 3 }), reservation("a", 3, 0), 0, 0, "kept for tickets that are gone 3, left 2"},
		{"a raise of a counted ticket", counted(9), reservation("a", 4, 3), 1, 3, ""},
		{"a raise beyond the limit", counted(9), reservation("a", 5, 3), 0, 0, "requested 5 in place of 3"},
		{"a raise of a ticket that isn't counted yet", counted(0, entries(entry("x", "a", 3, 0))), reservation("a", 4, 3), 4, 0, ""},
		{"the same again", counted(7, entries(entry("x", "a", 3, 0))), reservation("a", 3, 0), 3, 0, ""},
		{"a smaller update beside a larger one", counted(2, entries(entry("x", "a", 10, 2))), reservation("a", 5, 2), 8, 2, ""},
		{"a new ticket under the name of a counted one", counted(6, entries(entry("x", "a", 6, 6))), reservation("a", 4, 0), 6, 0, "used 6, reserved 0"},
		{"into a bucket above its limit", counted(12), reservation("a", 1, 0), 0, 0, "left 0"},
		{"no raise in a bucket above its limit", counted(12), reservation("a", 3, 3), 0, -1, ""},
		{"own entry, written before its answer was lost", counted(10, entries(entry("own", "a", 3, 3))), reservation("a", 3, 0), 0, -1, ""},
		{
			"more than can be counted", counted(quota.MaxAmount, func(b *flightsv1.QuotaBucket) { b.Retained = quota.MaxAmount }),
			quota.Reservation{Claim: with(seats(1), func(c *quota.Claim) { c.Limit = quota.MaxAmount }), Nonce: "own"}, 0, 0, "left 0",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			was := test.bucket.DeepCopy()
			p := quota.Open(test.bucket)
			err := p.Reserve(test.ask)
			if fmt.Sprint(test.bucket) != fmt.Sprint(was) {
				t.Error("what the page was opened from has changed")
			}
			if test.refusal != "" {
				var refused *quota.RefusedError
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), test.refusal) || p.Changed() {
					t.Errorf("got %v (changed %v), want %s", err, p.Changed(), test.refusal)
				}
				return
			}
			b := p.Bucket()
			if err != nil || b.Reserved != test.reserved || p.Changed() != (test.settled >= 0) {
				t.Fatalf("got %v, %d reserved, changed %v", err, b.Reserved, p.Changed())
			}
			if p.Changed() {
				own := b.Entries[len(b.Entries)-1]
				if own.Nonce != "own" || own.Amount != test.ask.Amount || own.Settled != test.settled {
					t.Errorf("the entry is %+v", own)
				}
			}
		})
	}
}

func TestTheRefusalSaysWhenTheQuotaResets(t *testing.T) {
	ask := reservation("a", 11, 0)
	ask.Resets = time.Date(2027, 4, 1, 2, 0, 0, 0, time.FixedZone("east", 2*3600))
	err := quota.Open(counted(0)).Reserve(ask)
	if err == nil || !strings.HasSuffix(err.Error(), "it resets at 2027-04-01 00:00 UTC") {
		t.Errorf("got %v", err)
	}
}

func TestGenerationsOfThePolicy(t *testing.T) {
	var stale *quota.StaleError
	p := quota.Open(counted(0))
	p.Stamp(3)
	if err := p.Reserve(reservation("a", 1, 0)); !errors.As(err, &stale) || stale.Newest != 3 || stale.Generation != 1 {
		t.Errorf("a claim of generation 1 after a stamp of 3: %v", err)
	}
	if err := p.Count(quota.Snapshot{From: "200", To: "200", PolicyGeneration: 2, Tickets: slices.Values([]quota.Ticket{})}); !errors.As(err, &stale) {
		t.Errorf("a count of generation 2 after a stamp of 3: %v", err)
	}
	later := reservation("a", 1, 0)
	later.PolicyGeneration, later.Limit = 4, 20
	if err := p.Reserve(later); err != nil {
		t.Fatal(err)
	}
	if b := p.Bucket(); b.PolicyGeneration != 4 || b.Limit != 20 || b.Available != 19 || b.Entries[0].PolicyGeneration != 4 {
		t.Errorf("the bucket is %+v", b)
	}
	p.Stamp(2)
	if p.Bucket().PolicyGeneration != 4 {
		t.Error("a stamp lowered the generation")
	}
	if !p.Drained(4) || p.Drained(5) {
		t.Errorf("drained of what is below 4: %v, below 5: %v", p.Drained(4), p.Drained(5))
	}
}

func TestABucketOfSomebodyElseIsNotUsed(t *testing.T) {
	p := quota.Open(counted(0, func(b *flightsv1.QuotaBucket) { b.Key = "another" }))
	if err := p.Reserve(reservation("a", 1, 0)); err == nil || !strings.Contains(err.Error(), "a cluster admin has to delete it") {
		t.Errorf("got %v", err)
	}
}

func TestEntriesAreCappedInNumberAndBytes(t *testing.T) {
	long := strings.Repeat("n", 253)
	for _, test := range []struct {
		name, ticket string
		open         int
	}{{"many", "t", quota.MaxEntries}, {"large", long, 480}} {
		b := counted(0)
		for i := range test.open {
			b.Entries = append(b.Entries, entry(fmt.Sprintf("%032x", i), fmt.Sprintf("%d%s", i, test.ticket), 0, 0))
			b.Entries[i].Namespace = long[:63]
		}
		var busy *quota.BusyError
		if err := quota.Open(b).Reserve(reservation("a", 1, 0)); !errors.As(err, &busy) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestSumsDontOverflow(t *testing.T) {
	b := counted(quota.MaxAmount)
	for i := range quota.MaxEntries {
		b.Entries = append(b.Entries, entry(fmt.Sprint(i), fmt.Sprint(i), quota.MaxAmount, 0))
	}
	p := quota.Open(b)
	if p.Held() != quota.MaxAmount+1 || p.Bucket().Reserved != quota.MaxAmount || p.Bucket().Available != 0 {
		t.Errorf("held %d, reserved %d, available %d", p.Held(), p.Bucket().Reserved, p.Bucket().Available)
	}
	snapshot := quota.Snapshot{From: "101", To: "101", PolicyGeneration: 1, Tickets: slices.Values([]quota.Ticket{
		{UID: "a", Amount: quota.MaxAmount, Revision: "7"}, {UID: "b", Amount: quota.MaxAmount, Revision: "7"}, {UID: "c", Amount: quota.MaxAmount, Outlived: true, Revision: "7"},
	})}
	if err := p.Count(snapshot); err != nil || p.Bucket().Used != quota.MaxAmount || p.Bucket().Retained != quota.MaxAmount {
		t.Errorf("used %d, retained %d: %v", p.Bucket().Used, p.Bucket().Retained, err)
	}
}

func TestACountIsVoidAfterALaterOne(t *testing.T) {
	for revision, want := range map[string]bool{"99": false, "100": true, "1000": true, "": false, "x": false, "0100": false} {
		p := quota.Open(counted(3))
		err := p.Count(quota.Snapshot{From: revision, To: revision, PolicyGeneration: 1, Tickets: slices.Values([]quota.Ticket{{UID: "a", Amount: 1}})})
		var void *quota.VoidError
		if (err == nil) != want || revision == "99" && !errors.As(err, &void) || p.Changed() != want {
			t.Errorf("after revision 100, a count of %q: %v, changed %v", revision, err, p.Changed())
		}
	}
}

func TestACountIsWrittenOnlyIfItSaysSomethingNew(t *testing.T) {
	sample := seats(0)
	count := func(b *flightsv1.QuotaBucket, used int64) bool {
		p := quota.Open(b)
		if err := p.Count(quota.Snapshot{
			From: "150", To: "160", PolicyGeneration: 1, Sample: &sample, Tickets: slices.Values([]quota.Ticket{{UID: "a", Revision: "1", Amount: used}}),
		}); err != nil {
			t.Fatal(err)
		}
		return p.Changed()
	}
	if count(counted(3), 3) {
		t.Error("the same again was written")
	}
	if !count(counted(3), 4) {
		t.Error("another sum was not written")
	}
	if !count(counted(3, func(b *flightsv1.QuotaBucket) { b.Limit = 1 }), 3) {
		t.Error("another limit was not written")
	}
	if !count(counted(0, func(b *flightsv1.QuotaBucket) { b.CountedRevision = "" }), 0) {
		t.Error("the first count of an empty bucket was not written")
	}
	if !count(counted(3, func(b *flightsv1.QuotaBucket) { b.CountedGeneration = 0 }), 3) {
		t.Error("the first count of a generation was not written, and the bucket goes on being counted")
	}
}

func TestABucketSaysByWhichGenerationItWasCounted(t *testing.T) {
	p := quota.Open(counted(3))
	second := seats(4)
	second.PolicyGeneration = 2
	if err := p.Reserve(quota.Reservation{Claim: second, Nonce: "own", UID: "uid-a", Generation: 1}); err != nil {
		t.Fatal(err)
	}
	if p.CountedBy(2) || !p.CountedBy(1) {
		t.Error("a review of generation 2 made a count of it")
	}
	p.Stamp(3)
	if p.CountedBy(2) {
		t.Error("a stamp made a count")
	}
	if err := p.Count(quota.Snapshot{From: "101", To: "101", PolicyGeneration: 3, Tickets: slices.Values([]quota.Ticket(nil))}); err != nil {
		t.Fatal(err)
	}
	if !p.CountedBy(3) || p.CountedBy(4) {
		t.Errorf("after the count of generation 3 it says %d", p.Bucket().CountedGeneration)
	}
}

func TestNothingIsRetainedBesideAnEntryOfANamesake(t *testing.T) {
	leaving := quota.Ticket{
		Name: types.NamespacedName{Namespace: "team", Name: "a"}, UID: "earlier", Generation: 2, Revision: "7", Amount: 4, Outlived: true,
	}
	count := func(p *quota.Page) {
		t.Helper()
		if err := p.Count(quota.Snapshot{From: "101", To: "101", PolicyGeneration: 1, Tickets: slices.Values([]quota.Ticket{leaving})}); err != nil {
			t.Fatal(err)
		}
	}
	p := quota.Open(counted(4, entries(entry("x", "a", 4, 0))))
	if count(p); p.Held() != 4 || quota.Departed(p.Bucket(), "earlier") {
		t.Errorf("held %d, of which %d are retained", p.Held(), p.Bucket().Retained)
	}
	p.Release("x")
	if count(p); p.Held() != 4 || !quota.Departed(p.Bucket(), "earlier") {
		t.Errorf("once the entry is gone: held %d, of which %d are retained", p.Held(), p.Bucket().Retained)
	}
}

func TestAFloorMakesACountBeWrittenThatSaysTheSame(t *testing.T) {
	for floor, want := range map[string]bool{"": false, "99": false, "100": false, "101": true, "150": true, "151": false} {
		p := quota.Open(counted(3))
		if err := p.Count(quota.Snapshot{
			From: "150", To: "150", Floor: floor, PolicyGeneration: 1, Tickets: slices.Values([]quota.Ticket{{UID: "a", Amount: 3, Revision: "7"}}),
		}); err != nil {
			t.Fatal(err)
		}
		if p.Changed() != want {
			t.Errorf("floor %q over a count of revision 100: written %v", floor, p.Changed())
		}
	}
}

func TestAnEntryMadeAtBookingGoesOnceItsTicketClaimsAsMuch(t *testing.T) {
	for amount, want := range map[int64]int{0: 1, 3: 1, 4: 0, 5: 0} {
		for stage, entriesLeft := range map[bool]int{true: want, false: 0} {
			p := quota.Open(counted(0, entries(entry("x", "a", 4, 0))))
			if err := p.Count(quota.Snapshot{
				From: "150", To: "150", PolicyGeneration: 1, AtBooking: stage, Tickets: slices.Values([]quota.Ticket{{
					Name: types.NamespacedName{Namespace: "team", Name: "a"}, UID: "uid-a", Generation: 1, Amount: amount, Revision: "7",
				}}),
			}); err != nil {
				t.Fatal(err)
			}
			if got := len(p.Bucket().Entries); got != entriesLeft {
				t.Errorf("reserved 4 at booking %v, the ticket claims %d: %d entries are left", stage, amount, got)
			}
		}
	}
}

func TestWhenABucketMayGo(t *testing.T) {
	now := time.Date(2027, 4, 2, 0, 0, 0, 0, time.UTC)
	ended := func(ago time.Duration) func(*flightsv1.QuotaBucket) {
		return func(b *flightsv1.QuotaBucket) { b.Resets = &metav1.Time{Time: now.Add(-ago)} }
	}
	retained := func(b *flightsv1.QuotaBucket) { b.Retained = 2 }
	for _, test := range []struct {
		name   string
		bucket *flightsv1.QuotaBucket
		want   bool
	}{
		{"empty, without a window", counted(0), true},
		{"in use", counted(1), false},
		{"with an entry", counted(0, entries(entry("x", "a", 0, 0))), false},
		{"with a departure", counted(0, func(b *flightsv1.QuotaBucket) { b.Departures = []flightsv1.QuotaDeparture{{UID: "a"}} }), false},
		{"never counted", counted(0, func(b *flightsv1.QuotaBucket) { b.CountedRevision = "" }), false},
		{"with something retained for good", counted(0, retained), false},
		{"with a window that is open", counted(0, ended(-time.Hour)), false},
		{"with a window that has just ended", counted(0, retained, ended(23*time.Hour)), false},
		{"with a window that ended a day ago", counted(0, retained, ended(24*time.Hour)), true},
		{"in use after its window", counted(1, ended(48*time.Hour)), false},
	} {
		if got := quota.Open(test.bucket).Removable(now); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func TestABucketThatIsWrittenHasItsFinalizerUnlessItIsGoing(t *testing.T) {
	for what, want := range map[string]int{"is there": 1, "is missing": 1, "is missing from one that is being deleted": 0} {
		b := counted(0)
		if what != "is there" {
			b.Finalizers = nil
		}
		if want == 0 {
			b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		if got := quota.Open(b).Bucket().Finalizers; len(got) != want {
			t.Errorf("the finalizer %s: %v", what, got)
		}
	}
}

func TestAges(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	first, second := entry("first", "a", 1, 0), entry("second", "b", 1, 0)
	both := []flightsv1.QuotaEntry{first, second}
	ages := quota.Ages(nil).See(both[:1], at(0)).See(both, at(50))
	if got := ages.Overdue(both, at(91), 90*time.Second); len(got) != 1 || got[0].Nonce != "first" {
		t.Errorf("overdue at 91 s: %v", got)
	}
	if got := ages.Overdue(both, at(90), 90*time.Second); len(got) != 0 {
		t.Errorf("overdue at 90 s: %v", got)
	}
	if wait, some := ages.Next(at(60), 90*time.Second); !some || wait != 30*time.Second {
		t.Errorf("the next look is in %v", wait)
	}
	if wait, some := ages.Next(at(500), 90*time.Second); !some || wait != 0 {
		t.Errorf("what is overdue is looked at in %v", wait)
	}
	// An entry that went and came back would be another review's: it starts again.
	ages = ages.See(both[1:], at(60)).See(both, at(70))
	if got := ages.Overdue(both, at(150), 90*time.Second); len(got) != 1 || got[0].Nonce != "second" {
		t.Errorf("overdue at 150 s: %v", got)
	}
	if _, some := ages.See(nil, at(99)).Next(at(99), time.Second); some {
		t.Error("there is something to wait for with no entry")
	}
	for _, test := range []struct {
		uid        types.UID
		generation int64
		want       bool
	}{{first.UID, 1, true}, {first.UID, 2, true}, {first.UID, 0, false}, {"another", 2, false}} {
		if got := quota.Stored(first, test.uid, test.generation); got != test.want {
			t.Errorf("a ticket of UID %s at generation %d: %v", test.uid, test.generation, got)
		}
	}
}
