package policy

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/places"
)

// regoPolicy is an enforced policy with a module of its own.
func regoPolicy(name, rego string) *flightsv1.FlightPolicy {
	return &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-" + "policy", Generation: 1},
		Spec:       flightsv1.FlightPolicySpec{Rego: rego, Enforcement: flightsv1.EnforcementEnforce},
	}
}

func withParameters(p *flightsv1.FlightPolicy, raw string) *flightsv1.FlightPolicy {
	p.Spec.Parameters = &apiextensionsv1.JSON{Raw: []byte(raw)}
	return p
}

// request is a create of the ticket Mumbai to London for two.
func request() Request {
	return Request{
		Stage: StageAdmission, Operation: flightsv1.OperationCreate,
		User:      User{Username: "asha", Groups: []string{"system:authenticated"}},
		Namespace: Namespace{Name: "travel", Labels: map[string]string{"team": "blue"}},
		Ticket: &flightsv1.FlightTicket{
			ObjectMeta: metav1.ObjectMeta{Name: "my-flight-ticket", Namespace: "travel"},
			Spec:       flightsv1.FlightTicketSpec{From: "Mumbai", To: "London", Number: 2},
		},
		Route: mumbaiLondon(),
		Now:   time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC),
	}
}

func mumbaiLondon() places.Route {
	return places.Route{
		Origin: places.Place{Text: "Mumbai", Kind: places.KindAirport, IATA: "BOM", Airports: []string{"BOM"}, City: "Mumbai", Country: "IN"},
		Destination: places.Place{Text: "London", Kind: places.KindCity, IATA: "LON",
			Airports: []string{"LCY", "LGW", "LHR", "LTN", "SEN", "STN"}, City: "London", Country: "GB"},
		DistanceKm: 7200, International: true,
	}
}

func TestEngineDecides(t *testing.T) {
	e := NewEngine()
	p := regoPolicy("seats", "")
	p.Spec.Library = "seats-per-ticket"
	if err := e.Set(t.Context(), withParameters(p, `{"max": 1}`)); err != nil {
		t.Fatal(err)
	}
	d, err := e.Decide(t.Context(), request())
	t.Log(d, err)
	if d.Allowed() || err != nil {
		t.Fatal("allowed")
	}
	for _, rego := range []string{
		"package a\ndeny contains \"x\" if input.ticket.spec.fom == \"x\"\n",
		"package a\ndeny contains \"x\" if http.send({})\n",
		"package a\ndeny contains \"x\" if input.parameters.foo\n",
		"package a\ndeny contains \"x\" if input.ticket.spec.number > 5\ndenny contains \"y\" if true\ndeny contains $\"a {input.ticket.spec.cabin}\" if { x := [1]; some i; x[i] == 3 }",
	} {
		t.Log(Validate(t.Context(), regoPolicy("p", rego)))
	}
}
