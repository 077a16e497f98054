package webhooks

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
	"github.com/flight-operator/flight-operator/internal/quota/store"
)

// ledger takes down what it is asked, and answers as it is told.
type ledger struct {
	// reserve and check answer; nil: it fits.
	reserve, check func(context.Context, quota.Review) ([]quota.Notice, error)

	reserved, checked []quota.Review
	held              []*store.Hold
	released          []*store.Hold
}

func (l *ledger) Reserve(ctx context.Context, r quota.Review) (*store.Hold, error) {
	l.reserved = append(l.reserved, r)
	notices, err := answerOf(ctx, l.reserve, r)
	if err != nil {
		return nil, err
	}
	l.held = append(l.held, &store.Hold{Notices: notices})
	return l.held[len(l.held)-1], nil
}

func (l *ledger) Check(ctx context.Context, r quota.Review) ([]quota.Notice, error) {
	l.checked = append(l.checked, r)
	return answerOf(ctx, l.check, r)
}

func (l *ledger) Release(h *store.Hold) { l.released = append(l.released, h) }

func answerOf(ctx context.Context, answer func(context.Context, quota.Review) ([]quota.Notice, error), r quota.Review) ([]quota.Notice, error) {
	if answer == nil {
		return nil, nil
	}
	return answer(ctx, r)
}

// failing answers every question with an error.
func failing(err error) func(context.Context, quota.Review) ([]quota.Notice, error) {
	return func(context.Context, quota.Review) ([]quota.Notice, error) { return nil, err }
}

// superseded waits as the policies' loader does; by default until the review ends.
func (w *world) superseded(ctx context.Context, name string, uid types.UID, generation int64) error {
	if w.renew == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return w.renew(name, uid, generation)
}

const countsSeats = `package seats
quota contains {"key": "Asha Rao", "scope": "Cluster", "amount": input.ticket.spec.number, "limit": 4, "warn_at": 3}
`

const countsTickets = `package tickets
quota contains {"key": "all", "scope": "Namespace", "amount": 1, "limit": 1, "resets": "2027-04-01T00:00:00Z"}
`

func seats(n int32) func(*flightsv1.FlightTicket) {
	return func(ft *flightsv1.FlightTicket) { ft.Spec.Number = n }
}

func dryRun(req admission.Request) admission.Request {
	yes := true
	req.DryRun = &yes
	return req
}

func quotaWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, rego("seats", countsSeats, flightsv1.EnforcementEnforce), rego("tickets", countsTickets, flightsv1.EnforcementEnforce))
}
