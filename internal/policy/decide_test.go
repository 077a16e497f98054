package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

func warning(p *flightsv1.FlightPolicy) *flightsv1.FlightPolicy {
	p.Spec.Enforcement = flightsv1.EnforcementWarn
	return p
}

func TestDecideTellsEveryReasonOfEveryPolicyInOrder(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, regoPolicy("b", `package b

deny contains "second"

deny contains {"msg": "first", "code": "TooMany", "details": {"seats": input.ticket.spec.number}}

deny contains {"msg": "first", "code": "TooMany", "details": {"seats": 2}}

warn contains "careful"
`))
	mustSet(t, e, regoPolicy("a", "package a\n\ndeny contains \"zero\"\n"))
	mustSet(t, e, warning(regoPolicy("c", "package c\n\ndeny contains \"third\"\n\nwarn contains \"mind\"\n")))
	mustSet(t, e, regoPolicy("d", "package d\n\ndeny contains \"never\" if input.dryRun\n\nwarn contains \"never\" if input.dryRun\n"))
	mustSet(t, e, regoPolicy("e", "package e\n\nwarn contains \"note\"\n"))
	want := Decision{
		Denials: []Denial{
			{Policy: "a", Message: "zero"},
			{Policy: "b", Code: "TooMany", Message: "first", Details: `{"seats":2}`},
			{Policy: "b", Message: "second"},
		},
		Warnings: []Warning{{"b", "careful"}, {"c", "mind"}, {"c", "would refuse: third"}, {"e", "note"}},
		Evaluated: []PolicyResult{
			{Policy: "a", Result: ResultDeny}, {Policy: "b", Result: ResultDeny}, {Policy: "c", Result: ResultWarn},
			{Policy: "d", Result: ResultAllow}, {Policy: "e", Result: ResultWarn},
		},
	}
	for range 3 {
		if diff := cmp.Diff(want, decide(t, e, request())); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestDecideBoundsWhatPoliciesSay(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, regoPolicy("a", `package a

words := split(input.user.username, " ")

deny contains msg if some msg in words

warn contains msg if some msg in words

deny contains {"msg": "m", "details": input.user.username}
`))
	r := request()
	var words []string
	for i := range 30 {
		words = append(words, fmt.Sprintf("word%02d", i))
	}
	r.User.Username = strings.Join(words, " ") + " " + strings.Repeat("ü", 1000)
	d := decide(t, e, r)
	if len(d.Denials) != maxMessages+1 || d.Denials[maxMessages].Message != "…and 12 more reasons" {
		t.Errorf("%d denials, the last is %q", len(d.Denials), d.Denials[len(d.Denials)-1].Message)
	}
	if len(d.Warnings) != maxMessages+1 || d.Warnings[maxMessages].Message != "…and 11 more warnings" {
		t.Errorf("%d warnings, the last is %q", len(d.Warnings), d.Warnings[len(d.Warnings)-1].Message)
	}
	r.User.Username = strings.Repeat("ü", 1000)
	d = decide(t, e, r)
	for _, denial := range d.Denials {
		if len(denial.Message) > maxMessageBytes || strings.ContainsRune(denial.Message, '\uFFFD') || denial.Details != "" {
			t.Errorf("a denial of %d bytes with %d of details", len(denial.Message), len(denial.Details))
		}
	}
}

func TestDecideRefusesRequestsThatItCannotRead(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, regoPolicy("a", denyMany))
	for _, c := range []struct {
		name   string
		change func(*Request)
		want   string
	}{
		{"no ticket", func(r *Request) { r.Ticket = nil }, "ticket: is missing"},
		{"no time", func(r *Request) { r.Now = time.Time{} }, "now: is missing"},
		{"no stage", func(r *Request) { r.Stage = "" }, `stage: "" is none of Admission, Booking, Audit`},
		{"a deletion", func(r *Request) { r.Operation = "DELETE" }, `operation: "DELETE" is none of CREATE, UPDATE`},
		{"a price that is none", func(r *Request) { r.Ticket.Spec.MaxPrice = &flightsv1.Money{Amount: "1.234", Currency: "EUR"} }, "spec.maxPrice: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request()
			c.change(&r)
			_, err := e.Decide(t.Context(), r)
			var bad *RequestError
			if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Decide(ctx, request()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v after the caller had gone", err)
	}
}

// poison takes its time with tickets for five, and so passes when it is applied.
const poison = `package a

deny contains "never" if {
	input.ticket.spec.number == 5
	some a in xs
	some b in xs
	some c in xs
	some d in xs
	some e in xs
	some f in xs
	((((a + b) + c) + d) + e) + f < 0
}

xs := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30]
`

func requestForFive() Request {
	r := request()
	r.Ticket.Spec.Number = 5
	return r
}

func TestPoisonousRegoIsRefusedWhenItIsApplied(t *testing.T) {
	for _, c := range []struct{ name, rego, want string }{
		{"one that takes too long", strings.Replace(poison, "input.ticket.spec.number == 5", "input.ticket.spec.number > 0", 1), "it takes more than the 100ms that a policy has"},
		{"a conflict", "package a\n\ndeny contains x\n\nx := \"1\" if input.ticket.spec.number > 0\n\nx := \"2\" if input.ticket.spec.number > 0\n", "produced conflicting values"},
		{"an error of a built-in", "package a\n\ndeny contains \"x\" if to_number(\"one\") == 1\n", "tried on a sample input (creating a ticket with nothing optional): spec.rego:3: eval_builtin_error: to_number"},
		{"an empty message", "package a\n\ndeny contains \"\"\n", "deny: an element is an empty text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := validate(t.Context(), regoPolicy("a", c.rego))
			var compile *CompileError
			if !errors.As(err, &compile) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.500v, want %s", err, c.want)
			}
		})
	}
}

