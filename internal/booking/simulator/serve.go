package simulator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxRequestBytes caps what a caller may send.
const maxRequestBytes = 1 << 20

// Call is a request that arrived, whatever became of it.
type Call struct {
	At        time.Time `json:"at"`
	Operation Operation `json:"operation"`
	// Account is empty if the token was refused.
	Account string `json:"account,omitempty"`
	// Status that was answered; zero while the call is held, and for ever if the connection was dropped.
	Status int `json:"status"`
	// Key is the Idempotency-Key.
	Key string `json:"key,omitempty"`
	// Replayed says that the stored answer of the same key was sent.
	Replayed bool `json:"replayed,omitempty"`
	// Held says that a delaying fault holds the call now.
	Held bool `json:"held,omitempty"`
	// Fault is the effect that struck, the last one if several did.
	Fault Effect `json:"fault,omitempty"`
}

// Calls returns all calls that arrived, the oldest first.
func (s *Simulator) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := make([]Call, 0, len(s.calls))
	for _, c := range s.calls {
		calls = append(calls, *c)
	}
	return calls
}

// Count returns how many calls of one kind arrived; an empty kind counts all.
func (s *Simulator) Count(op Operation) int {
	n := 0
	for _, c := range s.Calls() {
		if op == "" || c.Operation == op {
			n++
		}
	}
	return n
}

// reply is an answer that is complete before its first byte is sent, so that a fault can still spoil it.
type reply struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *reply) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *reply) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *reply) Write(b []byte) (int, error) { return r.body.Write(b) }

// serve takes a call through faults, authentication and idempotency to the routes.
func (s *Simulator) serve(w http.ResponseWriter, r *http.Request, routes http.Handler) {
	call, hit, known := s.arrive(r)
	if hit[1] != nil {
		s.hold(hit[0], call)
		if hit[1].Effect == EffectResetBefore {
			reset(w)
			return
		}
		answer := &reply{header: w.Header(), status: http.StatusOK}
		hit[1].instead(answer, r, s.newID())
		s.send(w, answer, call)
		return
	}
	if !known {
		answer := &reply{header: w.Header()}
		writeProblem(answer, newProblem(http.StatusUnauthorized, "token_refused", "The token is missing or not valid."))
		s.send(w, answer, call)
		return
	}
	if wait := s.excess(call.Account); wait > 0 {
		answer := &reply{header: w.Header()}
		writeProblem(answer, tooMany(wait))
		s.send(w, answer, call)
		return
	}
	// The ledger goes on when the caller is gone.
	ctx := context.WithValue(context.WithoutCancel(r.Context()), accountKey{}, call.Account)
	answer := s.once(r.WithContext(ctx), call, func(w http.ResponseWriter, r *http.Request) {
		s.hold(hit[0], call)
		routes.ServeHTTP(w, r)
	})
	s.hold(hit[2], call)
	s.linger()
	if hit[3] != nil {
		s.spoil(w, answer, hit[3], call)
		return
	}
	for name, values := range answer.header {
		w.Header()[name] = values
	}
	s.send(w, answer, call)
}

// arrive notes a call, says who makes it, and takes the faults that strike it.
func (s *Simulator) arrive(r *http.Request) (*Call, plan, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := operationOf(r)
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	account, known := s.tokens[token]
	call := &Call{At: s.now(), Operation: op, Key: r.Header.Get("Idempotency-Key")}
	if bearer && known {
		call.Account = account
	}
	hit := s.strike(op)
	for _, f := range hit {
		if f != nil {
			call.Fault = f.Effect
		}
	}
	s.calls = append(s.calls, call)
	s.notify()
	return call, hit, bearer && known
}

func operationOf(r *http.Request) Operation {
	one := strings.HasPrefix(r.URL.Path, "/bookings/")
	switch {
	case r.URL.Path == "/account":
		return OpAccount
	case r.URL.Path == "/quotes":
		return OpQuote
	case r.URL.Path == "/bookings" && r.Method == http.MethodPost:
		return OpBook
	case r.URL.Path == "/bookings":
		return OpFind
	case one && r.Method == http.MethodPut:
		return OpChange
	case one && r.Method == http.MethodDelete:
		return OpCancel
	default:
		return OpGet
	}
}

