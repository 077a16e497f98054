package rest_test

import (
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/conformance"
	"github.com/flight-operator/flight-operator/internal/booking/rest"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// restHarness serves a fresh simulator for one test of the suite.
func restHarness(t *testing.T, settings simulator.Settings, edit func(*rest.Options)) conformance.Harness {
	sim, server := start(t, simulator.Options{
		Settings: settings,
		Tokens:   map[string]string{testToken: testAccount, "other-token": "acct-8"},
	})
	changed := testOrder()
	changed.Seats = 3
	changed.Cabin = flightsv1.CabinBusiness
	changed.DepartureDate, changed.ReturnDate = "2027-03-14", "2027-03-28"
	changed.Passengers = []flightsv1.Passenger{{
		GivenName: "Ada", FamilyName: "Lovelace", BirthDate: "1815-12-10", Email: "ada@example.com",
		Phone: "+442071838750", Title: "Ms", Gender: "F",
	}}
	return conformance.Harness{
		Provider: dial(t, server, edit),
		Stranger: dial(t, server, func(o *rest.Options) { o.Token = "other-token" }),
		Break: func(call conformance.Call, fault conformance.Fault) {
			f := simulator.Fault{Operation: simulator.Operation(call), Effect: simulator.Effect(fault), Times: 1}
			if fault == conformance.Throttle {
				f.RetryAfter = strconv.Itoa(conformance.ThrottleSeconds)
			}
			if err := sim.Inject(f); err != nil {
				t.Fatalf("inject: %v", err)
			}
		},
		Live:    func(owner string) int { return len(sim.LiveByOwner(owner)) },
		Arrived: func(call conformance.Call) int { return sim.Count(simulator.Operation(call)) },
		Order:   testOrder(), Changed: changed,
	}
}

func TestTheRESTProviderConforms(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Harness {
		return restHarness(t, simulator.Settings{}, nil)
	})
}

func TestTheRESTProviderConformsWithKeys(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Harness {
		settings := simulator.Settings{IdempotencyKeyTTL: metav1.Duration{Duration: time.Hour}}
		return restHarness(t, settings, func(o *rest.Options) { o.SendKeys = true })
	})
}
