package story

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// Not parallel: what the controller holds is compared before and after.
func TestScenario18SecretsEverywhere(t *testing.T) {
	const secrets = 2000
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.ProviderIs(flightsv1.ReasonProviderReady)
	token := s.MetricsReader()
	metrics := s.NewScraper("flight-controller", house.metrics["flight-controller"])
	before := metrics.Value(token, "process_resident_memory_bytes")

	var running sync.WaitGroup
	for worker := range 8 {
		running.Go(func() {
			for i := worker; i < secrets; i += 8 {
				createSecret(s, fmt.Sprintf("unrelated-%d", i))
			}
		})
	}
	running.Wait()
	s.StoreToken(s.Token() + "-wrong") // the credential is read anew, among all the others
	s.ProviderIs(flightsv1.ReasonCredentialsRefused)
	s.StoreToken(s.Token())
	s.Apply(s.TicketManifest("trip"))
	s.Booked("trip", 2)

	after := metrics.Value(token, "process_resident_memory_bytes")
	t.Logf("resident memory of the controller: %.1f MiB, with %d unrelated Secrets %.1f MiB: %.2f times",
		before/(1<<20), secrets, after/(1<<20), after/before)
	if after > 2*before {
		t.Error("the controller's memory grows with Secrets that don't concern it")
	}
	log, err := os.ReadFile(house.logs["flight-controller"])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), "is forbidden: User") {
		t.Error("the controller's log speaks of something that it may not do")
	}
	account := "--as=system:serviceaccount:flight-operator-system:flight-controller"
	for _, verb := range []string{"list", "watch"} {
		for _, where := range []string{"-A", "--namespace=" + scene.SystemNamespace} {
			if answer := s.Run("", "auth", "can-i", verb, "secrets", where, account); strings.HasPrefix(answer.Out, "yes") {
				t.Errorf("the controller may %s Secrets (%s)", verb, where)
			}
		}
	}
	asksByName(s)
}

// createSecret creates a Secret of the size that certificates have.
func createSecret(s *scene.Scene, name string) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Data:       map[string][]byte{"value": []byte(strings.Repeat("x", 4<<10))},
	}
	if err := s.Client.Create(s.Context, secret); err != nil {
		s.Error(err)
	}
}

// asksByName reads the audit log: whatever our programs ask of Secrets names one. An installation that was there already
// keeps no such log that is ours to read; RBAC speaks for it.
func asksByName(s *scene.Scene) {
	s.Helper()
	if house.audit == "" {
		s.Log("this installation has no audit log: that no Secrets are listed rests on RBAC alone")
		return
	}
	file, err := os.Open(house.audit)
	if err != nil {
		s.Fatal(err)
	}
	defer file.Close()
	asked := 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var event struct {
			Verb, RequestURI string
			User             struct{ Username string }
			ObjectRef        struct{ Resource, Name string }
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // the last line may be half written
		}
		if event.ObjectRef.Resource != "secrets" || !strings.HasPrefix(event.User.Username, "system:serviceaccount:flight-operator-system:flight-") {
			continue
		}
		asked++
		if event.ObjectRef.Name == "" && !strings.Contains(event.RequestURI, "fieldSelector=metadata.name%3D") {
			s.Errorf("%s asks for Secrets that it does not name: %s %s", event.User.Username, event.Verb, event.RequestURI)
		}
	}
	if err := lines.Err(); err != nil {
		s.Fatal(err)
	}
	if asked == 0 {
		s.Error("the audit log holds no request for a Secret: the test is blind")
	}
}