// send writes an answer whose headers are set, and notes its status.
func (s *Simulator) send(w http.ResponseWriter, answer *reply, call *Call) {
	s.mu.Lock()
	call.Status = answer.status
	s.notify()
	s.mu.Unlock()
	w.Header().Set("Content-Length", strconv.Itoa(answer.body.Len()))
	w.WriteHeader(answer.status)
	// The caller may be gone; what is committed stays.
	_, _ = w.Write(answer.body.Bytes())
}

// spoil answers a call that was made in the way that a fault says.
func (s *Simulator) spoil(w http.ResponseWriter, answer *reply, f *Fault, call *Call) {
	spoilt := &reply{header: w.Header(), status: answer.status}
	w.Header().Set("Content-Type", "application/json")
	switch f.Effect {
	case EffectResetAfter:
		reset(w)
		return
	case EffectDropAfter:
		panic(http.ErrAbortHandler) //nolint:forbidigo // the way that net/http offers to cut a connection
	case EffectTruncate:
		w.Header().Set("Content-Length", strconv.Itoa(answer.body.Len()))
		w.WriteHeader(answer.status)
		_, _ = w.Write(answer.body.Bytes()[:answer.body.Len()/2])
		// The half must be on its way before the connection breaks.
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) //nolint:forbidigo // the way that net/http offers to cut a connection
	case EffectErrorAfter:
		writeProblem(spoilt, f.amend(newProblem(http.StatusInternalServerError, "internal", "Something broke.")))
	case EffectHTML:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		spoilt.body.WriteString("<!doctype html><title>Welcome</title><p>All is well.")
	case EffectNoID:
		spoilt.body.WriteString(`{"status":"confirmed"}`)
	case EffectHuge:
		spoilt.body.WriteString(`{"reason":"` + strings.Repeat("x", 2<<20) + `"}`)
	default:
		spoilt.body.WriteString(`{"id": "bk-`)
	}
	s.send(w, spoilt, call)
}

// stored is the answer of the first call with a key.
type stored struct {
	print   [sha256.Size]byte
	expires time.Time
	answer  *reply // nil while the call runs
}

// once makes a call, or repeats the stored answer of the call that had its key first.
func (s *Simulator) once(r *http.Request, call *Call, do http.HandlerFunc) *reply {
	fresh := &reply{header: http.Header{}, status: http.StatusOK}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBytes+1))
	if err != nil || len(body) > maxRequestBytes {
		writeProblem(fresh, newProblem(http.StatusBadRequest, "bad_request", "The body is broken or too large."))
		return fresh
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	entry, first, p := s.claim(r, call, sha256.Sum256(slices.Concat([]byte(r.Method+r.URL.Path+"\n"), body)))
	switch {
	case p != nil:
		writeProblem(fresh, p)
		return fresh
	case entry != nil && !first:
		fresh.status = entry.answer.status
		fresh.header = entry.answer.header.Clone()
		fresh.header.Set("Idempotent-Replayed", "true")
		fresh.body.Write(entry.answer.body.Bytes())
		return fresh
	}
	do(fresh, r)
	if entry != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		entry.answer = fresh
	}
	return fresh
}

// claim finds or opens the entry of a call's key. No entry means that the call has no key, or keys are ignored.
func (s *Simulator) claim(r *http.Request, call *Call, print [sha256.Size]byte) (entry *stored, first bool, p *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ttl := s.settings.IdempotencyKeyTTL.Duration
	if call.Key == "" || ttl <= 0 || r.Method == http.MethodGet {
		return nil, false, nil
	}
	id := call.Account + "\n" + call.Key
	entry, now := s.keys[id], s.now()
	switch {
	case entry == nil || entry.answer != nil && entry.expires.Before(now):
		entry = &stored{print: print, expires: now.Add(ttl)}
		s.keys[id] = entry
		return entry, true, nil
	case entry.print != print:
		return nil, false, refusal("idempotency_key_reused", "The key was used for another call.")
	case entry.answer == nil:
		return nil, false, newProblem(http.StatusConflict, "idempotency_key_in_progress", "The first call with this key still runs.")
	}
	call.Replayed = true
	return entry, false, nil
}
