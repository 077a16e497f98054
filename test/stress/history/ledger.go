package history

import "k8s.io/apimachinery/pkg/types"

// book adds up what stored tickets claim under one rule.
type book struct {
	rule     Rule
	held     map[types.UID]map[Place]Claim // of live tickets
	live     map[Place]int64
	retained map[Place]int64 // of tickets that are gone
}

func newBook(r Rule) *book {
	return &book{rule: r, held: map[types.UID]map[Place]Claim{}, live: map[Place]int64{}, retained: map[Place]int64{}}
}

// enter takes a version in and returns the claims by which it raised a bucket. What a ticket retains was claimed before,
// so that its end raises nothing.
func (b *book) enter(t Ticket) []Claim {
	was, is := b.held[t.UID], map[Place]Claim{}
	if !t.Gone {
		is = b.rule.of(t)
	}
	for place, c := range was {
		b.live[place] -= c.Amount
		if t.Gone && t.Booked && c.Retain && b.inForce(t.Revision) {
			b.retained[place] += c.Amount
		}
	}
	var raised []Claim
	for place, c := range is {
		b.live[place] += c.Amount
		if c.Amount > was[place].Amount {
			raised = append(raised, c)
		}
	}
	b.held[t.UID] = is
	if t.Gone {
		delete(b.held, t.UID)
	}
	return raised
}

// inForce says whether the rule's policy was there at a revision: what went before nobody could have retained.
func (b *book) inForce(revision uint64) bool { return b.rule.Ready != 0 && revision > b.rule.Ready }

// taken is what is claimed and retained in a bucket.
func (b *book) taken(p Place) int64 { return b.live[p] + b.retained[p] }
