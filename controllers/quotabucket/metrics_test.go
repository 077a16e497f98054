package quotabucket

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// series are what a registry says, by name and labels.
func series(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}

func TestMetricsAreSumsByPolicyHoweverManyBucketsThereAre(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	var o observation
	for i := range 1000 {
		o.buckets = append(o.buckets, bucketOf(strconv.Itoa(i), func(b *flightsv1.QuotaBucket) { b.Used = int64(9 + i%3) }))
	}
	for _, asked := range []uint64{10, 25} {
		m.observed(o, asked)
	}
	m.counted()
	m.aged(3)
	want := map[string]float64{
		"flight_operator_quota_amount limit island": 10000, "flight_operator_quota_amount reserved island": 0,
		"flight_operator_quota_amount retained island": 0, "flight_operator_quota_amount used island": 9999,
		"flight_operator_quota_buckets full island": 333, "flight_operator_quota_buckets over island": 333, "flight_operator_quota_buckets room island": 334,
		"flight_operator_quota_claims_computed_total": 25, "flight_operator_quota_counts_total": 1, "flight_operator_quota_entries_aged_total": 3,
	}
	if diff := cmp.Diff(want, series(t, registry)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	m.observed(observation{}, 25)
	if got := len(series(t, registry)); got != 3 {
		t.Errorf("%d series are left when all buckets are gone", got)
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("metrics were registered twice")
	}
}
