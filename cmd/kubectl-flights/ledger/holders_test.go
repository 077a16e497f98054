package ledger

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

const house = "flight-operator-system"

func claim(name string, amount int64) Claim {
	return Claim{types.NamespacedName{Namespace: "team-a", Name: name}, types.UID("u-" + name), amount}
}

func entry(name string, amount, settled int64) flightsv1.QuotaEntry {
	return flightsv1.QuotaEntry{Namespace: "team-a", Name: name, UID: types.UID("u-" + name), Amount: amount, Settled: settled}
}

func TestWhatHoldsABucketAddsUpToWhatIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		used, reserved, retained int64
		entries                  []flightsv1.QuotaEntry
		departed                 string
		claims                   []Claim
		want                     []Holder
		uncounted                int64
	}{
		"nothing": {},
		"counted tickets, by name": {
			used: 5, claims: []Claim{claim("b", 3), claim("a", 2), claim("free", 0)},
			want: []Holder{{"team-a/a", 2, "counted"}, {"team-a/b", 3, "counted"}},
		},
		"a new ticket in flight": {
			used: 2, reserved: 3, entries: []flightsv1.QuotaEntry{entry("b", 3, 0)}, claims: []Claim{claim("a", 2), claim("b", 3)},
			want: []Holder{{"team-a/b", 3, "in flight"}, {"team-a/a", 2, "counted"}},
		},
		"two edits of one ticket, of which the larger counts": {
			used: 2, reserved: 3, entries: []flightsv1.QuotaEntry{entry("b", 4, 2), entry("b", 5, 2), entry("b", 3, 2)}, claims: []Claim{claim("b", 2)},
			want: []Holder{{"team-a/b", 5, "in flight, 2 of it counted"}},
		},
		"an edit that is smaller than what is counted": {
			used: 4, entries: []flightsv1.QuotaEntry{entry("b", 3, 4)},
			want: []Holder{{"team-a/b", 4, "in flight, 4 of it counted"}},
		},
		"a ticket that is leaving is retained already": {
			used: 2, retained: 3, departed: "u-b", claims: []Claim{claim("a", 2), claim("b", 3)},
			want: []Holder{{"team-a/a", 2, "counted"}, {Gone, 3, "retained"}},
		},
		"tickets that can't be found out": {
			used: 7, reserved: 1, retained: 1, entries: []flightsv1.QuotaEntry{entry("b", 1, 0)}, claims: []Claim{claim("a", 2)},
			want: []Holder{{"team-a/b", 1, "in flight"}, {"team-a/a", 2, "counted"}, {Others, 5, "counted"}, {Gone, 1, "retained"}},
		},
		"tickets that are not counted yet": {
			used: 2, claims: []Claim{claim("a", 2), claim("b", 3)}, uncounted: 3,
			want: []Holder{{"team-a/a", 2, "counted"}, {"team-a/b", 3, "counted"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := bucketOf(20, c.used, c.reserved, c.retained)
			b.Entries = c.entries
			if c.departed != "" {
				b.Departures = []flightsv1.QuotaDeparture{{UID: types.UID(c.departed)}}
			}
			got, uncounted := Holders(b, c.claims)
			if diff := cmp.Diff(c.want, got); diff != "" || uncounted != c.uncounted {
				t.Errorf("%d uncounted; %s", uncounted, diff)
			}
			var sum int64
			for _, h := range got {
				sum += h.Amount
			}
			if sum != Taken(b)+uncounted {
				t.Errorf("they hold %d, and %d is taken", sum, Taken(b))
			}
		})
	}
}

// monthly counts seats by namespace and month.
func monthly(name string) *flightsv1.FlightPolicy {
	return &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("p-" + name), Generation: 2},
		Spec: flightsv1.FlightPolicySpec{
			Library: "quota-seats-per-namespace-month", Parameters: &apiextensionsv1.JSON{Raw: []byte(`{"max": 20}`)},
			Match: flightsv1.PolicyMatch{Namespaces: []string{"team-*"}},
		},
	}
}

