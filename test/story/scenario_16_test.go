package story

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// Every scene's token holds the canary, and the provider here echoes it, calls its travellers by name, and sends callers
// on to a host inside. Nothing of it may be found anywhere but in the Secret, and nobody may call that host.
func TestScenario16TheServersWordsAsALeak(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(inside.Close)
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	echo := simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectEcho, Times: 1}
	s.Inject(echo)
	echo.Operation = simulator.OpQuote
	s.Inject(echo)
	s.Apply(s.TicketManifest("trip"))
	for range 2 { // the quote is refused, then the booking
		s.Waiting("trip", flightsv1.ReasonBookingRefused)
		s.Do("", "annotate", "ticket", "trip", "--overwrite", "flights.com/reconcile-requested-at="+time.Now().String())
	}
	s.Booked("trip", 2)

	s.Inject(simulator.Fault{
		Operation: simulator.OpQuote, Effect: simulator.EffectRefuse, Times: 1, Code: "not_today",
		Detail: "Zebulon ANDROMACHOS may not fly: see " + inside.URL + "/?token=" + s.Token(),
	})
	s.Apply(s.TicketManifest("refused", "passengers: [{givenName: Zebulon, familyName: Andromachos}]"))
	s.Says(s.Waiting("refused", flightsv1.ReasonBookingRefused), "may not fly", "not_today")

	s.Inject(simulator.Fault{Effect: simulator.EffectRedirect, Location: inside.URL + "/latest/meta-data"})
	s.Apply(s.TicketManifest("led-on"))
	s.ProviderIs(flightsv1.ReasonUnreachable)
	s.Waiting("led-on", flightsv1.ReasonProviderNotReady)
	s.Simulator.ClearFaults()
	s.Booked("led-on", 2)
	if n := reached.Load(); n != 0 {
		t.Errorf("a host that no admin has named was called %d times", n)
	}

	s.StoreToken(s.Token() + "-wrong")
	s.ProviderIs(flightsv1.ReasonCredentialsRefused)
	s.StoreToken(s.Token())
	s.ProviderIs(flightsv1.ReasonProviderReady)
	nowhere(s, scene.Canary, inside.URL, "ANDROMACHOS")
}

// nowhere fails if one of the secrets is in a status, an event, a log or a metric.
func nowhere(s *scene.Scene, secrets ...string) {
	s.Helper()
	token := s.MetricsReader()
	haystacks := map[string]string{
		"the statuses": s.Do("", "get", "tickets,bookingproviders", "-A", "-o", "jsonpath={.items[*].status}"),
		"the objects":  s.Do("", "get", "bookingproviders,flightpolicies,leases.coordination.k8s.io", "-A", "-o", "yaml"),
		"the events":   s.Do("", "get", "events", "-A", "-o", "yaml"),
	}
	for _, program := range []string{"flight-webhook", "flight-controller"} {
		_, haystacks["the metrics of "+program] = s.NewScraper(program, house.metrics[program]).Read(token)
		log, err := os.ReadFile(house.logs[program])
		if err != nil {
			s.Fatal(err)
		}
		haystacks["the log of "+program] = string(log)
	}
	for where, text := range haystacks {
		if len(text) < 100 {
			s.Errorf("%s were not read: %q", where, text)
		}
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				s.Errorf("%q is in %s", secret, where)
			}
		}
	}
}
