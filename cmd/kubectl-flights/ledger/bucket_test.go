package ledger

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

var now = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// bucketOf is a bucket that was counted, of the policy that owner makes.
func bucketOf(limit, used, reserved, retained int64) *flightsv1.QuotaBucket {
	return &flightsv1.QuotaBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "bucket"},
		Policy:     "team-seats", PolicyUID: "p-1", PolicyGeneration: 2, Scope: flightsv1.QuotaScopeNamespace, Key: "2027-03",
		Limit: limit, Used: used, Reserved: reserved, Retained: retained, Available: max(0, limit-used-reserved-retained),
		CountedRevision: "7", CountedGeneration: 2,
	}
}

func owner(generation int64) Policies {
	return Policies{"team-seats": {ObjectMeta: metav1.ObjectMeta{Name: "team-seats", UID: "p-1", Generation: generation}}}
}

func TestABarShowsEachPartThatIsNotZero(t *testing.T) {
	for name, c := range map[string]struct {
		bucket *flightsv1.QuotaBucket
		want   string
	}{
		"nothing is taken":                   {bucketOf(20, 0, 0, 0), "[....................]"},
		"half":                               {bucketOf(20, 10, 0, 0), "[##########..........]"},
		"each part":                          {bucketOf(20, 8, 4, 2), "[########++++==......]"},
		"full":                               {bucketOf(20, 18, 2, 0), "[##################++]"},
		"one of very many is seen":           {bucketOf(1<<53, 1, 1, 1), "[#+=.................]"},
		"what is left of very much is seen":  {bucketOf(1<<53, 1<<53-3, 1, 1), "[#################+=.]"},
		"over the limit there is no room":    {bucketOf(5, 6, 2, 0), "[###############+++++]"},
		"a limit of nothing, and none taken": {bucketOf(0, 0, 0, 0), "[                    ]"},
		"a limit of nothing, and some taken": {bucketOf(0, 1, 0, 0), "[####################]"},
		"the largest numbers that there are": {bucketOf(1<<53, 1<<53, 1<<53, 1<<53), "[#######+++++++======]"},
		"less than a character of each":      {bucketOf(7, 3, 0, 2), "[########======......]"},
	} {
		if got := bar(c.bucket); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestColourChangesNothingButColours(t *testing.T) {
	text := "KEY   " + legend + "\n[a+b] " + bar(bucketOf(20, 8, 4, 2)) + "\n"
	coloured := Colour(text)
	want := "[\x1b[34m########\x1b[0m\x1b[33m++++\x1b[0m\x1b[35m==\x1b[0m\x1b[2m......\x1b[0m]\n"
	if !strings.HasSuffix(coloured, "\n[a+b] "+want) || !strings.HasPrefix(coloured, "KEY   "+legend+"\n") {
		t.Errorf("%q", coloured)
	}
}

func TestTheStateOfABucket(t *testing.T) {
	uncounted, earlier := bucketOf(20, 0, 2, 0), bucketOf(20, 9, 2, 0)
	uncounted.CountedRevision, uncounted.CountedGeneration = "", 0
	earlier.CountedGeneration = 1
	for name, c := range map[string]struct {
		bucket   *flightsv1.QuotaBucket
		policies Policies
		want     string
	}{
		"room":                                 {bucketOf(20, 9, 2, 0), owner(2), StateOpen},
		"room, and the policy may not be read": {bucketOf(20, 9, 2, 0), nil, StateOpen},
		"no room":                              {bucketOf(20, 9, 2, 9), owner(2), StateFull},
		"a limit of nothing":                   {bucketOf(0, 0, 0, 0), owner(2), StateFull},
		"a limit that was lowered":             {bucketOf(5, 9, 2, 0), owner(2), StateOverLimit},
		"never counted":                        {uncounted, owner(2), StateCounting},
		"never counted, as the bucket itself says": {uncounted, nil, StateCounting},
		"counted by an earlier generation":         {earlier, nil, StateCounting},
		"untouched since the policy changed":       {bucketOf(5, 9, 2, 0), owner(3), "Counting,OverLimit"},
		"a policy that was deleted":                {bucketOf(20, 9, 2, 0), Policies{}, StatePolicyGone},
		"a policy that was made anew": {bucketOf(20, 9, 2, 0), Policies{"team-seats": {
			ObjectMeta: metav1.ObjectMeta{Name: "team-seats", UID: "p-2", Generation: 1},
		}}, StatePolicyGone},
	} {
		if got := c.policies.State(c.bucket); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestTheFullestBucketIsTheFirst(t *testing.T) {
	named := func(key string, b *flightsv1.QuotaBucket) flightsv1.QuotaBucket {
		b.Key = key
		return *b
	}
	buckets := []flightsv1.QuotaBucket{
		named("e empty", bucketOf(10, 0, 0, 0)), named("d half, by key", bucketOf(20, 5, 3, 2)), named("c half", bucketOf(10, 5, 0, 0)),
		named("b full of nothing", bucketOf(0, 0, 0, 0)), named("a over", bucketOf(10, 11, 0, 0)),
	}
	Sort(buckets)
	var got []string
	for _, b := range buckets {
		got = append(got, b.Key)
	}
	if diff := cmp.Diff([]string{"a over", "b full of nothing", "c half", "d half, by key", "e empty"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAWindowEndsInSomeTimeAndAtADateInUTC(t *testing.T) {
	for name, c := range map[string]struct {
		at   time.Time
		want string
	}{
		"none":            {time.Time{}, "never"},
		"a month":         {time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC), "in 30d (2027-04-01)"},
		"at an hour":      {time.Date(2027, 3, 1, 12, 30, 0, 0, time.UTC), "in 3h30m (2027-03-01 12:30)"},
		"in another zone": {time.Date(2027, 4, 1, 2, 0, 0, 0, time.FixedZone("", 7200)), "in 30d (2027-04-01)"},
		"over":            {time.Date(2027, 2, 28, 0, 0, 0, 0, time.UTC), "33h ago (2027-02-28)"},
	} {
		b := bucketOf(20, 9, 2, 0)
		if !c.at.IsZero() {
			b.Resets = &metav1.Time{Time: c.at}
		}
		if got := resets(b, now); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestATableHasARowForEachBucket(t *testing.T) {
	own, shared := *bucketOf(20, 8, 4, 2), *bucketOf(5, 6, 0, 0)
	shared.Namespace, shared.Scope, shared.Policy = "flight-operator-system", flightsv1.QuotaScopeCluster, "gone"
	table := Table([]flightsv1.QuotaBucket{own, shared}, owner(2), now)
	want := [][]any{
		{"team-a", "team-seats", "2027-03", int64(8), int64(4), int64(20), int64(6), "never", StateOpen, "[########++++==......]"},
		{clusterWide, "gone", "2027-03", int64(6), int64(0), int64(5), int64(0), "never", StatePolicyGone, "[####################]"},
	}
	var got [][]any
	for _, row := range table.Rows {
		got = append(got, row.Cells)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, row := range got {
		if len(row) != len(table.ColumnDefinitions) {
			t.Errorf("%d cells for %d columns", len(row), len(table.ColumnDefinitions))
		}
	}
}

func TestPolicyNamesAreToldOnceEach(t *testing.T) {
	other := *bucketOf(20, 8, 4, 2)
	other.Policy = "budget"
	got := PolicyNames([]flightsv1.QuotaBucket{*bucketOf(1, 0, 0, 0), other, *bucketOf(2, 0, 0, 0)})
	if diff := cmp.Diff([]string{"budget", "team-seats"}, got); diff != "" {
		t.Error(diff)
	}
}

// The bar and the state count what is taken as the ledger does.
func TestWhatIsTakenIsWhatTheLedgerHolds(t *testing.T) {
	b := bucketOf(20, 8, 0, 2)
	b.Entries = []flightsv1.QuotaEntry{{Nonce: "n", Namespace: "team-a", Name: "trip", UID: "u", Generation: 1, PolicyGeneration: 2, Amount: 5, Settled: 1}}
	page := quota.Open(b)
	if written := page.Bucket(); Taken(written) != page.Held() {
		t.Errorf("%d is taken and %d held", Taken(written), page.Held())
	}
}
