package story

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// What a booking API does in these cases.
func refusing(op simulator.Operation) simulator.Fault {
	return simulator.Fault{Operation: op, Effect: simulator.EffectRefuse, Times: 1}
}

// wellProvided is a scene whose provider is well.
func wellProvided(t *testing.T) *scene.Scene {
	return scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
}

// quick has a provider with keys that live so short that an operation settles within seconds.
func quick(settings simulator.Settings, lookup bool) func(*testing.T) *scene.Scene {
	settings.IdempotencyKeyTTL = metav1.Duration{Duration: 10 * time.Second}
	return func(t *testing.T) *scene.Scene {
		return scene.WithBooking(t, house.stage, settings, func(p *flightsv1.BookingProvider) {
			p.Spec.Timeout = metav1.Duration{Duration: time.Second}
			p.Spec.Capabilities.MaxProcessing = metav1.Duration{Duration: time.Second}
			p.Spec.Capabilities.Lookup = ptr.To(lookup)
		})
	}
}

// booked applies a ticket, waits until it is booked and returns the booking's id.
func booked(s *shell, lines ...string) string {
	s.Helper()
	s.Apply(s.TicketManifest(trip, lines...))
	return s.Booked(trip, 2).Status.Booking.ID
}

// bought is an end: the ticket is booked, with so many seats, by so many calls.
func bought(seats int32, calls int) func(*shell) {
	return func(s *shell) {
		s.Helper()
		s.Booked(trip, seats)
		s.Live(1)
		if n := s.Simulator.Count(simulator.OpBook); n != calls {
			s.Errorf("the provider was asked to book %d times, want %d", n, calls)
		}
	}
}

// both joins two ends.
func both(ends ...func(*shell)) func(*shell) {
	return func(s *shell) {
		s.Helper()
		for _, end := range ends {
			end(s)
		}
	}
}

// told is an end: an event of a reason, about what was decided and by whom.
func told(reason string, parts ...string) func(*shell) {
	return func(s *shell) {
		s.Helper()
		s.Told(s.Namespace, "FlightTicket", trip, reason, parts...)
	}
}

// gone is an end: the ticket is gone, and so many bookings live on.
func gone(live int) func(*shell) {
	return func(s *shell) {
		s.Helper()
		scene.AwaitGone(s.Scene, s.Ticket(trip))
		s.Live(live)
	}
}

func healed(s *shell) { s.Simulator.ClearFaults() }

func runbookCases() []caseOf {
	cases := append(adoptionCases(), refusalCases()...)
	cases = append(cases, outcomeCases()...)
	cases = append(cases, driftCases()...)
	return append(cases, offerCases()...)
}

func adoptionCases() []caseOf {
	return []caseOf{
		{
			page: flightsv1.ReasonAdoptionRequired,
			stage: func(s *shell) string {
				id := booked(s, "deletionPolicy: Retain")
				s.Do("", "delete", "ticket", trip)
				s.Apply(s.TicketManifest(trip))
				return id
			},
			ends: both(bought(2, 1), told(flightsv1.ReasonAdopted, "on the word of boss"), func(s *shell) {
				now := s.Ticket(trip)
				s.Read(now)
				if now.Status.Booking.AdoptedBy != "boss" || now.Annotations[flightsv1.DecidedByAnnotation] != "boss" {
					s.Errorf("adopted by %q, decided by %v", now.Status.Booking.AdoptedBy, now.Annotations)
				}
			}),
		},
		{
			page: flightsv1.ReasonAdoptionRefused,
			stage: func(s *shell) string {
				s.Apply(strings.Replace(s.TicketManifest(trip), "metadata: {", "metadata: {annotations: {flights.com/adopt-booking: bk_0000}, ", 1))
				return ""
			},
			ends: bought(2, 1),
		},
	}
}

func refusalCases() []caseOf {
	cancelRefused := func(s *shell) string {
		id := booked(s)
		s.Inject(simulator.Fault{Operation: simulator.OpCancel, Effect: simulator.EffectRefuse, Code: "too_late", Detail: "Too late to cancel."})
		s.Do("", "delete", "ticket", trip, "--wait=false")
		return id
	}
	return []caseOf{
		{
			page: flightsv1.ReasonBookingRefused,
			stage: func(s *shell) string {
				s.Inject(refusing(simulator.OpBook))
				s.Apply(s.TicketManifest(trip))
				return ""
			},
			ends: bought(2, 2),
		},
		{
			page: flightsv1.ReasonChangeRefused,
			stage: func(s *shell) string {
				id := booked(s)
				s.Inject(refusing(simulator.OpChange))
				s.Do("", "patch", "ticket", trip, "--type=merge", "-p", `{"spec":{"number":3}}`)
				return id
			},
			ends: bought(3, 1),
		},
		{page: flightsv1.ReasonCancellationRefused, stage: cancelRefused, then: healed, ends: gone(0)},
		{
			page: flightsv1.ReasonCancellationRefused, way: 1, stage: cancelRefused,
			ends: both(gone(1), told(flightsv1.ReasonRetained, "stays with the provider")),
		},
	}
}

