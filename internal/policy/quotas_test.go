package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
	"github.com/flight-operator/flight-operator/internal/places"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// seatsQuota claims the seats of a ticket for its namespace.
const seatsQuota = `package a

quota contains {"key": "seats", "scope": "Namespace", "amount": input.ticket.spec.number, "limit": 10}
`

func TestDecideTellsWhatATicketClaims(t *testing.T) {
	e := NewEngine(RuleQuota)
	mustSet(t, e, regoPolicy("b", `package b

quota contains {
	"key": "2027-03", "scope": "Cluster", "amount": n, "limit": 9007199254740992,
	"resets": "2027-04-01T00:00:00+02:00", "retain": true, "warn_at": 5,
} if some n in [3, 1.0, 2e2]

quota contains {"key": "other", "scope": "Cluster", "amount": 0, "limit": 0}
`))
	mustSet(t, e, warning(regoPolicy("w", seatsQuota)))
	mustSet(t, e, regoPolicy("none", denyMany))
	d := decide(t, e, request())
	resets := time.Date(2027, 3, 31, 22, 0, 0, 0, time.UTC)
	want := []quota.Claim{
		{Policy: "b", PolicyUID: "uid-of-policy", PolicyGeneration: 1, Key: "2027-03", Scope: quota.Cluster,
			Amount: 204, Limit: 1 << 53, Resets: resets, Retain: true, WarnAt: 5},
		{Policy: "b", PolicyUID: "uid-of-policy", PolicyGeneration: 1, Key: "other", Scope: quota.Cluster},
	}
	sortClaims(want)
	if diff := cmp.Diff(want, d.Claims); diff != "" {
		t.Error(diff)
	}
	warned := []quota.Claim{{Policy: "w", PolicyUID: "uid-of-policy", PolicyGeneration: 1, Key: "seats", Scope: quota.Namespace, Amount: 2, Limit: 10}}
	if diff := cmp.Diff(warned, d.WarnClaims); diff != "" {
		t.Error(diff)
	}
	if len(d.BookingClaims)+len(d.OldClaims) != 0 {
		t.Errorf("got %+v", d)
	}
}

func TestQuotasMaySeeWhatStaysWithTheTicket(t *testing.T) {
	rego := `package a

quota contains {"key": sprintf("%s %s", [spec.from, name]), "scope": "Cluster", "amount": seats(spec), "limit": 10} if {
	some name in [input.ticket.metadata.name, input.ticket.metadata.namespace, input.requester, input.namespace.name, input.route.origin.city]
	every p in spec.passengers { p.givenName != "x" }
	not input.ticket.spec.suspend
	object.get(input.ticket.spec, ["maxPrice", "minor"], 0) < 1000000
}

spec := input.ticket.spec

seats(s) := s.number

deny contains "late" if input.now > "2099"

deny contains sprintf("not you, %s", [input.user.username]) if seats(input.ticket.spec) > 3 with input.ticket as input.oldTicket
`
	if err := NewEngine(RuleQuota).Validate(t.Context(), regoPolicy("a", rego)); err != nil {
		t.Error(err)
	}
}

func TestAnEngineRefusesRulesThatItsProgramDoesNotActOn(t *testing.T) {
	const want = "spec.rego:3:1: the rule quota isn't supported by this version: there are deny and warn"
	if err := validate(t.Context(), regoPolicy("a", seatsQuota)); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	e := NewEngine()
	if err := e.Set(t.Context(), regoPolicy("a", seatsQuota)); err == nil {
		t.Error("it is taken")
	}
	if d := decide(t, e, request()); d.Allowed() {
		t.Error("a quota that nobody keeps admits")
	}
	if len(e.Quotas()) != 0 {
		t.Error("a policy that doesn't compile is counted")
	}
}

func TestAQuotaMatchesByWhatStaysWithTheTicket(t *testing.T) {
	p := regoPolicy("a", seatsQuota)
	p.Spec.Match = flightsv1.PolicyMatch{
		Namespaces: []string{"travel"}, ExcludedNamespaces: []string{"x"},
		Operations:        []flightsv1.Operation{flightsv1.OperationCreate},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}},
	}
	const why = ": a policy with a quota counts all stored tickets, by what can't change while a ticket stays as it is: " +
		"limit it by namespaces and excludedNamespaces alone, or in Rego by the ticket's spec"
	want := "spec.match.namespaceSelector" + why + "\nspec.match.operations" + why
	if diff := cmp.Diff(want, fmt.Sprint(NewEngine(RuleQuota).Validate(t.Context(), p))); diff != "" {
		t.Error(diff)
	}
}

