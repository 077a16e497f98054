package policy

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
	"github.com/flight-operator/flight-operator/internal/places"
)

// tries is how often a policy may try to keep within its budget on one sample. Others run on the same processors and
// allocate from the same heap, so one try says little; the best one counts.
const tries = 3

// tryOut runs a compiled policy on sample inputs, so that one that can't be evaluated, or takes too much, is refused
// when it is applied and not when a ticket comes. It finds what doesn't depend on unusual input; deadlines do the rest.
func (rev *revision) tryOut(ctx context.Context, text moduleText, l limits) []Problem {
	for _, s := range samples() {
		shared, err := buildInput(s.request)
		if err != nil {
			return []Problem{text.at(nil, "build the sample input (%s): %v", s.name, err)}
		}
		if err := rev.trySample(ctx, shared, l); err != nil {
			return []Problem{text.at(nil, "tried on a sample input (%s): %v", s.name, err)}
		}
		if err := rev.tryPatches(ctx, shared, l); err != nil {
			return []Problem{text.at(nil, "tried on a sample input (%s): %v", s.name, err)}
		}
	}
	return nil
}

// tryPatches asks what the policy sets. That it takes too long is found out by trySample for the other rules, and by
// deadlines for this one.
func (rev *revision) tryPatches(ctx context.Context, shared []field, l limits) error {
	if rev.program.mutate == nil {
		return nil
	}
	patches, err := rev.patches(ctx, evaluation{shared: shared, over: &atomic.Bool{}, limit: l.policy})
	if _, conflicts := joinPatches(patches); err == nil && len(conflicts) > 0 {
		err = fmt.Errorf("%s: %w", RuleMutate, conflicts[0])
	}
	if errors.Is(err, errTimeout) && l.stored {
		return nil
	}
	return err
}

func (rev *revision) trySample(ctx context.Context, shared []field, l limits) error {
	var last error
	for range tries {
		var over atomic.Bool
		before := allocated()
		_, err := rev.evaluate(ctx, shared, &over, l.policy)
		used := allocated() - before
		switch {
		case l.stored && (err == nil || errors.Is(err, errTimeout)):
			return nil
		case errors.Is(err, errTimeout):
			last = fmt.Errorf("it takes more than the %v that a policy has: visit less", l.policy)
		case err != nil:
			return err
		case used > l.allocations:
			last = fmt.Errorf("it allocates more than the %d MiB that a policy has: build less", l.allocations>>20)
		default:
			return nil
		}
	}
	return last
}

// allocated is how many bytes this process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// sample is an input that every policy must cope with.
type sample struct {
	name    string
	request Request
}

// samples are tickets as small and as full as they come, at all stages. Free texts are such that they can be read as
// numbers and dates, so that a policy that parses them isn't refused for the sample's sake.
func samples() []sample {
	small := Request{
		Stage: StageAdmission, Operation: flightsv1.OperationCreate,
		User: User{Username: "sample"}, Namespace: Namespace{Name: "sample"},
		Ticket: &flightsv1.FlightTicket{
			ObjectMeta: metav1.ObjectMeta{Name: "sample", Namespace: "sample", Annotations: requestedBy("sample")},
			Spec:       flightsv1.FlightTicketSpec{From: "BOM", To: "XXX", Number: 1},
		},
		Route: places.Route{Origin: sampleAirport("BOM", "Mumbai", "IN"),
			Destination: places.Place{Text: "XXX", Kind: places.KindCode, IATA: "XXX", Airports: []string{"XXX"}}},
		Now: time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC),
	}
	full := small
	full.User.Groups = []string{"system:authenticated", "travellers"}
	full.Ticket = fullTicket()
	full.Route = places.Route{Origin: sampleAirport("BOM", "Mumbai", "IN"),
		Destination: places.Place{Text: "London", Kind: places.KindCity, IATA: "LON", Airports: []string{"LGW", "LHR"}, City: "London", Country: "GB"},
		DistanceKm:  7200, International: true}
	update := full
	update.Operation, update.OldTicket = flightsv1.OperationUpdate, fullTicket()
	update.OldTicket.Spec.Number = 1
	offered := full
	offered.Stage, offered.Offer = StageBooking, &booking.Offer{
		ID: "1", Price: money.Amount{Minor: 120000, Currency: "EUR"}, ExpiresAt: full.Now.Add(time.Hour),
		Segments: []booking.Segment{{Origin: "BOM", Destination: "LHR", DepartsAt: full.Now, ArrivesAt: full.Now.Add(9 * time.Hour),
			MarketingCarrier: "BA", OperatingCarrier: "BA", FlightNumber: "BA138", Cabin: flightsv1.CabinEconomy}},
	}
	audit := full
	audit.Stage = StageAudit
	return []sample{
		{"creating a ticket with nothing optional", small}, {"creating a ticket with everything", full},
		{"updating a ticket", update}, {"booking a ticket", offered}, {"auditing a ticket", audit},
	}
}

func sampleAirport(code, city, country string) places.Place {
	return places.Place{Text: code, Kind: places.KindAirport, IATA: code, Airports: []string{code}, City: city, Country: country}
}

// requestedBy is what the webhook writes down of every ticket.
func requestedBy(username string) map[string]string {
	return map[string]string{flightsv1.RequestedByAnnotation: username}
}

func fullTicket() *flightsv1.FlightTicket {
	return &flightsv1.FlightTicket{
		ObjectMeta: metav1.ObjectMeta{
			Name: "sample", Namespace: "sample", UID: "00000000-0000-0000-0000-000000000001", Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)),
			Annotations:       requestedBy("sample"),
		},
		Spec: flightsv1.FlightTicketSpec{
			From: "BOM", To: "London", Number: 2, DepartureDate: "2027-06-01", ReturnDate: "2027-06-15",
			Cabin: flightsv1.CabinEconomy, MaxPrice: &flightsv1.Money{Amount: "1500", Currency: "EUR"}, CostCenter: "4711",
			Passengers: []flightsv1.Passenger{{GivenName: "Asha", FamilyName: "Rao", BirthDate: "1990-05-17",
				Email: "asha@example.com", Phone: "+442071838750", Title: "Ms", Gender: "F"}},
			ProviderRef: &flightsv1.ProviderReference{Name: "sample"}, DeletionPolicy: flightsv1.DeletionPolicyCancel,
		},
	}
}