func outcomeCases() []caseOf {
	lost := func(effect simulator.Effect) func(*shell) string {
		return func(s *shell) string {
			s.Inject(simulator.Fault{Operation: simulator.OpBook, Effect: effect})
			s.Apply(s.TicketManifest(trip))
			if effect == simulator.EffectDropBefore {
				return ""
			}
			s.AwaitCalls("a booking that nobody heard of", func([]simulator.Call) bool { return len(s.Simulator.LiveBookings()) == 1 })
			return s.Simulator.LiveBookings()[0].Id
		}
	}
	blind := quick(simulator.Settings{NoLookup: true}, false)
	resolved := told(flightsv1.ReasonResolved, "on the word of boss")
	booked := func(s *shell) { s.Booked(trip, 2); s.Live(1) }
	return []caseOf{
		{page: flightsv1.ReasonOutcomeUnknown, open: blind, stage: lost(simulator.EffectDropBefore), then: healed, ends: both(booked, resolved)},
		{page: flightsv1.ReasonOutcomeUnknown, way: 1, open: blind, stage: lost(simulator.EffectDropAfter), then: healed, ends: both(booked, resolved)},
		{
			page: flightsv1.ReasonOperationPending,
			open: quick(simulator.Settings{Processing: metav1.Duration{Duration: time.Hour}}, true),
			stage: func(s *shell) string {
				s.Apply(s.TicketManifest(trip))
				s.AwaitCalls("an order that is worked on", func([]simulator.Call) bool { return len(s.Simulator.LiveBookings()) == 1 })
				return s.Simulator.LiveBookings()[0].Id
			},
			then: func(s *shell) { // the provider throws the order away, and would be quicker with another
				s.Simulator.SetSettings(simulator.Settings{IdempotencyKeyTTL: s.Simulator.Settings().IdempotencyKeyTTL})
				if err := s.Simulator.CancelOutside(s.Simulator.LiveBookings()[0].Id); err != nil {
					s.Fatal(err)
				}
			},
			ends: both(triedAnew, bought(2, 2)),
		},
	}
}

// triedAnew has an order that came to nothing tried again, unless it is already.
func triedAnew(s *shell) {
	s.Helper()
	reason := ""
	scene.Await(s.Scene, s.Ticket(trip), "booked or refused", func(t *flightsv1.FlightTicket) bool {
		if ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady); ready != nil {
			reason = ready.Reason
		}
		return reason == flightsv1.ReasonBooked || reason == flightsv1.ReasonBookingRefused
	})
	if reason == flightsv1.ReasonBookingRefused {
		s.do("kubectl flights sync " + trip)
	}
}

func driftCases() []caseOf {
	return []caseOf{
		{
			page: flightsv1.ReasonDrifted,
			stage: func(s *shell) string {
				id := booked(s)
				if err := s.Simulator.CancelOutside(id); err != nil {
					s.Fatal(err)
				}
				s.Says(s.do("kubectl flights sync "+trip).Err, trip+": Drifted: ", "is cancelled at the provider")
				return id
			},
			ends: bought(2, 2),
		},
		{
			page: flightsv1.ReasonDrifted, message: 1, way: 1,
			stage: func(s *shell) string {
				id := booked(s)
				order := s.Simulator.LiveBookings()[0].Order
				order.Seats = 1
				if err := s.Simulator.ChangeOutside(id, order); err != nil {
					s.Fatal(err)
				}
				s.Says(s.do("kubectl flights sync "+trip).Err, trip+": Drifted: ", "seats 1 instead of 2")
				return id
			},
			ends: bought(3, 1),
		},
	}
}

// offerCases are about what is refused before anything is sent.
func offerCases() []caseOf {
	priced := func(amount, currency string) func(*shell) string {
		return func(s *shell) string {
			s.Apply(s.TicketManifest(trip, `maxPrice: {amount: "`+amount+`", currency: `+currency+`}`))
			return ""
		}
	}
	return []caseOf{
		{page: flightsv1.ReasonPriceExceeded, stage: priced("1.50", "EUR"), ends: bought(2, 1)},
		{page: flightsv1.ReasonCurrencyMismatch, stage: priced("99999", "USD"), ends: bought(2, 1)},
		{
			page: flightsv1.ReasonPolicyRefused,
			stage: func(s *shell) string {
				s.ProviderIs(flightsv1.ReasonProviderReady)
				s.Down()
				s.Apply(s.TicketManifest(trip))
				s.Waiting(trip, flightsv1.ReasonProviderNotReady)
				enforce(s.Scene, "few-seats", "library: seats-per-ticket\nparameters: {max: 1}")
				s.Up()
				return ""
			},
			ends: bought(1, 1),
		},
		{
			page: flightsv1.ReasonQuotaExceeded,
			stage: func(s *shell) string {
				s.ProviderIs(flightsv1.ReasonProviderReady)
				s.Down()
				s.Apply(s.TicketManifest(trip))
				s.Waiting(trip, flightsv1.ReasonProviderNotReady)
				enforce(s.Scene, "few-seats", `rego: |
  package few_seats

  quota contains {"key": "seats", "scope": "Namespace", "amount": input.ticket.spec.number, "limit": 1}`)
				s.Up()
				return ""
			},
			ends: bought(1, 1),
		},
		{page: flightsv1.ReasonPlaceRefused, stage: func(s *shell) string { return booked(s) }, ends: bought(2, 1)},
	}
}
