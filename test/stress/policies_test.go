package stress

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/test/stress/history"
)

// The quotas of the race.
const (
	seatsPolicy = "stress-seats" // seats a cost centre, over the whole cluster
	monthPolicy = "stress-month" // seats a namespace and month
	keptPolicy  = "stress-kept"  // seats that stay taken when their ticket goes
)

// The cost centres by which the quotas tell tickets.
const (
	hotPrefix, coldPrefix, keptPrefix = "hot-", "cold-", "kept-"

	hotKeys, coldKeys, keptKeys = 5, 17, 4
	raceNamespaces, raceMonths  = 8, 3 // 24 buckets, 50 in all
)

const seatsRego = `# METADATA
# custom:
#   parameters:
#     type: object
#     required: [book, hot, cold]
#     properties:
#       book: {type: string}
#       hot: {type: integer}
#       cold: {type: integer}
package stress.seats

quota contains {
	"key": concat("/", [input.parameters.book, input.ticket.spec.costCenter]),
	"scope": "Cluster",
	"amount": input.ticket.spec.number,
	"limit": limit,
} if {
	input.ticket.spec.costCenter
	not startswith(input.ticket.spec.costCenter, "kept-")
}

limit := input.parameters.hot if startswith(input.ticket.spec.costCenter, "hot-")

else := input.parameters.cold
`

const keptRego = `# METADATA
# custom:
#   parameters:
#     type: object
#     required: [max]
#     properties:
#       max: {type: integer}
package stress.kept

quota contains {
	"key": input.ticket.spec.costCenter,
	"scope": "Cluster",
	"amount": input.ticket.spec.number,
	"limit": input.parameters.max,
	"retain": true,
} if startswith(input.ticket.spec.costCenter, "kept-")
`

// limits are the parameters of the quotas, as policies have them.
type limits struct {
	Book string `json:"book,omitempty"`
	Hot  int64  `json:"hot,omitempty"`
	Cold int64  `json:"cold,omitempty"`
	Max  int64  `json:"max,omitempty"`
}

func (l limits) raw() *apiextensionsv1.JSON {
	text, _ := json.Marshal(l) // of numbers and texts alone
	return &apiextensionsv1.JSON{Raw: text}
}

// seatsAtFirst are the limits of the seats' policy before anybody changes them.
func seatsAtFirst() limits { return limits{Book: "a", Hot: 200, Cold: 80} }

// racePolicies are the three quotas, for the race's namespaces alone.
func racePolicies() []*flightsv1.FlightPolicy {
	match := flightsv1.PolicyMatch{Namespaces: []string{racePrefix + "*"}}
	policy := func(name string, spec flightsv1.FlightPolicySpec) *flightsv1.FlightPolicy {
		spec.Match = match
		return &flightsv1.FlightPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	return []*flightsv1.FlightPolicy{
		policy(seatsPolicy, flightsv1.FlightPolicySpec{Rego: seatsRego, Parameters: seatsAtFirst().raw()}),
		policy(monthPolicy, flightsv1.FlightPolicySpec{Library: "quota-seats-per-namespace-month", Parameters: limits{Max: 250}.raw()}),
		policy(keptPolicy, flightsv1.FlightPolicySpec{Rego: keptRego, Parameters: limits{Max: 400}.raw()}),
	}
}

// claimsOf says what a policy of the race charges, written anew and not asked of the engine; nil for other policies.
func claimsOf(p *flightsv1.FlightPolicy) func(history.Ticket, history.Form) []history.Claim {
	var l limits
	if p.Spec.Parameters != nil {
		_ = json.Unmarshal(p.Spec.Parameters.Raw, &l) // the API server has checked it
	}
	one := func(place history.Place, f history.Form, limit int64, retain bool) []history.Claim {
		return []history.Claim{{Place: place, Amount: f.Seats, Limit: limit, Retain: retain}}
	}
	concerns := func(t history.Ticket) bool { return strings.HasPrefix(t.Namespace, racePrefix) }
	switch p.Name {
	case seatsPolicy:
		return func(t history.Ticket, f history.Form) []history.Claim {
			if !concerns(t) || t.CostCenter == "" || strings.HasPrefix(t.CostCenter, keptPrefix) {
				return nil
			}
			limit := l.Cold
			if strings.HasPrefix(t.CostCenter, hotPrefix) {
				limit = l.Hot
			}
			return one(history.Place{Key: l.Book + "/" + t.CostCenter}, f, limit, false)
		}
	case monthPolicy:
		return func(t history.Ticket, f history.Form) []history.Claim {
			if !concerns(t) {
				return nil
			}
			return one(history.Place{Namespace: t.Namespace, Key: f.Month}, f, l.Max, false)
		}
	case keptPolicy:
		return func(t history.Ticket, f history.Form) []history.Claim {
			if !concerns(t) || !strings.HasPrefix(t.CostCenter, keptPrefix) {
				return nil
			}
			return one(history.Place{Key: t.CostCenter}, f, l.Max, true)
		}
	}
	return nil
}

// apply creates the policies of all tests at once, for each takes as long as a request may live to come into force.
func (c *town) apply(ctx context.Context) error {
	for _, p := range append(racePolicies(), scenePolicies()...) {
		if err := c.house.Client.Create(ctx, p); err != nil {
			return fmt.Errorf("create policy %s: %w", p.Name, err)
		}
	}
	return nil
}

// await waits until policies hold.
func (c *town) await(t *testing.T, policies ...*flightsv1.FlightPolicy) {
	t.Helper()
	for _, p := range policies {
		if err := awaitInForce(t.Context(), c.house.Client, p.Name); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitInForce waits until a policy promises to hold.
func awaitInForce(ctx context.Context, admin client.WithWatch, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := "not there"
	for ctx.Err() == nil {
		events, err := admin.Watch(ctx, &flightsv1.FlightPolicyList{}, client.MatchingFields{"metadata.name": name})
		if err != nil {
			return fmt.Errorf("watch policy %s: %w", name, err)
		}
		for event := range events.ResultChan() {
			p, ok := event.Object.(*flightsv1.FlightPolicy)
			if ok && inForce(p) {
				events.Stop()
				return nil
			}
			if ok {
				last = fmt.Sprintf("generation %d, counted %d, conditions %v", p.Generation, p.Status.CountedGeneration, p.Status.Conditions)
			}
		}
		events.Stop()
	}
	return fmt.Errorf("policy %s doesn't come into force within %s; it was last: %s", name, patience, last)
}
