package policy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

func mutate(t *testing.T, e *Engine, r Request) Mutation {
	t.Helper()
	before := r.Ticket.DeepCopy()
	m, err := e.Mutate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, r.Ticket); diff != "" {
		t.Errorf("the request's ticket was changed: %s", diff)
	}
	return m
}

const setCabin = "package a\n\nmutate contains {\"path\": \"/spec/cabin\", \"value\": \"Economy\", \"when\": \"absent\"}\n"

func TestPoliciesSetFields(t *testing.T) {
	e := NewEngine(RuleMutate)
	mustSet(t, e, regoPolicy("a", setCabin))
	mustSet(t, e, regoPolicy("also", setCabin))
	mustSet(t, e, regoPolicy("b", `package b

mutate contains {"path": "/metadata/labels/example.com~1team", "value": input.namespace.labels.team, "when": "always"} if input.namespace.labels.team

mutate contains {"path": "/spec/maxPrice", "value": {"amount": "500.00", "currency": "EUR"}, "when": "absent"}

mutate contains {"path": "/spec/costCenter", "value": "4711", "when": "always"}

mutate contains {"path": "/spec/suspend", "value": true, "when": "always"} if input.ticket.spec.number > 4

deny contains "never" if input.ticket.spec.number > 100
`))
	mustSet(t, e, warning(regoPolicy("w", strings.Replace(setCabin, "Economy", "First", 1))))
	mustSet(t, e, shadow(regoPolicy("s", strings.Replace(setCabin, "Economy", "First", 1))))
	r := request()
	r.Ticket.Spec.CostCenter = "1"
	m := mutate(t, e, r)
	want := r.Ticket.DeepCopy()
	want.Labels = map[string]string{"example.com/team": "blue"}
	want.Spec.Cabin, want.Spec.CostCenter, want.Spec.MaxPrice = "Economy", "4711", &flightsv1.Money{Amount: "500.00", Currency: "EUR"}
	if diff := cmp.Diff(want, m.Ticket); diff != "" {
		t.Error(diff)
	}
	patches := []Patch{
		{"b", "/metadata/labels/example.com~1team", `"blue"`, WhenAlways},
		{"a", "/spec/cabin", `"Economy"`, WhenAbsent},
		{"b", "/spec/costCenter", `"4711"`, WhenAlways},
		{"b", "/spec/maxPrice", `{"amount":"500.00","currency":"EUR"}`, WhenAbsent},
	}
	if diff := cmp.Diff(patches, m.Patches); diff != "" || len(m.Denials) != 0 {
		t.Errorf("%s%+v", diff, m.Denials)
	}
	again := r
	again.Ticket = m.Ticket
	if m := mutate(t, e, again); len(m.Patches) != 0 || m.Ticket != again.Ticket {
		t.Errorf("a second run changes %+v", m.Patches)
	}
	again.Ticket.Spec.Cabin = "Business"
	if m := mutate(t, e, again); m.Ticket.Spec.Cabin != "Business" {
		t.Error("what the user wants is overwritten where only what is absent is to be set")
	}
	if d := decide(t, e, r); !d.Allowed() {
		t.Errorf("got %+v", d)
	}
}

func TestFieldsWithADefaultAreNeverAbsent(t *testing.T) {
	e := NewEngine(RuleMutate)
	mustSet(t, e, regoPolicy("a", `package a

mutate contains {"path": "/spec/suspend", "value": true, "when": "absent"}

mutate contains {"path": "/spec/deletionPolicy", "value": "Retain", "when": "absent"}
`))
	if m := mutate(t, e, request()); len(m.Patches) != 0 {
		t.Errorf("got %+v", m.Patches)
	}
}

