package quotabucket

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// asked asks the second gate until it can tell.
func (s *scene) asked(c *counter, t *flightsv1.FlightTicket, offer *booking.Offer) error {
	s.Helper()
	var said error
	s.eventually("the gate can tell of "+t.Name, func() (bool, error) {
		if err := s.Get(s.Context(), client.ObjectKeyFromObject(t), t); err != nil {
			return false, err
		}
		said = c.gate.Bookable(s.Context(), t, offer)
		var counting *quota.NotCountedError
		var stale *quota.StaleError
		return !errors.As(said, &counting) && !errors.As(said, &stale), said
	})
	return said
}

func refusedBy(err error) bool {
	var refused *quota.RefusedError
	return errors.As(err, &refused)
}

// flight is an offer of one flight.
func flight(number string) *booking.Offer {
	return &booking.Offer{
		ID: "q-1", Price: money.Amount{Minor: 100, Currency: "EUR"}, ExpiresAt: time.Now().Add(time.Hour),
		Segments: []booking.Segment{{
			Origin: "BOM", Destination: "LHR", DepartsAt: time.Unix(1e9, 0).UTC(), ArrivesAt: time.Unix(1e9+36000, 0).UTC(),
			MarketingCarrier: "ZZ", OperatingCarrier: "ZZ", FlightNumber: number,
		}},
	}
}

// operation writes down what takes an offer, as the controller of tickets would.
func (s *scene) operation(t *flightsv1.FlightTicket, offer *booking.Offer) error {
	t.Status.Operation = &flightsv1.OperationStatus{
		ID: "op-" + t.Name, Kind: flightsv1.OperationBook, Attempt: 1, OfferID: offer.ID,
		Order: &flightsv1.Order{Origin: "BOM", Destination: "LON", Seats: t.Spec.Number},
		Price: booking.WrittenPrice(offer.Price), Segments: booking.Written(offer.Segments),
		Provider:  flightsv1.ProviderIdentity{Name: "p", UID: "uid-p", Account: "a"},
		StartedAt: metav1.NowMicro(), SendBy: metav1.NowMicro(),
	}
	return s.Status().Update(s.Context(), t)
}

func TestOfTicketsBeyondTheLimitTheOldestThatFitAreBooked(t *testing.T) {
	s := newScene(t)
	c := s.start(plane.Config)
	p := s.policy("seniority", centres(1, 5, ""))
	old, young := s.ticket("a", "4711", 3), s.ticket("b", "4711", 3)
	if older(young, old) {
		old, young = young, old
	}
	s.says(p, "4711", "used 6, retained 0, 0 entries, by 1")
	if err := s.asked(c, young, nil); !refusedBy(err) {
		t.Errorf("the younger one got %v", err)
	}
	if err := s.asked(c, old, nil); err != nil {
		t.Errorf("the older one got %v", err)
	}
	s.remove(old)
	s.eventually("the younger one is woken", func() (bool, error) {
		select {
		case name := <-c.gate.Changed():
			return name == client.ObjectKeyFromObject(young), nil
		default:
			return false, nil
		}
	})
	if err := s.asked(c, young, nil); err != nil {
		t.Errorf("once there is room the younger one got %v", err)
	}
}

func older(a, b *flightsv1.FlightTicket) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.UID < b.UID
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// perFlight counts travellers by flight, when there is an offer.
const perFlight = `# METADATA
# custom:
#   stage: Booking
package flights

quota contains {"key": segment.flightNumber, "scope": "Cluster", "amount": input.ticket.spec.number, "limit": 4} if {
	some segment in input.offer.segments
}
`

func TestWhatOnlyTheOfferTellsIsReservedOnceAndSettledByTheOperation(t *testing.T) {
	s := newScene(t)
	c := s.start(plane.Config)
	p := s.policy("per-flight", perFlight)
	s.counted(p.Name)
	first, second := s.ticket("a", "", 3), s.ticket("b", "", 2)
	if err := s.asked(c, first, nil); err != nil {
		t.Errorf("without an offer: %v", err)
	}
	if s.bucket(p, quota.Cluster, "ZZ138") != nil {
		t.Error("something is written without an offer")
	}
	for range 2 {
		if err := s.asked(c, first, flight("ZZ138")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.asked(c, second, flight("ZZ138")); !refusedBy(err) {
		t.Errorf("beyond the limit: %v", err)
	}
	if b := s.bucket(p, quota.Cluster, "ZZ138"); b.Reserved != 3 || b.Used != 0 {
		t.Errorf("reserved %d, used %d, though nothing is written down yet", b.Reserved, b.Used)
	}
	if err := s.operation(first, flight("ZZ138")); err != nil {
		t.Fatal(err)
	}
	s.says(p, "ZZ138", "used 3, retained 0, 0 entries, by 1")
	if err := s.asked(c, second, flight("ZZ139")); err != nil {
		t.Errorf("another flight: %v", err)
	}
}

// A leader that stands still between what the gate said and the operation must not write it after its entry has gone.
func TestALeaderThatStoodStillCannotWriteTheOperationAfterItsEntryHasAged(t *testing.T) {
	s := newScene(t)
	c := s.start(plane.Config)
	p := s.policy("frozen", perFlight)
	s.counted(p.Name)
	ticket, next := s.ticket("a", "", 3), s.ticket("b", "", 3)
	if err := s.asked(c, ticket, flight("ZZ138")); err != nil {
		t.Fatal(err)
	}
	s.says(p, "ZZ138", "used 0, retained 0, 1 entries, by 1")
	s.eventually("the entry ages", func() (bool, error) {
		c.forward(life)
		s.poke(next)
		b := s.bucket(p, quota.Cluster, "ZZ138")
		return b == nil || len(b.Entries) == 0, nil
	})
	if err := s.asked(c, next, flight("ZZ138")); err != nil {
		t.Errorf("what the entry held is not free: %v", err)
	}
	if err := s.operation(ticket, flight("ZZ138")); !apierrors.IsConflict(err) {
		t.Errorf("the operation was written: %v", err)
	}
}

func TestAPolicyThatOnlyWarnsHoldsNoTicketBack(t *testing.T) {
	s := newScene(t)
	c := s.start(plane.Config)
	p := s.policy("warning", centres(1, 1, ""))
	ticket := s.ticket("a", "4711", 3)
	s.says(p, "4711", "used 3, retained 0, 0 entries, by 1")
	if err := s.asked(c, ticket, nil); !refusedBy(err) {
		t.Errorf("under Enforce: %v", err)
	}
	text := `{"spec":{"enforcement":"Warn"}}`
	if err := s.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
		t.Fatal(err)
	}
	s.says(p, "4711", "used 3, retained 0, 0 entries, by 2")
	if err := s.asked(c, ticket, nil); err != nil {
		t.Errorf("under Warn: %v", err)
	}
}
