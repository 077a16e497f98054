package webhooks

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts decisions and measures reviews.
type Metrics struct {
	decisions *prometheus.CounterVec
	rights    *prometheus.CounterVec
	latency   *prometheus.HistogramVec
}

// NewMetrics registers the metrics, or takes up those that the registry has already:
//
//   - flight_operator_policy_decisions_total{policy, result}: what each policy said (allow, deny, warn, error);
//   - flight_operator_decision_rights_total{verb, result}: whether somebody who adopts, resolves or retains by annotation had
//     the right to (allowed, denied, undecided);
//   - flight_operator_admission_duration_seconds{webhook, result}: how long a review took, and how it ended (allowed,
//     denied, undecided).
//
// The labels are bounded by the policies of the cluster.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	decisions, err := register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flight_operator_policy_decisions_total",
		Help: "Decisions of policies at admission, by policy and result.",
	}, []string{"policy", "result"}))
	if err != nil {
		return nil, err
	}
	rights, err := register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flight_operator_decision_rights_total",
		Help: "Questions at admission whether a user has the verb adopt, resolve or retain, by verb and result.",
	}, []string{"verb", "result"}))
	if err != nil {
		return nil, err
	}
	latency, err := register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "flight_operator_admission_duration_seconds",
		Help:    "Time that the webhook took for a review, by webhook and result.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5},
	}, []string{"webhook", "result"}))
	if err != nil {
		return nil, err
	}
	return &Metrics{decisions: decisions, rights: rights, latency: latency}, nil
}

func register[C prometheus.Collector](registry prometheus.Registerer, c C) (C, error) {
	err := registry.Register(c)
	var twice prometheus.AlreadyRegisteredError
	if errors.As(err, &twice) {
		if existing, same := twice.ExistingCollector.(C); same {
			return existing, nil
		}
	}
	if err != nil {
		return c, fmt.Errorf("register admission metrics: %w", err)
	}
	return c, nil
}

func (m *Metrics) observe(webhook string, out outcome, took time.Duration) {
	m.latency.WithLabelValues(webhook, out.result).Observe(took.Seconds())
	for _, e := range out.evaluated {
		m.decisions.WithLabelValues(e.Policy, e.Result).Inc()
	}
	for _, r := range out.rights {
		m.rights.WithLabelValues(r.verb, r.result).Inc()
	}
}