func TestQuotasConcernTheNamespacesThatTheyMatch(t *testing.T) {
	e := NewEngine(RuleQuota)
	for name, namespace := range map[string]string{"here": "travel", "there": "other"} {
		p := regoPolicy(name, seatsQuota)
		p.Spec.Match.Namespaces = []string{namespace}
		mustSet(t, e, p)
	}
	if got := claimsOf(t, e, request().Ticket, nil); len(got) != 1 || got[0].Policy != "here" {
		t.Errorf("got %+v", got)
	}
}

// claimsOf is what the counting controller computes of a stored ticket: of all policies that enforce, sorted by bucket.
func claimsOf(t *testing.T, e *Engine, ticket *flightsv1.FlightTicket, offer *booking.Offer) []quota.Claim {
	t.Helper()
	h, err := NewHolding(ticket, offer)
	if err != nil {
		t.Fatal(err)
	}
	return claimsIn(t, e, h)
}

// claimsIn are the claims of all policies on what a ticket holds.
func claimsIn(t *testing.T, e *Engine, h Holding) []quota.Claim {
	t.Helper()
	var all []quota.Claim
	for _, q := range e.Quotas() {
		claims, err := q.Claims(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, claims...)
	}
	sortClaims(all)
	return all
}

// quotaEngine holds every shipped quota.
func quotaEngine(tb testing.TB) *Engine {
	tb.Helper()
	e := NewEngine(RuleQuota)
	for _, name := range Library() {
		if strings.HasPrefix(name, "quota-") {
			p := libraryPolicy(name)
			p.UID = "uid-of-" + p.UID
			mustSet(tb, e, p)
		}
	}
	return e
}

// The same tickets claim the same, at admission by anybody at any time with any labels, and from the stored ticket.
func TestWhatIsCountedIsWhatWasAdmitted(t *testing.T) {
	e := quotaEngine(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	claimed := map[string]bool{}
	for range 200 {
		r := request()
		r.Ticket = randomTicket(random, pick)
		route, err := places.Resolve(r.Ticket.Spec.From, r.Ticket.Spec.To)
		if err != nil {
			t.Fatal(err)
		}
		r.Route = route
		var first []quota.Claim
		for n := range 3 {
			r.User.Username, r.Operation = pick("asha", "boss"), flightsv1.Operation(pick("CREATE", "UPDATE"))
			r.Namespace.Labels = map[string]string{"team": pick("red", "blue")}
			r.Ticket.Labels = map[string]string{"x": pick("1", "2", "3")}
			r.Now, r.DryRun = r.Now.Add(time.Duration(random.IntN(1000))*time.Hour), random.IntN(2) == 0
			d := decide(t, e, r)
			if n == 0 {
				first = d.Claims
			}
			if diff := cmp.Diff(first, d.Claims); diff != "" {
				t.Fatalf("claims depend on who asks, or when: %s", diff)
			}
		}
		if diff := cmp.Diff(first, claimsOf(t, e, r.Ticket, nil)); diff != "" {
			t.Fatalf("%+v\nis counted as something else than was admitted: %s", r.Ticket.Spec, diff)
		}
		for _, c := range first {
			claimed[c.Policy] = true
		}
		offer := randomOffer(random, pick)
		r.Stage, r.Offer = StageBooking, &offer
		d := decide(t, e, r)
		all := slices.Concat(d.Claims, d.BookingClaims)
		sortClaims(all)
		if diff := cmp.Diff(all, claimsOf(t, e, r.Ticket, &offer)); diff != "" {
			t.Fatalf("with an offer: %s", diff)
		}
		if diff := cmp.Diff(all, claimsOf(t, e, stored(t, taking(r.Ticket, offer)), nil)); diff != "" {
			t.Fatalf("once the offer is taken: %s", diff)
		}
		for _, c := range first {
			if !slices.ContainsFunc(all, func(other quota.Claim) bool { return other.Bucket() == c.Bucket() && other.Amount >= c.Amount }) {
				t.Fatalf("the offer takes away what is claimed at admission: %+v", c)
			}
		}
	}
	if len(claimed) != 4 {
		t.Errorf("only %v claimed anything at admission", claimed)
	}
}

func randomTicket(random *rand.Rand, pick func(...string) string) *flightsv1.FlightTicket {
	ticket := &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{
			Name: pick("a", "b"), Namespace: pick("travel", "other"), UID: "1", Generation: int64(random.IntN(3)),
			CreationTimestamp: metav1.NewTime(time.Date(2027, time.Month(1+random.IntN(12)), 1, 9, 0, 0, 0, time.UTC)),
			Annotations:       map[string]string{flightsv1.RequestedByAnnotation: pick("", "asha", "boss", strings.Repeat("x", 300))},
		},
		Spec: flightsv1.FlightTicketSpec{
			From: pick("Mumbai", "BOM", "XXX"), To: pick("London", "LHR", "JFK"), Number: int32(random.IntN(6)),
			DepartureDate: flightsv1.Date(pick("", "2027-12-31", "2028-02-29")), CostCenter: pick("", "4711", "none"),
		},
	}
	if ticket.Spec.DepartureDate != "" {
		ticket.Spec.ReturnDate = flightsv1.Date(pick("", "2028-03-05"))
	}
	if random.IntN(2) == 0 {
		ticket.Spec.MaxPrice = &flightsv1.Money{Amount: pick("1200", "99.50"), Currency: pick("EUR", "USD")}
	}
	return ticket
}

