package store

import (
	"github.com/flight-operator/flight-operator/internal/quota"
)

// plan is what becomes of each request of a batch once the page is written. Nothing of it is said before: a reservation
// may be refused because of another one of the batch, which isn't stored yet.
type plan struct {
	batch []*request
	page  *quota.Page // nil: there is no bucket, and none is needed

	fitting []fitted
	refused []misfit
}

type fitted struct {
	*request
	notice *quota.Notice
}

type misfit struct {
	*request
	err error
}

// plan applies a batch to a running copy of the bucket.
func (w *worker) plan(batch []*request) *plan {
	p := &plan{batch: batch}
	if w.bucket != nil {
		p.page = quota.Open(w.bucket)
	}
	for _, r := range batch {
		switch {
		case r.reservation != nil:
			if p.page == nil {
				p.page = quota.Blank(r.reservation.Claim, w.place)
			}
			p.reserve(r)
		case p.page != nil:
			p.page.Release(r.nonce)
			fallthrough
		default:
			p.fitting = append(p.fitting, fitted{request: r})
		}
	}
	return p
}

// reserve tries one reservation. Whatever isn't held is refused.
func (p *plan) reserve(r *request) {
	if err := p.page.Reserve(*r.reservation); err != nil {
		p.refused = append(p.refused, misfit{r, err})
		return
	}
	p.fitting = append(p.fitting, fitted{r, noticeOf(p.page, *r.reservation)})
}

// refusedBefore reports whether a refusal rests on something older than its request.
func (p *plan) refusedBefore(asOf uint64) bool {
	for _, m := range p.refused {
		if asOf < m.arrived {
			return true
		}
	}
	return false
}

// answer tells everybody. What fits must be stored by now.
func (p *plan) answer() {
	for _, m := range p.refused {
		m.answer(answer{err: m.err})
	}
	for _, f := range p.fitting {
		f.answer(answer{notice: f.notice})
	}
}

// doubt notes that the entries may be stored.
func (p *plan) doubt() {
	for _, f := range p.fitting {
		f.uncertain = true
	}
}
