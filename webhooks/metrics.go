package webhooks

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flight-operator/flight-operator/internal/quota/store"
)

// Metrics counts decisions, measures reviews, and is told of what the ledger writes.
type Metrics struct {
	decisions    *prometheus.CounterVec
	rights       *prometheus.CounterVec
	latency      *prometheus.HistogramVec
	reservations *prometheus.CounterVec
	writes       *prometheus.HistogramVec
	batches      prometheus.Histogram
}

var _ store.Metrics = (*Metrics)(nil)

// NewMetrics registers the metrics, or takes up those that the registry has already:
//
//   - flight_operator_policy_decisions_total{policy, result}: what each policy said (allow, deny, hold, warn, shadow,
//     error), its quota included;
//   - flight_operator_decision_rights_total{verb, result}: whether somebody who adopts, resolves or retains by annotation had
//     the right to (allowed, denied, undecided);
//   - flight_operator_admission_duration_seconds{webhook, result}: how long a review took, and how it ended (allowed,
//     denied, retry, undecided);
//   - flight_operator_quota_reservations_total{result}: what became of reviews that raise a claim (held, fits, refused,
//     stale, counting, busy, failed); fits is of a dry run;
//   - flight_operator_quota_write_duration_seconds{result}: the writes of quota buckets, and how they ended (written,
//     conflict, failed);
//   - flight_operator_quota_write_batch_size: how many reservations and releases one confirmed write carried.
//
// The labels are bounded by the policies of the cluster; no bucket and no key is one.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flight_operator_policy_decisions_total",
			Help: "Decisions of policies at admission, by policy and result.",
		}, []string{"policy", "result"}),
		rights: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flight_operator_decision_rights_total",
			Help: "Questions at admission whether a user has the verb adopt, resolve or retain, by verb and result.",
		}, []string{"verb", "result"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "flight_operator_admission_duration_seconds",
			Help:    "Time that the webhook took for a review, by webhook and result.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5},
		}, []string{"webhook", "result"}),
		reservations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flight_operator_quota_reservations_total",
			Help: "Reviews that raise what their ticket claims, by what became of the reservation.",
		}, []string{"result"}),
		writes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "flight_operator_quota_write_duration_seconds",
			Help:    "Time that the API server took for a write of a quota bucket, by result.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5},
		}, []string{"result"}),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "flight_operator_quota_write_batch_size",
			Help:    "Reservations and releases that one confirmed write of a quota bucket carried.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256},
		}),
	}
	return m, errors.Join(
		register(registry, &m.decisions), register(registry, &m.rights), register(registry, &m.latency),
		register(registry, &m.reservations), register(registry, &m.writes), register(registry, &m.batches),
	)
}

// register registers a metric, or puts the one in its place that the registry has already.
func register[C prometheus.Collector](registry prometheus.Registerer, c *C) error {
	err := registry.Register(*c)
	var twice prometheus.AlreadyRegisteredError
	if errors.As(err, &twice) {
		if existing, same := twice.ExistingCollector.(C); same {
			*c = existing
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("register admission metrics: %w", err)
	}
	return nil
}

func (m *Metrics) observe(webhook string, out outcome, took time.Duration) {
	m.latency.WithLabelValues(webhook, out.result).Observe(took.Seconds())
	for _, e := range out.evaluated {
		m.decisions.WithLabelValues(e.Policy, e.Result).Inc()
	}
	for _, r := range out.rights {
		m.rights.WithLabelValues(r.verb, r.result).Inc()
	}
	if out.charge.result != "" {
		m.reservations.WithLabelValues(out.charge.result).Inc()
	}
}

// Wrote counts one write of a quota bucket.
func (m *Metrics) Wrote(result store.Result, batch int, took time.Duration) {
	m.writes.WithLabelValues(string(result)).Observe(took.Seconds())
	if result == store.Written {
		m.batches.Observe(float64(batch))
	}
}
