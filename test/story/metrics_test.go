package story

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	s.Do("", "create", "serviceaccount", "nobody")
	nobody := strings.TrimSpace(s.Do("", "create", "token", "nobody"))
	somebody := s.MetricsReader()
	for _, program := range []string{"flight-webhook", "flight-controller"} {
		t.Run(program, func(t *testing.T) {
			metrics := s.In(t).NewScraper(program, house.metrics[program])
			for _, c := range []struct {
				who, token string
				want       int
			}{
				{"without a token", "", http.StatusUnauthorized},
				// controller-runtime takes a token that is no token for a fault of its own question.
				{"with a token that nobody gave", "made-up", http.StatusInternalServerError},
				{"without the right", nobody, http.StatusForbidden},
				{"with the right", somebody, http.StatusOK},
			} {
				code, body := metrics.Read(c.token)
				if code != c.want {
					t.Errorf("%s: HTTP %d, want %d", c.who, code, c.want)
				}
				if told := strings.Contains(body, "flight_operator_"); told != (c.want == http.StatusOK) {
					t.Errorf("%s: the answer holds metrics: %v", c.who, told)
				}
			}
		})
	}
}

func TestMetricsCountDecisionsOperationsAndTickets(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	enforce(s, "seats", "library: seats-per-ticket\nparameters: {max: 2}")
	s.Apply(s.TicketManifest("trip"))
	s.Refused(s.TicketManifest("more", "number: 3"), "apply", "-f", "-")
	s.Booked("trip", 2)
	token, policy := s.MetricsReader(), "seats-"+s.Namespace

	_, body := s.NewScraper("flight-webhook", house.metrics["flight-webhook"]).Read(token)
	webhook := exposition{s, s.ParseMetrics(body)}
	webhook.least("flight_operator_policy_decisions_total", 1, "policy", policy, "result", "allow")
	webhook.least("flight_operator_policy_decisions_total", 1, "policy", policy, "result", "deny")
	webhook.least("flight_operator_admission_duration_seconds", 1, "webhook", "validate-flightticket", "result", "allowed")
	webhook.least("flight_operator_admission_duration_seconds", 1, "webhook", "validate-flightticket", "result", "denied")
	webhook.least("flight_operator_certificate_expiry_timestamp_seconds", float64(time.Now().Unix()))

	_, body = s.NewScraper("flight-controller", house.metrics["flight-controller"]).Read(token)
	controller := exposition{s, s.ParseMetrics(body)}
	controller.least("flight_operator_operations_total", 1, "kind", "Book", "outcome", "done")
	controller.least("flight_operator_tickets", 1, "state", "Booked")
	controller.least("flight_operator_limiter_wait_seconds", 0)
	controller.least("flight_operator_certificate_expiry_timestamp_seconds", float64(time.Now().Unix()))
}

// exposition is what a program told in one scrape.
type exposition struct {
	*scene.Scene
	families map[string]*dto.MetricFamily
}

// least fails unless a metric with the labels, given as names and values, is at least a value; of a histogram it is the
// count that is compared.
func (e exposition) least(name string, least float64, labels ...string) {
	e.Helper()
	family := e.families[name]
	if family == nil {
		e.Errorf("there is no metric %s", name)
		return
	}
	for _, m := range family.Metric {
		value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		if carries(m, labels) && value >= least {
			return
		}
	}
	e.Errorf("no metric %s%q is at least %v: %v", name, labels, least, family.Metric)
}

func carries(m *dto.Metric, labels []string) bool {
	have := map[string]string{}
	for _, l := range m.Label {
		have[l.GetName()] = l.GetValue()
	}
	for i := 0; i+1 < len(labels); i += 2 {
		if have[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

func TestLogsAreJSONAndNameTheRequest(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	s.Refused(s.TicketManifest("nowhere", `to: "Lodnon"`), "apply", "-f", "-")
	found := false
	for _, line := range logLines(t, house.logs["flight-webhook"]) {
		if line["namespace"] == s.Namespace && line["result"] == "denied" {
			found = true
			if uid, ok := line["requestID"].(string); !ok || len(uid) != 36 {
				t.Errorf("the line does not name the request: %v", line)
			}
		}
	}
	if !found {
		t.Errorf("the log of the webhook has no line about the refusal in %s", s.Namespace)
	}
	if len(logLines(t, house.logs["flight-controller"])) == 0 {
		t.Error("the log of the controller is empty")
	}
}

// logLines reads a log, of which every line must be a JSON object with a level, a time and a message.
func logLines(t *testing.T, path string) []map[string]any {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var lines []map[string]any
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var line map[string]any
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Errorf("%s: a line is no JSON: %s", path, scanner.Text())
			continue
		}
		for _, field := range []string{"level", "time", "msg"} {
			if _, has := line[field]; !has {
				t.Errorf("%s: a line has no %s: %s", path, field, scanner.Text())
			}
		}
		lines = append(lines, line)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}
