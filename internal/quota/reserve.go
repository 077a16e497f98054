package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// Review is one run of the admission of one ticket, and what the ticket claims.
type Review struct {
	// Ticket is the ticket's namespace and name.
	Ticket types.NamespacedName
	// UID is the ticket's.
	UID types.UID
	// Generation is the one that the ticket has once it is stored.
	Generation int64
	// Claims are those of the ticket as it is to be stored.
	Claims []Claim
	// Old are those of the ticket as it is stored, under the same policies; none for a new ticket.
	Old []Claim
}

// Reservation is the claim of a review on one bucket, above that of the stored ticket.
type Reservation struct {
	Claim
	// Old is what the stored ticket claims on this bucket; 0 for a new ticket.
	Old int64
	// Nonce tells this run of this review from all others. No two runs share one (rule 3).
	Nonce string
	// Ticket, UID and Generation are the review's.
	Ticket     types.NamespacedName
	UID        types.UID
	Generation int64
}

// Reservations are what a review has to reserve, in the order in which buckets are written. A claim that is not above
// the stored ticket's on the same bucket isn't among them: it always fits, and nothing is written for it (rule 5), or a
// bucket over its limit could never shrink. The error is a *ClaimError.
func (r Review) Reservations(nonce string) ([]Reservation, error) {
	claims, err := Sum(r.Claims)
	if err != nil {
		return nil, err
	}
	stored := map[string]int64{}
	// Claims of the stored ticket that can't be summed count as none, so that each claim is a raise: that errs towards
	// holding too much.
	if old, err := Sum(r.Old); err == nil {
		for _, c := range old {
			stored[c.Bucket()] = c.Amount
		}
	}
	var list []Reservation
	for _, c := range claims {
		if old := stored[c.Bucket()]; c.Amount > old {
			list = append(list, Reservation{Claim: c, Old: old, Nonce: nonce, Ticket: r.Ticket, UID: r.UID, Generation: r.Generation})
		}
	}
	return list, nil
}

// Refusal says that a bucket has no room.
type Refusal struct {
	// Policy and Key name the quota.
	Policy, Key string
	// Requested is what the ticket claims in all, and Old what its stored form does.
	Requested, Old int64
	// Limit is the claim's; Used, Reserved and Retained are the bucket's.
	Limit, Used, Reserved, Retained int64
	// Resets is when the window ends; zero: never.
	Resets time.Time
}

// Left is what the bucket still has.
func (r Refusal) Left() int64 { return max(0, r.Limit-plus(plus(r.Used, r.Reserved), r.Retained)) }

// String is the refusal in words for the user.
func (r Refusal) String() string { return r.words(" of policy " + r.Policy) }

// Text is String without the policy's name, for those who say it before.
func (r Refusal) Text() string { return r.words("") }

func (r Refusal) words(of string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "quota %q%s has no room: requested %d", r.Key, of, r.Requested)
	if r.Old > 0 {
		fmt.Fprintf(&b, " in place of %d", r.Old)
	}
	fmt.Fprintf(&b, ", limit %d, used %d, reserved %d", r.Limit, r.Used, r.Reserved)
	if r.Retained > 0 {
		fmt.Fprintf(&b, ", kept for tickets that are gone %d", r.Retained)
	}
	fmt.Fprintf(&b, ", left %d; ", r.Left())
	if r.Resets.IsZero() {
		b.WriteString("it never resets")
	} else {
		fmt.Fprintf(&b, "it resets at %s", r.Resets.UTC().Format("2006-01-02 15:04 MST"))
	}
	return b.String()
}

// RefusedError says that a ticket doesn't fit its quotas. It is final: it rests on what the API server said after the
// request came in.
type RefusedError struct {
	// Refusals are one or more, one a bucket, ordered by policy and key.
	Refusals []Refusal
}

// NewRefusedError orders refusals.
func NewRefusedError(refusals ...Refusal) *RefusedError {
	slices.SortFunc(refusals, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Key, b.Key))
	})
	return &RefusedError{Refusals: refusals}
}

func (e *RefusedError) Error() string {
	texts := make([]string, 0, len(e.Refusals))
	for _, r := range e.Refusals {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, "; ")
}

// StaleError says that a claim or a count was computed with an earlier generation of its policy than the bucket has seen
// (rule 8). The caller loads the policy and decides anew.
type StaleError struct {
	Policy string
	// Generation is the caller's, and Newest the one that is known.
	Generation, Newest int64
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("policy %s has changed (generation %d, not %d): try again", e.Policy, e.Newest, e.Generation)
}