func TestRegoThatAllocatesTooMuchIsRefusedWhenItIsApplied(t *testing.T) {
	rego := "package a\n\ndeny contains \"never\" if count(long) == 1\n\nlong := concat(short, [short | some _ in split(short, \"\")])\n\n" +
		"short := \"" + strings.Repeat("x", 2000) + "\"\n"
	l := defaultLimits()
	l.policy, l.allocations = time.Minute, 1<<20
	_, err := compilation{limits: l}.compile(t.Context(), regoPolicy("a", rego))
	if want := "it allocates more than the 1 MiB that a policy has"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := validate(t.Context(), regoPolicy("a", denyMany)); err != nil {
		t.Errorf("a small one: %v", err)
	}
}

func TestPoisonousRegoIsCutAndHarmsNobodyElse(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, regoPolicy("bad", poison))
	mustSet(t, e, warning(regoPolicy("bad-warning", poison)))
	mustSet(t, e, regoPolicy("good", denyMany))
	d := decide(t, e, requestForFive())
	want := []string{
		"bad: policy bad could not be evaluated: it took too long: more than 100ms; it is asked anew at every try: if it goes on like this, ask a cluster admin",
		"good: 5 seats are too many",
	}
	if diff := cmp.Diff(want, denied(d)); diff != "" {
		t.Error(diff)
	}
	if d.Denials[0].Code != CodePolicyError || !d.Denials[0].Late || d.Denials[1].Late || !errors.Is(d.Evaluated[0].Err, errTimeout) {
		t.Errorf("got %+v", d)
	}
	if diff := cmp.Diff([]string{"bad-warning: policy bad-warning could not be evaluated: it took too long: more than 100ms; ask a cluster admin"}, warned(d)); diff != "" {
		t.Error(diff)
	}
	// The same policies are fine with other tickets.
	if diff := cmp.Diff([]string{"good: 2 seats are too many"}, denied(decide(t, e, request()))); diff != "" {
		t.Error(diff)
	}
}

func TestAPolicyThatRunsOutOfTimeAgainAndAgainIsPutInQuarantine(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, regoPolicy("bad", poison))
	e.limits.policy = time.Millisecond
	for range maxStrikes {
		decide(t, e, requestForFive())
	}
	got := decide(t, e, request())
	if got.Allowed() || !got.Denials[0].Late || !strings.Contains(got.Denials[0].Message, "it is in quarantine for another ") {
		t.Errorf("got %+v", got)
	}
	update := regoPolicy("bad", denyMany)
	update.Generation = 2
	mustSet(t, e, update)
	e.limits.policy = time.Minute
	if diff := cmp.Diff([]string{"bad: 2 seats are too many"}, denied(decide(t, e, request()))); diff != "" {
		t.Errorf("a new generation starts free: %s", diff)
	}
}

func TestQuarantineEndsAndAGoodAnswerClearsIt(t *testing.T) {
	var q quarantine
	now := time.Unix(1000, 0)
	for range maxStrikes - 1 {
		q.report(true, now)
	}
	q.report(false, now)
	q.report(true, now)
	if err := q.check(now); err != nil {
		t.Errorf("time-outs that aren't in a row: %v", err)
	}
	q.report(true, now)
	q.report(true, now)
	if q.check(now.Add(coolDown-time.Second)) == nil {
		t.Error("free within the cool-down")
	}
	if err := q.check(now.Add(coolDown)); err != nil {
		t.Errorf("after the cool-down: %v", err)
	}
	q.report(true, now.Add(coolDown))
	if q.check(now.Add(coolDown)) == nil {
		t.Error("the next time-out doesn't put it back")
	}
}

