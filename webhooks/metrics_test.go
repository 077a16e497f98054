package webhooks

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flight-operator/flight-operator/internal/quota/store"
)

func TestWritesOfTheLedgerAreCountedByResultAndTheirBatchesOnceConfirmed(t *testing.T) {
	registry := prometheus.NewRegistry()
	var m *Metrics
	for range 2 { // the second takes up the first one's
		var err error
		if m, err = NewMetrics(registry); err != nil {
			t.Fatal(err)
		}
		m.Wrote(store.Written, 3, time.Millisecond)
		m.Wrote(store.Conflict, 5, time.Millisecond)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	count, carried := map[string]uint64{}, 0.0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			count[name] = metric.GetHistogram().GetSampleCount()
			if family.GetName() == "flight_operator_quota_write_batch_size" {
				carried = metric.GetHistogram().GetSampleSum()
			}
		}
	}
	for name, want := range map[string]uint64{
		"flight_operator_quota_write_duration_seconds written":  2,
		"flight_operator_quota_write_duration_seconds conflict": 2,
		"flight_operator_quota_write_batch_size":                2,
	} {
		if count[name] != want {
			t.Errorf("%s counts %d, want %d: %v", name, count[name], want, count)
		}
	}
	if carried != 6 {
		t.Errorf("the confirmed writes carried %v, want 6", carried)
	}
}