// BusyError says that nobody could tell in time whether there is room. It refuses, and a repeat may be admitted.
type BusyError struct {
	Policy, Key string
	// Reason says what was in the way.
	Reason string
	// Cause is the error behind it, if there is one.
	Cause error
}

func (e *BusyError) Error() string {
	text := fmt.Sprintf("quota %q of policy %s is busy: %s; try again", e.Key, e.Policy, e.Reason)
	if e.Cause != nil {
		text += fmt.Sprintf(" (%v)", e.Cause)
	}
	return text
}

func (e *BusyError) Unwrap() error { return e.Cause }

// Reserve adds the entry of one review, or says why not: *RefusedError, *StaleError or *BusyError. Then the page is as
// before. A claim that is not above the stored ticket's fits and adds nothing (rule 5). An entry with the review's own nonce is there if an earlier write was stored and its answer lost: it is this
// review's, and nothing is added.
func (p *Page) Reserve(r Reservation) error {
	if err := p.Belongs(r.Claim); err != nil {
		return err
	}
	if r.Amount <= r.Old || p.holds(r.Nonce) {
		return nil
	}
	if newest := p.bucket.PolicyGeneration; r.PolicyGeneration < newest {
		return &StaleError{Policy: r.Policy, Generation: r.PolicyGeneration, Newest: newest}
	}
	entry := p.entry(r)
	if plus(p.Held(), p.growth(r.Ticket, entry)) > r.Limit {
		return NewRefusedError(p.refusal(r.Claim, r.Old))
	}
	if len(p.bucket.Entries) >= MaxEntries || p.bytes+size(entry) > MaxEntryBytes {
		return &BusyError{Policy: r.Policy, Key: r.Key, Reason: fmt.Sprintf("%d tickets are admitted and not counted yet", len(p.bucket.Entries))}
	}
	p.bucket.Entries = append(p.bucket.Entries, entry)
	p.enter(entry)
	p.touch(r.Claim)
	p.changed = true
	return nil
}

// holds reports whether a review's entry is there.
func (p *Page) holds(nonce string) bool {
	return slices.ContainsFunc(p.bucket.Entries, func(e flightsv1.QuotaEntry) bool { return e.Nonce == nonce })
}

// entry is the entry of a reservation. What used contains of the ticket is at most what its stored form claims, and at
// most what the ticket's other entries say (rule 4): the stored form may not be counted yet.
func (p *Page) entry(r Reservation) flightsv1.QuotaEntry {
	settled := r.Old
	if h, open := p.tickets[r.Ticket]; open {
		settled = min(settled, h.settled)
	}
	return flightsv1.QuotaEntry{
		Nonce: r.Nonce, Namespace: r.Ticket.Namespace, Name: r.Ticket.Name, UID: r.UID, Generation: r.Generation,
		PolicyGeneration: r.PolicyGeneration, Amount: r.Amount, Settled: settled,
	}
}

// growth is by how much an entry raises what is held.
func (p *Page) growth(ticket types.NamespacedName, e flightsv1.QuotaEntry) int64 {
	before, open := p.tickets[ticket]
	if !open {
		return max(e.Settled, e.Amount) - e.Settled
	}
	after := holding{settled: min(before.settled, e.Settled), largest: max(before.largest, e.Amount)}
	return after.beyond() - before.beyond()
}

// refusal is the refusal of a claim on the bucket as it is.
func (p *Page) refusal(c Claim, old int64) Refusal {
	b := p.bucket
	return Refusal{
		Policy: c.Policy, Key: c.Key, Requested: c.Amount, Old: old, Limit: c.Limit, Used: b.Used,
		Reserved: min(p.beyond, MaxAmount), Retained: b.Retained, Resets: c.Resets,
	}
}

// Notice tells a user that a quota is nearly used up.
type Notice struct {
	Policy, Key string
	// Held is what is taken in all, of Limit.
	Held, Limit int64
}

// String is the notice in words for the user.
func (n Notice) String() string { return n.words(" of policy " + n.Policy) }

// Text is String without the policy's name, for those who say it before.
func (n Notice) Text() string { return n.words("") }

func (n Notice) words(of string) string {
	return fmt.Sprintf("quota %q%s: %d of %d taken, %d left", n.Key, of, n.Held, n.Limit, max(0, n.Limit-n.Held))
}

// CompareNotices orders notices by policy and key.
func CompareNotices(a, b Notice) int {
	return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Key, b.Key))
}

// Notice is the warning that a claim asks for at what is held now.
func (p *Page) Notice(c Claim) (Notice, bool) {
	held := p.Held()
	return Notice{Policy: c.Policy, Key: c.Key, Held: held, Limit: c.Limit}, c.WarnAt > 0 && held >= c.WarnAt
}
