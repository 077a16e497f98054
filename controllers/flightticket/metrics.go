package flightticket

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// Metrics count what becomes of operations and where tickets are.
type Metrics struct {
	operations *prometheus.CounterVec
}

// NewMetrics registers the metrics of tickets. The number of tickets is counted in the cache whenever it is asked for.
func NewMetrics(registry prometheus.Registerer, tickets client.Reader) (*Metrics, error) {
	m := &Metrics{operations: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flight_operator_operations_total",
		Help: "Operations that are over, by kind (Book, Change, Cancel) and outcome (done, refused, not_made).",
	}, []string{"kind", "outcome"})}
	for _, collector := range []prometheus.Collector{m.operations, census{tickets: tickets, desc: ticketsDesc()}} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register ticket metrics: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) closed(kind flightsv1.OperationKind, outcome string) {
	m.operations.WithLabelValues(string(kind), outcome).Inc()
}

func ticketsDesc() *prometheus.Desc {
	return prometheus.NewDesc("flight_operator_tickets", "Tickets in the cluster, by state.", []string{"state"}, nil)
}

// census counts the tickets in the cache by state.
type census struct {
	tickets client.Reader
	desc    *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c census) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector. A cache that can't be read yet counts nothing.
func (c census) Collect(out chan<- prometheus.Metric) {
	var all flightsv1.FlightTicketList
	if err := c.tickets.List(context.Background(), &all, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	counts := map[flightsv1.TicketState]int{}
	for i := range all.Items {
		state := all.Items[i].Status.State
		if state == "" {
			state = flightsv1.StatePending
		}
		counts[state]++
	}
	for _, state := range states {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(counts[state]), string(state))
	}
}

var states = []flightsv1.TicketState{
	flightsv1.StatePending, flightsv1.StateAwaitingApproval, flightsv1.StateBooking, flightsv1.StateBooked,
	flightsv1.StateChanging, flightsv1.StateCancelling, flightsv1.StateStalled,
}
