package ledger

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// clusterWide stands in the column of namespaces for the buckets that all namespaces share.
const clusterWide = "(cluster)"

// Table shows buckets, one a row.
func Table(buckets []flightsv1.QuotaBucket, policies Policies, now time.Time) *metav1.Table {
	table := newTable("Namespace", "Policy", "Key", "Used", "Reserved", "Limit", "Available", "Resets", "State", legend)
	for i := range buckets {
		b := &buckets[i]
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{
			place(b), b.Policy, b.Key, b.Used, b.Reserved, b.Limit, b.Available, resets(b, now), policies.State(b), bar(b),
		}})
	}
	return table
}

// Table shows what holds buckets, one holder a row. The problems say what the rows don't tell.
func (c *Claims) Table(buckets []flightsv1.QuotaBucket) (table *metav1.Table, problems []error) {
	table = newTable("Namespace", "Policy", "Key", "Held by", "Amount", "As")
	problems = c.unasked()
	for i := range buckets {
		b := &buckets[i]
		holders, uncounted := Holders(b, c.buckets[placeOf(b)])
		for _, h := range holders {
			table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{place(b), b.Policy, b.Key, h.Ticket, h.Amount, h.As}})
		}
		if uncounted > 0 {
			problems = append(problems, fmt.Errorf("policy %s, key %q: tickets claim %d more than is counted so far; look again", b.Policy, b.Key, uncounted))
		}
	}
	return table, problems
}

func newTable(columns ...string) *metav1.Table {
	table := &metav1.Table{}
	for _, name := range columns {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	return table
}

func place(b *flightsv1.QuotaBucket) string {
	if b.Scope == flightsv1.QuotaScopeCluster {
		return clusterWide
	}
	return b.Namespace
}
