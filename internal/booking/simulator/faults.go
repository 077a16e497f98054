package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Operation is a kind of call.
type Operation string

// The kinds of call. An empty Operation in a fault means all of them.
const (
	OpAccount Operation = "Account"
	OpQuote   Operation = "Quote"
	OpBook    Operation = "Book"
	OpGet     Operation = "Get"
	OpFind    Operation = "Find"
	OpChange  Operation = "Change"
	OpCancel  Operation = "Cancel"
)

// Effect is what a fault does to a call.
type Effect string

// The effects; their words say what each does. "before" means that nothing was committed, "after" that the call did all
// that it asks for.
const (
	EffectRefuse       Effect = "refuse"
	EffectUnauthorized Effect = "unauthorized"
	EffectThrottle     Effect = "throttle"
	EffectRedirect     Effect = "redirect"
	EffectErrorBefore  Effect = "error-before"
	EffectErrorAfter   Effect = "error-after"
	EffectDropBefore   Effect = "drop-before"
	EffectDropAfter    Effect = "drop-after"
	EffectResetBefore  Effect = "reset-before"
	EffectResetAfter   Effect = "reset-after"
	EffectTruncate     Effect = "truncate"
	EffectGarbage      Effect = "garbage"
	EffectHTML         Effect = "html"
	EffectNoID         Effect = "no-id"
	EffectHuge         Effect = "huge"
	EffectEcho         Effect = "echo"
	EffectDelayBefore  Effect = "delay-before"
	EffectDelayAfter   Effect = "delay-after"
)

// effect is when an effect acts, and what it does in words. One fault of each phase can act on a call.
type effect struct {
	phase int
	does  string
}

var effects = map[Effect]effect{
	EffectDelayBefore:  {0, "waits for the fault's delay, or until the end, and then goes on even if the caller is gone"},
	EffectRefuse:       {1, "answers a problem: 422 sold_out unless the fault says otherwise; nothing is committed"},
	EffectUnauthorized: {1, "answers 401 token_refused; nothing is committed"},
	EffectThrottle:     {1, "answers 429 with the fault's retryAfter; nothing is committed"},
	EffectRedirect:     {1, "answers 307 to another host, or to the fault's location; nothing is committed"},
	EffectErrorBefore:  {1, "answers a 5xx, 500 unless the fault says otherwise; nothing is committed"},
	EffectDropBefore:   {1, "closes the connection; nothing is committed"},
	EffectResetBefore:  {1, "resets the connection; nothing is committed"},
	EffectEcho:         {1, "refuses, and repeats the caller's Authorization header and a new trace id in the detail"},
	EffectDelayAfter:   {2, "commits, then waits for the fault's delay, or until the end, before it answers"},
	EffectErrorAfter:   {3, "commits and answers a 5xx"},
	EffectDropAfter:    {3, "commits and closes the connection without an answer"},
	EffectResetAfter:   {3, "commits and resets the connection"},
	EffectTruncate:     {3, "commits and breaks the answer off in the middle"},
	EffectGarbage:      {3, "commits and answers with what only looks like JSON"},
	EffectHTML:         {3, "commits and answers with a web page"},
	EffectNoID:         {3, "commits and answers without the booking's id"},
	EffectHuge:         {3, "commits and answers with more than a client should read"},
}

// Effects returns the known effects in the order of the alphabet, for help and for errors.
func Effects() []Effect { return slices.Sorted(maps.Keys(effects)) }

// Does says what an effect does, for help.
func (e Effect) Does() string { return effects[e].does }

