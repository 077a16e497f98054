package scene

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Scraper reads the metrics of one program, whose certificate cert-manager's authority has signed.
type Scraper struct {
	scene *Scene
	url   string
	http  *http.Client
}

// NewScraper returns one for a program (flight-webhook, flight-controller) and the address of its metrics.
func (s *Scene) NewScraper(program, url string) *Scraper {
	s.Helper()
	authority, err := base64.StdEncoding.DecodeString(s.Do("", "get", "-n", SystemNamespace, "secret", program+"-tls",
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
	return &Scraper{s, url, &http.Client{Transport: transport, Timeout: time.Minute}}
}

// Read asks for the metrics with a token, or without one.
func (m *Scraper) Read(token string) (code int, body string) {
	s := m.scene
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context, http.MethodGet, m.url, nil)
	if err != nil {
		s.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := m.http.Do(request)
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

// Value returns a metric without labels, such as those that the runtime tells of itself.
func (m *Scraper) Value(token, name string) float64 {
	s := m.scene
	s.Helper()
	_, body := m.Read(token)
	family := s.ParseMetrics(body)[name]
	if family == nil || len(family.Metric) != 1 {
		s.Fatalf("there is not one metric %s", name)
	}
	return family.Metric[0].GetGauge().GetValue() + family.Metric[0].GetCounter().GetValue()
}

// ParseMetrics reads what a program told in one scrape, by name.
func (s *Scene) ParseMetrics(body string) map[string]*dto.MetricFamily {
	s.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		s.Fatalf("the metrics are not in the text format: %v", err)
	}
	return families
}

// MetricsReader makes a ServiceAccount that may read metrics, and returns a token of it.
func (s *Scene) MetricsReader() string {
	s.Helper()
	s.Do("", "create", "serviceaccount", "reader")
	name := "metrics-" + s.Namespace
	s.Do("", "create", "clusterrolebinding", name, "--clusterrole=flights-metrics-reader", "--serviceaccount="+s.Namespace+":reader")
	s.Cleanup(func() {
		ctx, cancel := s.after()
		defer cancel()
		if out, err := s.Kubectl(ctx, "delete", "clusterrolebinding", name).CombinedOutput(); err != nil {
			s.Errorf("clean up: %v: %s", err, out)
		}
	})
	return strings.TrimSpace(s.Do("", "create", "token", "reader"))
}
