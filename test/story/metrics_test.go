package story

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	dto "github.com/prometheus/client_model/go"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// scraper is somebody who reads the metrics of one program, whose certificate cert-manager's authority has signed.
type scraper struct {
	*scene.Scene
	url  string
	http *http.Client
}

func newScraper(s *scene.Scene, program string) *scraper {
	s.Helper()
	authority, err := base64.StdEncoding.DecodeString(s.Do("", "get", "-n", scene.SystemNamespace, "secret", program+"-tls",
		"-o", `jsonpath={.data.ca\.crt}`))
	if err != nil {
		s.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		s.Fatalf("Secret %s-tls holds no authority", program)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	s.Cleanup(transport.CloseIdleConnections)
	return &scraper{s, house.metrics[program], &http.Client{Transport: transport, Timeout: time.Minute}}
}

// read asks for the metrics with a token, or without one.
func (s *scraper) read(token string) (code int, body string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context, http.MethodGet, s.url, nil)
	if err != nil {
		s.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := s.http.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// reader makes a ServiceAccount that may read metrics, and returns a token of it.
func reader(s *scene.Scene) string {
	s.Helper()
	s.Do("", "create", "serviceaccount", "reader")
	name := "metrics-" + s.Namespace
	s.Do("", "create", "clusterrolebinding", name, "--clusterrole=flights-metrics-reader", "--serviceaccount="+s.Namespace+":reader")
	s.Cleanup(func() {
		if out, err := house.kubectl("delete", "clusterrolebinding", name); err != nil {
			s.Errorf("clean up: %v: %s", err, out)
		}
	})
	return strings.TrimSpace(s.Do("", "create", "token", "reader"))
}

func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	s.Do("", "create", "serviceaccount", "nobody")
	nobody := strings.TrimSpace(s.Do("", "create", "token", "nobody"))
	somebody := reader(s)
	for _, program := range []string{"flight-webhook", "flight-controller"} {
		t.Run(program, func(t *testing.T) {
			metrics := newScraper(s.In(t), program)
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
				code, body := metrics.read(c.token)
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
	token, policy := reader(s), "seats-"+s.Namespace

	_, body := newScraper(s, "flight-webhook").read(token)
	webhook := parse(s, body)
	webhook.least("flight_operator_policy_decisions_total", 1, "policy", policy, "result", "allow")
	webhook.least("flight_operator_policy_decisions_total", 1, "policy", policy, "result", "deny")
	webhook.least("flight_operator_admission_duration_seconds", 1, "webhook", "validate-flightticket", "result", "allowed")
	webhook.least("flight_operator_admission_duration_seconds", 1, "webhook", "validate-flightticket", "result", "denied")
	webhook.least("flight_operator_certificate_expiry_timestamp_seconds", float64(time.Now().Unix()))

	_, body = newScraper(s, "flight-controller").read(token)
	controller := parse(s, body)
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

func parse(s *scene.Scene, body string) exposition {
	s.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		s.Fatalf("the metrics are not in the text format: %v", err)
	}
	return exposition{s, families}
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

// Every scene's token holds the canary, and one provider here echoes it. It must be found nowhere but in the Secret.
func TestACredentialIsFoundInNoLogEventStatusOrMetric(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.Inject(simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectEcho, Times: 1})
	s.Inject(simulator.Fault{Operation: simulator.OpQuote, Effect: simulator.EffectEcho, Times: 1})
	s.Apply(s.TicketManifest("trip"))
	for range 2 { // the quote is refused, then the booking
		s.Waiting("trip", "BookingRefused")
		s.Do("", "annotate", "ticket", "trip", "--overwrite", "flights.com/reconcile-requested-at="+time.Now().String())
	}
	s.Booked("trip", 2)
	s.StoreToken(s.Token() + "-wrong")
	s.ProviderIs("CredentialsRefused")
	s.StoreToken(s.Token())
	s.ProviderIs("ProviderReady")

	token := reader(s)
	haystacks := map[string]string{
		"the objects": s.Do("", "get", "tickets,bookingproviders,flightpolicies,leases.coordination.k8s.io", "-A", "-o", "yaml"),
		"the events":  s.Do("", "get", "events", "-A", "-o", "yaml"),
	}
	for _, program := range []string{"flight-webhook", "flight-controller"} {
		_, haystacks["the metrics of "+program] = newScraper(s, program).read(token)
		log, err := os.ReadFile(house.logs[program])
		if err != nil {
			t.Fatal(err)
		}
		haystacks["the log of "+program] = string(log)
	}
	for where, text := range haystacks {
		if len(text) < 100 {
			t.Errorf("%s were not read: %q", where, text)
		}
		if strings.Contains(text, scene.Canary) {
			t.Errorf("a credential is in %s", where)
		}
	}
}
