package quota

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// NotCountedError says that the second gate can't tell yet. The caller waits for the count and asks again.
type NotCountedError struct {
	Policy, Key string
	// Reason says what is missing.
	Reason string
}

func (e *NotCountedError) Error() string {
	return fmt.Sprintf("quota %q of policy %s: %s", e.Key, e.Policy, e.Reason)
}

// Bookable says as an error why a stored ticket must not be booked now: *RefusedError, *StaleError or *NotCountedError
// (rule 13). Tickets that have a booking or an open operation come first, then older ones, then this one. So of tickets
// that are stored beyond the limit, because it was lowered or no review saw them, the oldest that fit are booked.
//
// The page is of a live read, and the claim is the ticket's as it is now. The snapshot must show what this process wrote
// about operations itself; a snapshot behind the bucket's count is an old leader's, and decides nothing.
func (p *Page) Bookable(c Claim, ticket types.UID, s Snapshot) error {
	if err := p.Belongs(c); err != nil {
		return err
	}
	oldest := min(c.PolicyGeneration, s.PolicyGeneration)
	if newest := max(p.bucket.PolicyGeneration, c.PolicyGeneration, s.PolicyGeneration); oldest < newest {
		return &StaleError{Policy: c.Policy, Generation: oldest, Newest: newest}
	}
	wait := func(reason string) error { return &NotCountedError{Policy: c.Policy, Key: c.Key, Reason: reason} }
	if !p.CountedBy(c.PolicyGeneration) {
		return wait("it is being counted")
	}
	if later(p.bucket.CountedRevision, s.From) {
		return wait(fmt.Sprintf("the cache is at revision %s, and revision %s is counted already", s.From, p.bucket.CountedRevision))
	}
	this, others, found := p.split(ticket, s)
	if !found {
		return wait("the ticket is not counted yet")
	}
	for _, e := range p.bucket.Entries {
		if Stored(e, this.UID, this.Generation) {
			return wait("the ticket is not counted yet")
		}
	}
	before := p.bucket.Retained
	for _, t := range others {
		if t.Committed || older(t, this) {
			before = plus(before, t.Amount)
		}
	}
	if plus(before, max(c.Amount, this.Amount)) > c.Limit {
		r := p.refusal(c, 0)
		r.Used, r.Reserved = min(before-p.bucket.Retained, MaxAmount), 0 // what comes before this ticket, not what is admitted
		return NewRefusedError(r)
	}
	return nil
}

// split tells one ticket from the others that count; departed ones are in retained.
func (p *Page) split(ticket types.UID, s Snapshot) (this Ticket, others []Ticket, found bool) {
	for t := range s.Tickets {
		switch {
		case t.UID == ticket:
			this, found = t, true
		case !Departed(&p.bucket, t.UID):
			others = append(others, t)
		}
	}
	return this, others, found
}

// older orders tickets by creation, and those of the same second by UID.
func older(a, b Ticket) bool {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID)) < 0
}