func randomOffer(random *rand.Rand, pick func(...string) string) booking.Offer {
	o := booking.Offer{ID: pick("1", "2"), Price: money.Amount{Minor: int64(random.IntN(1000)), Currency: "EUR"}}
	for range random.IntN(3) {
		o.Segments = append(o.Segments, booking.Segment{
			MarketingCarrier: pick("BA", "AI", ""), FlightNumber: pick("BA138", "AI130", ""),
			DepartsAt: time.Date(2027, 12, 31, random.IntN(24), 0, 0, 0, time.UTC),
		})
	}
	return o
}

func TestAQuotaThatNeedsAnOfferClaimsAtBooking(t *testing.T) {
	e := NewEngine(RuleQuota)
	mustSet(t, e, libraryPolicy("quota-travellers-per-flight"))
	r := request()
	if d := decide(t, e, r); !d.Allowed() || len(d.Claims)+len(d.BookingClaims) != 0 {
		t.Errorf("at admission: %+v", d)
	}
	r.Stage = StageBooking
	r.Offer = &booking.Offer{Segments: []booking.Segment{{MarketingCarrier: "BA", FlightNumber: "BA138", DepartsAt: time.Date(2027, 12, 31, 8, 0, 0, 0, time.UTC)}}}
	d := decide(t, e, r)
	if len(d.BookingClaims) != 1 || d.BookingClaims[0].Key != "BA BA138 2027-12-31" || d.BookingClaims[0].Amount != 2 || len(d.Claims) != 0 {
		t.Errorf("at booking: %+v", d)
	}
	if q := e.Quotas(); len(q) != 1 || q[0].Stage() != StageBooking {
		t.Errorf("got %+v", q)
	}
}

func TestAnUpdateTellsWhatTheOldTicketHolds(t *testing.T) {
	e := NewEngine(RuleQuota)
	mustSet(t, e, regoPolicy("a", seatsQuota))
	mustSet(t, e, warning(regoPolicy("w", strings.Replace(seatsQuota, `"seats"`, `"warned"`, 1))))
	r := request()
	r.Operation, r.OldTicket = flightsv1.OperationUpdate, r.Ticket.DeepCopy()
	r.Ticket.Spec.Number = 5
	d := decide(t, e, r)
	if len(d.Claims) != 1 || d.Claims[0].Amount != 5 || len(d.WarnClaims) != 1 || d.WarnClaims[0].Amount != 5 {
		t.Errorf("claims %+v", d)
	}
	if len(d.OldClaims) != 2 || d.OldClaims[0].Amount != 2 || d.OldClaims[1].Amount != 2 {
		t.Errorf("old claims %+v", d.OldClaims)
	}
	r.OldTicket.Spec.MaxPrice = &flightsv1.Money{Amount: "none", Currency: "EUR"}
	if d := decide(t, e, r); len(d.Claims) != 1 || len(d.OldClaims) != 0 {
		t.Errorf("an old ticket that can't be read: %+v", d)
	}
}

func TestAQuotaStaysWhatItIsWhenItsPolicyChanges(t *testing.T) {
	e := NewEngine(RuleQuota)
	mustSet(t, e, regoPolicy("a", seatsQuota))
	before := e.Quotas()[0]
	update := regoPolicy("a", strings.Replace(seatsQuota, `"limit": 10`, `"limit": 7`, 1))
	update.Generation = 2
	mustSet(t, e, update)
	h, err := NewHolding(request().Ticket, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range []Quota{before, e.Quotas()[0]} {
		claims, err := q.Claims(t.Context(), h)
		if err != nil || claims[0].Limit != []int64{10, 7}[i] || claims[0].PolicyGeneration != int64(i+1) || q.PolicyGeneration() != int64(i+1) {
			t.Errorf("got %+v, %v", claims, err)
		}
	}
	if before.PolicyUID() != update.UID || before.Stage() != StageAdmission {
		t.Errorf("got %v at %v", before.PolicyUID(), before.Stage())
	}
}

func BenchmarkClaims(b *testing.B) {
	e := quotaEngine(b)
	ticket := fullTicket()
	quotas := e.Quotas()
	if _, err := NewHolding(ticket, nil); err != nil { // reads the table of places
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		h, err := NewHolding(ticket, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, q := range quotas {
			if _, err := q.Claims(b.Context(), h); err != nil {
				b.Fatal(err)
			}
		}
	}
}
