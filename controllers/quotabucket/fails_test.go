package quotabucket

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// Whoever can store a ticket that a policy fails on must not decide by it over everybody's quota, nor be stuck with it.
func TestATicketThatAPolicyFailsOnHoldsUpNobodyAndMayGo(t *testing.T) {
	s := newScene(t)
	bad := &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "bad"},
		Spec:       flightsv1.FlightTicketSpec{From: "Mumbai", To: "Nowhere at all", Number: 1, CostCenter: "4711"},
	}
	if err := s.Create(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	s.hold(bad)
	s.ticket("good", "4711", 2)
	c := s.start(plane.Config)
	p := s.policy("failing", `package destinations

quota contains {"key": input.route.destination.iata, "scope": "Cluster", "amount": input.ticket.spec.number, "limit": 10, "retain": true} if {
	input.ticket.spec.costCenter == "4711"
}
`)
	s.says(p, "LON", "used 2, retained 0, 0 entries, by 1")
	s.counted(p.Name)
	if text := c.Uncounted(p.UID); !strings.Contains(text, "1 stored tickets are not counted") || !strings.Contains(text, "/bad") {
		t.Errorf("of the ticket that isn't counted it says %q", text)
	}
	if text := c.Uncounted("another"); text != "" {
		t.Errorf("of another policy it says %q", text)
	}
	var refused *quota.RefusedError
	if err := c.gate.Bookable(t.Context(), bad, nil); err == nil || errors.As(err, &refused) {
		t.Errorf("asked whether it may be booked, the second gate says %v", err)
	}
	s.remove(bad)
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(bad), bad); err != nil {
		t.Fatal(err)
	}
	if err := c.gate.Departed(t.Context(), bad); err != nil {
		t.Errorf("it may not go: %v", err)
	}
	s.letGo(bad)
	s.eventually("all are counted", func() (bool, error) { return c.Uncounted(p.UID) == "", nil })
}