func bucketUnder(p *flightsv1.FlightPolicy, key string, used int64) flightsv1.QuotaBucket {
	b := *bucketOf(20, used, 0, 0)
	b.Policy, b.PolicyUID, b.Key, b.Name = p.Name, p.UID, key, quota.BucketName(p.UID, quota.Namespace, key)
	return b
}

func seats(namespace, name string, number int32) *flightsv1.FlightTicket {
	return &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("u-" + name), Generation: 1},
		Spec: flightsv1.FlightTicketSpec{
			From: "Mumbai", To: "London", Number: number, DepartureDate: "2027-03-14",
			Passengers: []flightsv1.Passenger{{GivenName: "Secret", FamilyName: "Traveller"}},
		},
	}
}

func TestCountedTicketsAreWorkedOutFromThePolicy(t *testing.T) {
	p := monthly("team-seats")
	march, april := bucketUnder(p, "2027-03", 5), bucketUnder(p, "2027-04", 1)
	claims, err := NewClaims(t.Context(), []flightsv1.QuotaBucket{march, april}, Policies{p.Name: p}, house)
	if err != nil {
		t.Fatal(err)
	}
	for _, ticket := range []*flightsv1.FlightTicket{
		seats("team-a", "one", 2), seats("team-a", "two", 3), seats("team-b", "theirs", 4), seats("elsewhere", "unconcerned", 5),
	} {
		if err := claims.Add(t.Context(), ticket); err != nil {
			t.Fatal(err)
		}
	}
	table, problems := claims.Table([]flightsv1.QuotaBucket{march, april})
	want := [][]any{
		{"team-a", "team-seats", "2027-03", "team-a/one", int64(2), "counted"},
		{"team-a", "team-seats", "2027-03", "team-a/two", int64(3), "counted"},
		{"team-a", "team-seats", "2027-04", Others, int64(1), "counted"},
	}
	var got [][]any
	for _, row := range table.Rows {
		got = append(got, row.Cells)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("%v; %s", problems, diff)
	}
}

func TestWhatCannotBeWorkedOutIsSaidWithoutQuotingATicket(t *testing.T) {
	broken, asked, gone := monthly("broken"), monthly("asked"), monthly("gone")
	broken.Spec.Library = "there-is-none"
	buckets := []flightsv1.QuotaBucket{bucketUnder(broken, "2027-03", 1), bucketUnder(asked, "2027-03", 1), bucketUnder(gone, "2027-03", 1)}
	claims, err := NewClaims(t.Context(), buckets, Policies{"broken": broken, "asked": asked}, house)
	if err != nil {
		t.Fatal(err)
	}
	unreadable := seats("team-a", "odd", 1)
	unreadable.Spec.MaxPrice = &flightsv1.Money{Amount: "Traveller", Currency: "EUR"}
	for _, ticket := range []*flightsv1.FlightTicket{unreadable, seats("team-a", "one", 4)} {
		if err := claims.Add(t.Context(), ticket); err != nil {
			t.Fatal(err)
		}
	}
	_, problems := claims.Table(buckets)
	var said []string
	for _, problem := range problems {
		said = append(said, problem.Error())
	}
	text := strings.Join(said, "\n")
	for _, part := range []string{
		"policy broken doesn't compile", "policy asked can't be asked about 1 tickets, such as team-a/odd",
		`policy asked, key "2027-03": tickets claim 3 more than is counted so far`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not said: %s", part, text)
		}
	}
	if len(problems) != 3 || strings.Contains(text, "Traveller") {
		t.Errorf("it says %s", text)
	}
}

func TestWorkingOutClaimsEndsWithItsContext(t *testing.T) {
	p := monthly("team-seats")
	buckets := []flightsv1.QuotaBucket{bucketUnder(p, "2027-03", 1)}
	ctx, cancel := context.WithCancel(t.Context())
	claims, err := NewClaims(ctx, buckets, Policies{p.Name: p}, house)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := claims.Add(ctx, seats("team-a", "one", 2)); err == nil {
		t.Error("it goes on")
	}
	if _, err := NewClaims(ctx, buckets, Policies{p.Name: p}, house); err == nil {
		t.Error("it compiles")
	}
}