func TestARequestThatRunsOutOfTimeIsRefused(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, regoPolicy("a", poison))
	mustSet(t, e, regoPolicy("b", denyMany))
	e.limits.policy, e.limits.request = time.Minute, 20*time.Millisecond
	d := decide(t, e, requestForFive())
	if len(d.Denials) != 2 || d.Denials[0].Code != CodePolicyError || d.Denials[1].Code != CodePolicyError ||
		!d.Denials[0].Late || !d.Denials[1].Late ||
		!strings.Contains(d.Denials[1].Message, "the request ended first") {
		t.Errorf("got %+v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	e.limits.request = time.Minute
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := e.Decide(ctx, requestForFive()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v when the caller left", err)
	}
}

func TestErrorsAtRunTimeRefuse(t *testing.T) {
	for _, c := range []struct{ name, rego, want string }{
		{"a conflict", "package a\n\ndeny contains x if input.ticket.spec.number == 5\n\nx := \"1\" if input.dryRun == false\n\nx := \"2\" if input.ticket.spec.number == 5\n", "produced conflicting values"},
		{"an error of a built-in", "package a\n\ndeny contains \"x\" if {\n\tinput.ticket.spec.number == 5\n\tto_number(input.user.username) == 1\n}\n", "eval_builtin_error: to_number"},
		{"an empty text", "package a\n\ndeny contains msg if {\n\tinput.ticket.spec.number == 5\n\tmsg := trim(input.user.username, \"asha\")\n}\n", "deny: an element is an empty text"},
		{"an empty warning", "package a\n\nwarn contains msg if {\n\tinput.ticket.spec.number == 5\n\tmsg := trim(input.user.username, \"asha\")\n}\n", "warn: an element is an empty text"},
		{"a number", "package a\n\ndeny contains msg if {\n\tinput.ticket.spec.number == 5\n\tmsg := json.unmarshal(\"1\")\n}\n", "deny: an element is of type number where a text is due"},
		{"an object without msg", "package a\n\ndeny contains msg if {\n\tinput.ticket.spec.number == 5\n\tmsg := json.unmarshal(\"{}\")\n}\n", "deny: an element has no msg"},
		{"an object with another field", "package a\n\ndeny contains msg if {\n\tinput.ticket.spec.number == 5\n\tmsg := json.unmarshal(`{\"msg\": \"x\", \"reason\": 1}`)\n}\n", `deny: an element has the unknown field "reason"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := NewEngine()
			mustSet(t, e, regoPolicy("enforced", c.rego))
			mustSet(t, e, warning(regoPolicy("warning", c.rego)))
			d := decide(t, e, requestForFive())
			if len(d.Denials) != 1 || d.Denials[0].Code != CodePolicyError || d.Denials[0].Late || !strings.Contains(d.Denials[0].Message, c.want) {
				t.Errorf("denials %+v, want %s", d.Denials, c.want)
			}
			if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0].Message, c.want) {
				t.Errorf("warnings %+v, want %s", d.Warnings, c.want)
			}
		})
	}
}

func TestAQueryWithoutAResultRefuses(t *testing.T) {
	for name, query := range map[string]string{"undefined": "deny = data.a.nothing", "no set": "deny = 1", "no set of warnings": "warn = 1"} {
		t.Run(name, func(t *testing.T) {
			e := NewEngine()
			mustSet(t, e, regoPolicy("a", denyMany))
			rev := e.snapshot.Load().policies[0].serving
			program := *rev.program
			program.query = mustParseBody(t, query)
			rev.program = &program
			if d := decide(t, e, request()); d.Allowed() || d.Denials[0].Code != CodePolicyError {
				t.Errorf("got %+v", d)
			}
		})
	}
}

func TestAPanicInEvaluationRefuses(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, regoPolicy("a", denyMany))
	e.snapshot.Load().policies[0].serving.program = nil
	if d := decide(t, e, request()); d.Allowed() || !strings.Contains(d.Denials[0].Message, "panic") {
		t.Errorf("got %+v", d)
	}
}

func TestPoliciesConcernWhatTheyMatch(t *testing.T) {
	blue := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
	red := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	for _, c := range []struct {
		name  string
		match flightsv1.PolicyMatch
		want  bool
	}{
		{"everything without a match", flightsv1.PolicyMatch{}, true},
		{"a namespace by name", flightsv1.PolicyMatch{Namespaces: []string{"other", "travel"}}, true},
		{"not another namespace", flightsv1.PolicyMatch{Namespaces: []string{"other"}}, false},
		{"not a namespace whose name only begins like it", flightsv1.PolicyMatch{Namespaces: []string{"trav"}}, false},
		{"a namespace by prefix", flightsv1.PolicyMatch{Namespaces: []string{"tra*"}}, true},
		{"all namespaces by a star", flightsv1.PolicyMatch{Namespaces: []string{"*"}}, true},
		{"not an excluded namespace", flightsv1.PolicyMatch{ExcludedNamespaces: []string{"travel"}}, false},
		{"not one excluded by prefix", flightsv1.PolicyMatch{Namespaces: []string{"travel"}, ExcludedNamespaces: []string{"t*"}}, false},
		{"one that others are excluded beside", flightsv1.PolicyMatch{ExcludedNamespaces: []string{"other"}}, true},
		{"a namespace by label", flightsv1.PolicyMatch{NamespaceSelector: blue}, true},
		{"not a namespace with another label", flightsv1.PolicyMatch{NamespaceSelector: red}, false},
		{"only what meets all", flightsv1.PolicyMatch{Namespaces: []string{"travel"}, NamespaceSelector: red}, false},
		{"an operation", flightsv1.PolicyMatch{Operations: []flightsv1.Operation{"UPDATE", "CREATE"}}, true},
		{"not another operation", flightsv1.PolicyMatch{Operations: []flightsv1.Operation{"UPDATE"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := NewEngine()
			p := regoPolicy("a", denyMany)
			p.Spec.Match = c.match
			mustSet(t, e, p)
			if got := len(decide(t, e, request()).Evaluated) == 1; got != c.want {
				t.Errorf("asked: %v, want %v", got, c.want)
			}
		})
	}
}

func TestMatchesThatCannotBeReadAreRefused(t *testing.T) {
	p := regoPolicy("a", denyMany)
	p.Spec.Match = flightsv1.PolicyMatch{
		Namespaces: []string{"a*b"}, ExcludedNamespaces: []string{"ok", "*a"},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}},
	}
	p.Spec.Enforcement = "Dream"
	want := `spec.enforcement: "Dream" isn't supported by this version; use Enforce, Warn or Shadow
spec.match.excludedNamespaces[1]: "*a": a * may only stand at the end, as in "team-*"
spec.match.namespaceSelector: "Like" is not a valid label selector operator
spec.match.namespaces[0]: "a*b": a * may only stand at the end, as in "team-*"`
	if diff := cmp.Diff(want, fmt.Sprint(validate(t.Context(), p))); diff != "" {
		t.Error(diff)
	}
}

// Thousands of policies for other namespaces cost a ticket nothing.
func TestPoliciesOfOtherNamespacesCostNothing(t *testing.T) {
	allocations := func(others int) float64 {
		e := NewEngine()
		mustSet(t, e, regoPolicy("a", denyMany))
		setLike(t, e, others, func(i int) *flightsv1.FlightPolicy {
			p := regoPolicy(fmt.Sprintf("other-%d", i), denyMany)
			p.Spec.Match.Namespaces = []string{fmt.Sprintf("elsewhere-%d", i)}
			return p
		})
		if d := decide(t, e, request()); len(d.Evaluated) != 1 {
			t.Fatalf("%d policies were asked", len(d.Evaluated))
		}
		return testing.AllocsPerRun(50, func() { decide(t, e, request()) })
	}
	if few, many := allocations(0), allocations(10000); many > few+20 {
		t.Errorf("%v allocations with 10000 others, %v without", many, few)
	}
}

func TestPoliciesThatOnlyWarnTakeNoTimeFromThoseThatRefuse(t *testing.T) {
	e := NewEngine()
	mustSet(t, e, warning(regoPolicy("a", poison)))
	mustSet(t, e, warning(regoPolicy("b", poison)))
	mustSet(t, e, regoPolicy("c", "package c\n\ndeny contains \"no\" if input.ticket.spec.number < 0\n"))
	e.limits.policy, e.limits.request = time.Minute, 200*time.Millisecond
	d := decide(t, e, requestForFive())
	if !d.Allowed() || len(d.Warnings) != 2 {
		t.Errorf("got %+v", d)
	}
	if names := []string{d.Evaluated[0].Policy, d.Evaluated[1].Policy, d.Evaluated[2].Policy}; !slices.IsSorted(names) {
		t.Errorf("the results are of %v", names)
	}
}
