package quotabucket

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flight-operator/flight-operator/internal/quota"
)

// Metrics tell how full quotas are and how the counting goes. Amounts are summed by policy: policies are few and cluster
// admins write them, while keys of buckets follow from what users write and may be many. A policy has four series and no more,
// whatever tickets come. Which bucket is full, kubectl get quotabuckets says.
type Metrics struct {
	counts, dropped, asked prometheus.Counter
	amounts                *prometheus.GaugeVec
	full                   *prometheus.GaugeVec

	mu      sync.Mutex
	claimed uint64 // evaluations that were added to asked
}

// NewMetrics registers the metrics of quotas.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		counts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "flight_operator_quota_counts_total", Help: "Counts of quota buckets that were carried out.",
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "flight_operator_quota_entries_aged_total", Help: "Entries of quota buckets that were dropped because their requests stored nothing.",
		}),
		asked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "flight_operator_quota_claims_computed_total", Help: "Evaluations of a stored ticket's claims by a quota policy.",
		}),
		amounts: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "flight_operator_quota_amount", Help: "Sums over the buckets of a quota policy, by kind (used, reserved, retained, limit), in the policy's unit.",
		}, []string{"policy", "kind"}),
		full: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "flight_operator_quota_buckets", Help: "Buckets of a quota policy, by fill (room, full, over).",
		}, []string{"policy", "fill"}),
	}
	for _, c := range []prometheus.Collector{m.counts, m.dropped, m.asked, m.amounts, m.full} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register quota metrics: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) counted() {
	if m != nil {
		m.counts.Inc()
	}
}

func (m *Metrics) aged(entries int) {
	if m != nil {
		m.dropped.Add(float64(entries))
	}
}

// observed sets the gauges to what a round saw.
func (m *Metrics) observed(o observation, asked uint64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked.Add(float64(asked - m.claimed))
	m.claimed = asked
	m.amounts.Reset()
	m.full.Reset()
	for _, b := range o.buckets {
		amount := func(kind string, n int64) { m.amounts.WithLabelValues(b.Policy, kind).Add(float64(n)) }
		amount("used", b.Used)
		amount("reserved", b.Reserved)
		amount("retained", b.Retained)
		amount("limit", b.Limit)
		fill := "room"
		switch held := quota.Open(b).Held(); {
		case held > b.Limit:
			fill = "over"
		case held == b.Limit:
			fill = "full"
		}
		m.full.WithLabelValues(b.Policy, fill).Inc()
	}
}
