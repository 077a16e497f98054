package webhooks

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts decisions and measures reviews.
type Metrics struct {
	decisions *prometheus.CounterVec
	latency   *prometheus.HistogramVec
}

// NewMetrics registers the metrics:
//
//   - flight_operator_policy_decisions_total{policy, result}: what each policy said (allow, deny, warn, error);
//   - flight_operator_admission_duration_seconds{webhook, result}: how long a review took, and how it ended (allowed,
//     denied, undecided).
//
// The labels are bounded by the policies of the cluster. It fails when the registry has the metrics already.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flight_operator_policy_decisions_total",
			Help: "Decisions of policies at admission, by policy and result.",
		}, []string{"policy", "result"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "flight_operator_admission_duration_seconds",
			Help:    "Time that the webhook took for a review, by webhook and result.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5},
		}, []string{"webhook", "result"}),
	}
	for _, c := range []prometheus.Collector{m.decisions, m.latency} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register admission metrics: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) observe(webhook string, out outcome, took time.Duration) {
	m.latency.WithLabelValues(webhook, out.result).Observe(took.Seconds())
	for _, e := range out.evaluated {
		m.decisions.WithLabelValues(e.Policy, e.Result).Inc()
	}
}