// Fault is something that goes wrong with calls of one kind.
type Fault struct {
	// Operation whose calls it strikes; empty means all.
	Operation Operation `json:"operation,omitempty"`
	Effect    Effect    `json:"effect"`
	// Times is how many calls it strikes; zero means until it is cleared.
	Times int `json:"times,omitempty"`
	// Skip is how many calls go well before the first that it strikes.
	Skip int `json:"skip,omitempty"`
	// Status, Code and Detail replace those of the answered problem.
	Status int    `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
	// RetryAfter is sent as the header: seconds or an HTTP date.
	RetryAfter string `json:"retryAfter,omitempty"`
	// Location is where a redirect leads; empty means a host that doesn't exist.
	Location string `json:"location,omitempty"`
	// Delay of the two delaying effects; zero means until Release is closed or the simulator is.
	Delay metav1.Duration `json:"delay,omitzero"`
	// Release ends a delay when it is closed (in-process tests; instead of sleeping).
	Release <-chan struct{} `json:"-"`
}

// armed is a fault with what is left of it.
type armed struct {
	Fault
	left int
}

// Inject switches a fault on, after those that are on already. It fails on an unknown effect.
func (s *Simulator) Inject(f Fault) error {
	if err := f.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &armed{Fault: f, left: f.Times})
	return nil
}

func (f Fault) check() error {
	operations := []Operation{"", OpAccount, OpQuote, OpBook, OpGet, OpFind, OpChange, OpCancel}
	if _, ok := effects[f.Effect]; !ok {
		return fmt.Errorf("effect %q is none of %v", f.Effect, Effects())
	}
	if !slices.Contains(operations, f.Operation) {
		return fmt.Errorf("operation %q is none of %v", f.Operation, operations[1:])
	}
	if f.Times < 0 || f.Skip < 0 || f.Delay.Duration < 0 {
		return fmt.Errorf("times, skip and delay of a fault are not negative")
	}
	if f.Status != 0 && (f.Status < 300 || f.Status > 599) {
		return fmt.Errorf("status %d of a fault is not 300 to 599", f.Status)
	}
	return nil
}

// ClearFaults switches all faults off. Calls that one holds go on waiting for their release.
func (s *Simulator) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Faults returns the faults that are on, with Times as what is left of them.
func (s *Simulator) Faults() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var on []Fault
	for _, a := range s.faults {
		f := a.Fault
		f.Times = a.left
		on = append(on, f)
	}
	return on
}

// plan is what strikes one call, by phase.
type plan [4]*Fault

// strike takes the faults for one call. The caller holds mu.
func (s *Simulator) strike(op Operation) plan {
	var p plan
	for _, a := range s.faults {
		phase := effects[a.Effect].phase
		if a.Operation != "" && a.Operation != op || p[phase] != nil {
			continue
		}
		if a.Skip > 0 {
			a.Skip--
			continue
		}
		f := a.Fault
		p[phase] = &f
		if a.Times > 0 {
			a.left--
		}
	}
	s.faults = slices.DeleteFunc(s.faults, func(a *armed) bool { return a.Times > 0 && a.left <= 0 })
	return p
}

// hold waits as a delaying fault says, and never for the caller: a slow server commits for callers that are gone.
func (s *Simulator) hold(f *Fault, call *Call) {
	if f == nil {
		return
	}
	s.mark(call, true)
	defer s.mark(call, false)
	var over <-chan time.Time
	if f.Delay.Duration > 0 {
		timer := time.NewTimer(f.Delay.Duration)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-f.Release:
	case <-s.done:
	}
}

func (s *Simulator) mark(call *Call, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call.Held = held
	s.notify()
}

// instead answers a call that isn't made.
func (f *Fault) instead(w http.ResponseWriter, r *http.Request, traceID string) {
	var p *problem
	switch f.Effect {
	case EffectDropBefore:
		panic(http.ErrAbortHandler) //nolint:forbidigo // the way that net/http offers to cut a connection
	case EffectRedirect:
		w.Header().Set("Location", cmp.Or(f.Location, "https://elsewhere.invalid"+r.URL.Path))
		p = newProblem(http.StatusTemporaryRedirect, "moved", "Ask elsewhere.")
	case EffectUnauthorized:
		p = newProblem(http.StatusUnauthorized, "token_refused", "The token is not valid.")
	case EffectThrottle:
		p = newProblem(http.StatusTooManyRequests, "rate_limited", "Too many calls.")
	case EffectErrorBefore:
		p = newProblem(http.StatusInternalServerError, "internal", "Something broke.")
	case EffectEcho:
		p = refusal("sold_out", "No seats for %s (trace %s).", r.Header.Get("Authorization"), traceID)
	default:
		p = refusal("sold_out", "No seats are left on this flight.")
	}
	writeProblem(w, f.amend(p))
}

// amend puts the fault's own words into a problem.
func (f *Fault) amend(p *problem) *problem {
	if f.Status != 0 {
		p.body.Status, p.body.Title = int32(f.Status), http.StatusText(f.Status)
	}
	if f.Code != "" {
		p.body.Code = f.Code
	}
	if f.Detail != "" {
		p.body.Detail = f.Detail
	}
	p.retryAfter = f.RetryAfter
	return p
}
