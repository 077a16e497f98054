package stress

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flight-operator/flight-operator/test/stress/history"
)

// print tells what happened, for people.
func (r *report) print(t *testing.T) {
	t.Helper()
	var b strings.Builder
	line := func(what, format string, values ...any) {
		fmt.Fprintf(&b, "  %-46s%s\n", what, fmt.Sprintf(format, values...))
	}
	writes, conflicts, lost := r.faults.counts()
	reasons := map[history.Reason]int{}
	for _, reason := range r.reasons {
		reasons[reason]++
	}
	room := len(r.reasons) - reasons[history.Full]
	in := len(r.diary.took)
	batches := r.history.Batches()

	line("versions of tickets, of buckets", "%d, %d", len(r.history.Tickets), len(r.history.Buckets))
	line("buckets in all", "%d", r.history.Places())
	line("admitted (creates and changes)", "%d, %.0f a second", in, float64(in)/r.span.Seconds())
	line("refused by a quota", "%d requests, %d quotas", r.diary.total(noRoom), len(r.refusals))
	line("refused although room was left", "%d", room)
	for _, reason := range []history.Reason{history.InFlight, history.Behind, history.Unexplained} {
		line("    "+string(reason), "%d", reasons[reason])
	}
	line("over-admissions", "%d", len(r.over))
	line("leaks", "%d", len(r.leaks))
	line("an admission took (p50, p99)", "%s, %s", round(percentile(r.diary.took, 50)), round(percentile(r.diary.took, 99)))
	line("writes of buckets an admission", "%.2f", float64(writes)/float64(max(1, in)))
	line("entries a write (mean, p50, p99, most)", "%.2f, %d, %d, %d", mean(batches), percentile(batches, 50), percentile(batches, 99),
		slices.Max(append(batches, 0)))
	line("charged for nothing", "%d times; back after (p50, longest) %s, %s; %s over a controller's death", len(r.returned),
		round(percentile(r.returned, 50)), round(slices.Max(append(r.returned, 0))), round(slices.Max(append(r.whole, 0))))
	line("at rest after the race", "%s", round(r.rested))
	line("invented conflicts, lost answers", "%d, %d", conflicts, lost)
	line("killed: webhooks, controllers", "%d, %d", r.trouble.killed, len(r.trouble.revived))
	line("meanwhile", "%s", strings.Join(r.trouble.changed, ", "))
	t.Logf("\n%s\n%s", b.String(), r.diary.table())
}

func mean(values []int) float64 {
	sum := 0
	for _, v := range values {
		sum += v
	}
	return float64(sum) / float64(max(1, len(values)))
}

func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(100 * time.Millisecond)
}
