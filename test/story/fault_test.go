package story

import (
	"regexp"
	"strings"
	"testing"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// toldOfProvider waits for an event about the scene's provider. Events of cluster-scoped objects are in default.
func toldOfProvider(s *scene.Scene, reason string, parts ...string) {
	s.Helper()
	s.Told("default", "BookingProvider", s.Provider.Name, reason, parts...)
}

func TestATicketWaitsForAMissingKeyAndForAGoodToken(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.ProviderIs(flightsv1.ReasonProviderReady)
	s.StoreToken("")
	missing := "has nothing under the key " + s.Namespace + ": store the booking API's token there"
	s.Says(s.ProviderIs(flightsv1.ReasonSecretKeyNotFound), missing)
	toldOfProvider(s, flightsv1.ReasonSecretKeyNotFound, missing)
	s.Apply(s.TicketManifest("trip"))
	s.Says(s.Waiting("trip", flightsv1.ReasonProviderNotReady), "waits for BookingProvider "+s.Provider.Name, missing)

	s.StoreToken(scene.Canary + "-wrong")
	refused := "refuses the token in Secret flight-operator-credentials, key " + s.Namespace + ": put a valid one there"
	s.Says(s.ProviderIs(flightsv1.ReasonCredentialsRefused), refused)
	toldOfProvider(s, flightsv1.ReasonCredentialsRefused, refused)
	s.Live(0)

	s.StoreToken(s.Token())
	s.Booked("trip", 2)
	s.Live(1)
}

// The condition prints what is missing, and what it prints can be applied as it stands.
func TestAnotherSecretNeedsARoleThatTheConditionPrints(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, func(p *flightsv1.BookingProvider) {
		p.Spec.CredentialsSecretRef = flightsv1.SecretKeyReference{Name: "own-" + p.Name, Key: "token"}
	})
	secret := s.Provider.Spec.CredentialsSecretRef.Name
	s.Apply(s.TicketManifest("trip"))
	message := s.ProviderIs(flightsv1.ReasonSecretForbidden)
	s.Says(message, "may not read Secret flight-operator-system/"+secret+"; put the token into Secret flight-operator-credentials, or apply:\n")
	_, role, _ := strings.Cut(message, "or apply:\n")
	s.Cleanup(func() {
		for _, kind := range []string{"role/flight-controller-", "rolebinding/flight-controller-", "secret/"} {
			if out, err := house.kubectl("delete", "-n", scene.SystemNamespace, "--ignore-not-found", kind+secret); err != nil {
				s.Errorf("clean up: %v: %s", err, out)
			}
		}
	})
	s.Do(role, "apply", "-n", scene.SystemNamespace, "-f", "-")
	missing := "Secret flight-operator-system/" + secret + " does not exist: create it with the booking API's token under the key token"
	s.Says(s.ProviderIs(flightsv1.ReasonSecretNotFound), missing)
	toldOfProvider(s, flightsv1.ReasonSecretNotFound, missing)
	s.Do("", "create", "-n", scene.SystemNamespace, "secret", "generic", secret, "--from-literal=token="+s.Token())
	s.Booked("trip", 2)
	s.Do("", "delete", "ticket", "trip", "--timeout=120s") // before its Secret goes
	s.Live(0)
}

func TestATicketIsBookedWhenTheBookingAPIIsBack(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.ProviderIs(flightsv1.ReasonProviderReady)
	s.Down()
	s.Apply(s.TicketManifest("trip"))
	down := "does not answer as it should: check the endpoint, its certificate (spec.caBundle) and network policies"
	s.Says(s.ProviderIs(flightsv1.ReasonUnreachable), "the booking API at "+s.Provider.Spec.Endpoint, down)
	toldOfProvider(s, flightsv1.ReasonUnreachable, down)
	s.Says(s.Waiting("trip", flightsv1.ReasonProviderNotReady), s.Provider.Name)
	s.Up()
	s.Booked("trip", 2)
	s.ProviderIs(flightsv1.ReasonProviderReady)
	s.Live(1)
}

func TestATicketIsBookedWhenTheBookingAPITalksSenseAgain(t *testing.T) {
	t.Parallel()
	for _, effect := range []simulator.Effect{simulator.EffectGarbage, simulator.EffectHTML, simulator.EffectErrorBefore} {
		t.Run(string(effect), func(t *testing.T) {
			s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
			s.ProviderIs(flightsv1.ReasonProviderReady)
			s.Inject(simulator.Fault{Effect: effect})
			s.Apply(s.TicketManifest("trip"))
			s.ProviderIs(flightsv1.ReasonUnreachable)
			s.Says(s.Waiting("trip", flightsv1.ReasonProviderNotReady), s.Provider.Name)
			s.Live(0)
			s.Simulator.ClearFaults()
			s.Booked("trip", 2)
			s.Live(1)
		})
	}
}

func TestATicketWaitsForAProviderThatIsAppliedLater(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	later := s.Namespace + "-later"
	s.Says(s.Apply(s.TicketManifest("trip", "providerRef: {name: "+later+"}")),
		`Warning: BookingProvider "`+later+`" does not exist yet`, "the ticket waits for it")
	absent := "BookingProvider " + later + " does not exist: create it, or correct spec.providerRef"
	s.Says(s.Waiting("trip", flightsv1.ReasonProviderNotFound), absent)
	s.Told(s.Namespace, "FlightTicket", "trip", flightsv1.ReasonProviderNotFound, absent)
	s.Apply(s.TicketManifest("trip"))
	s.Booked("trip", 2)
}

func TestARefusedBookingSaysWhyAndIsTriedAgainWhenItCanHelp(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.Inject(simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectRefuse, Times: 1, Code: "sold_out", Detail: "No seats are left."})
	s.Apply(s.TicketManifest("trip"))
	why := s.Provider.Name + " refused to book: No seats are left. (sold_out)"
	s.Says(s.Waiting("trip", flightsv1.ReasonBookingRefused), why, "it is tried again once the spec, the provider or its credential changes")
	s.Told(s.Namespace, "FlightTicket", "trip", flightsv1.ReasonBookingRefused, why)
	s.Live(0)
	s.Do("", "annotate", "ticket", "trip", "flights.com/reconcile-requested-at=now")
	s.Booked("trip", 2)
	if books := s.Simulator.Count(simulator.OpBook); books != 2 {
		t.Errorf("the provider was asked to book %d times, want 2", books)
	}
}

func TestATicketThatIsTooDearIsNotBought(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.Apply(s.TicketManifest("trip", `maxPrice: {amount: "1.50", currency: EUR}`))
	message := s.Waiting("trip", flightsv1.ReasonPriceExceeded)
	if !regexp.MustCompile(`^the cheapest offer costs .* EUR, spec\.maxPrice is 1\.50 EUR: raise maxPrice, or wait`).MatchString(message) {
		t.Errorf("the ticket says %s", message)
	}
	s.Told(s.Namespace, "FlightTicket", "trip", flightsv1.ReasonPriceExceeded, "raise maxPrice")
	s.Apply(s.TicketManifest("trip", `maxPrice: {amount: "99999", currency: EUR}`))
	s.Booked("trip", 2)
}