func TestWhatMayNotBeSetIsRefused(t *testing.T) {
	element := func(path, value, when string) string {
		return "package a\n\nmutate contains x if {\n\tinput.ticket.spec.number == 5\n\tx := json.unmarshal(`{\"path\": \"" + path + "\", \"value\": " + value + ", \"when\": \"" + when + "\"}`)\n}\n"
	}
	for _, c := range []struct{ name, rego, want string }{
		{"from", element("/spec/from", `"LHR"`, "always"), `mutate: path "/spec/from" may not be set: of spec, there are cabin, costCenter, `},
		{"number", element("/spec/number", `1`, "always"), `path "/spec/number" may not be set`},
		{"a mistyped field", element("/spec/cabn", `"Economy"`, "always"), `path "/spec/cabn" may not be set (did you mean "cabin"?)`},
		{"a part of a field", element("/spec/maxPrice/amount", `"1"`, "always"), `path "/spec/maxPrice/amount" may not be set`},
		{"the whole spec", element("/spec", `{}`, "always"), `path "/spec" may not be set: it is /spec/ and a field, or /metadata/labels/ and a label`},
		{"status", element("/status/state", `"Booked"`, "always"), `path "/status/state" may not be set`},
		{"an annotation", element("/metadata/annotations/flights.com~1requested-by", `"x"`, "always"), `may not be set`},
		{"a finalizer", element("/metadata/finalizers", `[]`, "always"), `may not be set`},
		{"a label of ours", element("/metadata/labels/flights.com~1origin", `"LHR"`, "always"), `label "flights.com/origin" may not be set: those of flights.com/ are the webhook's`},
		{"no name of a label", element("/metadata/labels/a b", `"x"`, "always"), `"a b" is no name of a label`},
		{"no value of a label", element("/metadata/labels/a", `"x y"`, "always"), `"x y" is no value of label a`},
		{"a number for a label", element("/metadata/labels/a", `1`, "always"), `value of /metadata/labels/a is 1 where a text is due`},
		{"a value of another type", element("/spec/cabin", `1`, "always"), `value doesn't fit the ticket: `},
		{"a field that a value lacks", element("/spec/maxPrice", `{"minor": 1}`, "always"), `value doesn't fit the ticket: json: unknown field "minor"`},
		{"null", element("/spec/cabin", `null`, "always"), `value of /spec/cabin is null: a field can be set, not removed`},
		{"null for a label", element("/metadata/labels/a", `null`, "always"), `value of /metadata/labels/a is null`},
		{"another moment", element("/spec/cabin", `"Economy"`, "never"), `when is "never": it is absent or always`},
		{"no value", "package a\n\nmutate contains x if {\n\tinput.ticket.spec.number == 5\n\tx := json.unmarshal(`{\"path\": \"/spec/cabin\", \"when\": \"always\"}`)\n}\n", "an element has no value"},
		{"another field", "package a\n\nmutate contains x if {\n\tinput.ticket.spec.number == 5\n\tx := json.unmarshal(`{\"pth\": \"/spec/cabin\"}`)\n}\n", "pth is a field that an element doesn't have: there are path, value and when"},
		{"a text", "package a\n\nmutate contains x if {\n\tinput.ticket.spec.number == 5\n\tx := json.unmarshal(`1`)\n}\n", `an element is of type number where {"path": ..., "value": ..., "when": ...} is due`},
		{"very many fields", "package a\n\nmutate contains {\"path\": sprintf(\"/metadata/labels/l%d\", [x]), \"value\": \"x\", \"when\": \"always\"} if {\n\tinput.ticket.spec.number == 5\n\tsome x, _ in split(\"" + strings.Repeat("x", 21) + "\", \"\")\n}\n", "it sets more than 20 fields"},
		{"two values", element("/spec/cabin", `"First"`, "absent") + "\nmutate contains {\"path\": \"/spec/cabin\", \"value\": \"Economy\", \"when\": \"absent\"} if input.ticket.spec.number == 5\n", "it gives /spec/cabin two values"},
		{"a value that never comes to rest", "package a\n\nmutate contains {\"path\": \"/spec/costCenter\", \"value\": concat(\"\", [object.get(input.ticket.spec, \"costCenter\", \"\"), \"x\"]), \"when\": \"always\"} if input.ticket.spec.number == 5\n",
			"mutate: /spec/costCenter: it would change the ticket each time that it is asked"},
		{"a conflict", "package a\n\nmutate contains {\"path\": \"/spec/cabin\", \"value\": x, \"when\": \"always\"} if input.ticket.spec.number == 5\n\nx := \"First\" if input.dryRun == false\n\nx := \"Business\" if input.ticket.spec.number == 5\n", "produced conflicting values"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := NewEngine(RuleMutate)
			mustSet(t, e, regoPolicy("a", c.rego))
			m := mutate(t, e, requestForFive())
			if len(m.Denials) == 0 || m.Denials[0].Code != CodePolicyError || !strings.Contains(m.Denials[0].Message, c.want) {
				t.Errorf("denials %+v, want %s", m.Denials, c.want)
			}
			if len(m.Patches) != 0 || !cmp.Equal(m.Ticket, requestForFive().Ticket) {
				t.Errorf("a ticket that is refused is changed by %+v", m.Patches)
			}
		})
	}
}

func TestTwoPoliciesThatSetOneFieldToTwoValuesRefuse(t *testing.T) {
	e := NewEngine(RuleMutate)
	mustSet(t, e, regoPolicy("a", setCabin))
	mustSet(t, e, regoPolicy("b", strings.Replace(setCabin, "Economy", "First", 1)))
	m := mutate(t, e, request())
	if len(m.Denials) != 1 || !strings.Contains(m.Denials[0].Message, "the policies a and b give /spec/cabin two values") {
		t.Errorf("got %+v", m)
	}
}

func TestPatchesAreTriedWhenAPolicyIsApplied(t *testing.T) {
	for _, c := range []struct{ name, rego, want string }{
		{"a forbidden path", strings.Replace(setCabin, "/spec/cabin", "/spec/to", 1), `tried on a sample input (creating a ticket with nothing optional): mutate: path "/spec/to" may not be set`},
		{"two values", setCabin + "\nmutate contains {\"path\": \"/spec/cabin\", \"value\": \"First\", \"when\": \"always\"}\n", "mutate: it gives /spec/cabin two values"},
		{"a mistyped field", strings.Replace(setCabin, "\"when\"", "\"whenx\"", 1), `an element of mutate has the unknown field whenx: there are path, value and when (did you mean "when"?)`},
		{"a path that is a number", strings.Replace(setCabin, "\"/spec/cabin\"", "1", 1), `an element of mutate has a path of type number where a text is due`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := NewEngine(RuleMutate).Validate(t.Context(), regoPolicy("a", c.rego))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestMutateRefusesRequestsThatItCannotRead(t *testing.T) {
	e := NewEngine(RuleMutate)
	mustSet(t, e, regoPolicy("a", setCabin))
	var bad *RequestError
	if _, err := e.Mutate(t.Context(), Request{}); !errors.As(err, &bad) {
		t.Errorf("got %v", err)
	}
	r := request()
	r.Ticket.Spec.MaxPrice = &flightsv1.Money{Amount: "none", Currency: "EUR"}
	if _, err := e.Mutate(t.Context(), r); !errors.As(err, &bad) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Mutate(ctx, request()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, _, err := ApplyPatches(request().Ticket, []Patch{{"a", "/spec/from", `"LHR"`, WhenAlways}}); err == nil {
		t.Error("a forbidden path is set")
	}
}
