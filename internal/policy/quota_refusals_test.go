package policy

import (
	"errors"
	"strings"
	"testing"
)

func TestQuotasThatCannotBeReadRefuse(t *testing.T) {
	element := func(change string) string {
		return "package a\n\nquota contains object.union({\"key\": \"k\", \"scope\": \"Cluster\", \"amount\": 1, \"limit\": 5}, json.unmarshal(x)) if {\n" +
			"\tinput.ticket.spec.number == 5\n\tx := `" + change + "`\n}\n"
	}
	two := func(change string) string {
		return element("{}") + "\nquota contains object.union({\"key\": \"k\", \"scope\": \"Cluster\", \"amount\": 2, \"limit\": 5}, json.unmarshal(x)) if {\n" +
			"\tinput.ticket.spec.number == 5\n\tx := `" + change + "`\n}\n"
	}
	for _, c := range []struct{ name, rego, want string }{
		{"an unknown field", element(`{"limits": 1}`), "quota: limits is a field that an element doesn't have: there are key, scope, amount, limit, resets, retain and warn_at"},
		{"a key of a wrong type", element(`{"key": 1}`), "quota: key is of type number where a text is due"},
		{"an empty key", element(`{"key": ""}`), `quota: key "": the key is empty`},
		{"an over-long key", element(`{"key": "` + strings.Repeat("x", 254) + `"}`), "the key has 254 bytes: use at most 253"},
		{"a key with a line break", element(`{"key": "a\nb"}`), "the key holds a control character or a line break"},
		{"an unknown scope", element(`{"scope": "cluster"}`), `scope "cluster" is none: use "Namespace" or "Cluster"`},
		{"a scope of a wrong type", element(`{"scope": true}`), "quota: scope is of type boolean where a text is due"},
		{"a negative amount", element(`{"amount": -1}`), "quota: amount is -1: it must be an integer from 0 to 2^53"},
		{"a fraction", element(`{"amount": 0.5}`), "quota: amount is 0.5: it must be an integer"},
		{"a fraction that a float can't hold", element(`{"amount": 4503599627370497.25}`), "quota: amount is 4503599627370497.25: it must be an integer"},
		{"too large an amount", element(`{"amount": 9007199254740993}`), "quota: amount is 9007199254740993: it must be an integer from 0 to 2^53"},
		{"an amount beyond all bounds", element(`{"amount": 1e999999999}`), "number too big"},
		{"an amount of very many digits", element(`{"amount": 1` + strings.Repeat("0", 200) + `}`), "quota: amount has more than 100 digits"},
		{"an amount as a text", element(`{"amount": "1"}`), "quota: amount is of type string where a number is due"},
		{"a negative limit", element(`{"limit": -5}`), "quota: limit is -5"},
		{"a fraction to warn at", element(`{"warn_at": 4.5}`), "quota: warn_at is 4.5"},
		{"a date without a time", element(`{"resets": "2027-04-01"}`), `quota: resets is "2027-04-01": it must be a time in the form of RFC 3339`},
		{"a time as a number", element(`{"resets": 1}`), "quota: resets is of type number where a text is due"},
		{"a word for a boolean", element(`{"retain": "yes"}`), "quota: retain is of type string where a boolean is due"},
		{"nothing where something is due", element(`{"amount": null}`), "quota: amount is of type null where a number is due"},
		{"two limits of one key", two(`{"limit": 6}`), `quota: key "k": has two limits, 5 and 6: give each key one limit`},
		{"two ends of one key", two(`{"resets": "2027-04-01T00:00:00Z"}`), `quota: key "k": has two values of resets`},
		{"a sum that is too large", two(`{"amount": 9007199254740992}`), "the amounts of one ticket add up to more than 2^53"},
		{"a text", "package a\n\nquota contains x if {\n\tinput.ticket.spec.number == 5\n\tx := json.unmarshal(`\"x\"`)\n}\n", `quota: an element is of type string where {"key": ...,`},
		{"an element without a limit", "package a\n\nquota contains x if {\n\tinput.ticket.spec.number == 5\n\tx := json.unmarshal(`{\"key\": \"k\", \"scope\": \"Cluster\", \"amount\": 1}`)\n}\n", "quota: an element has no limit"},
		{"many keys", "package a\n\nquota contains {\"key\": x, \"scope\": \"Cluster\", \"amount\": 1, \"limit\": 1} if {\n\tinput.ticket.spec.number == 5\n\tsome x in split(\"abcdefghijklmnopqrstu\", \"\")\n}\n", "quota: it has more than 20 keys for one ticket"},
		{"very many elements", "package a\n\nquota contains {\"key\": \"k\", \"scope\": \"Cluster\", \"amount\": (x * 100) + y, \"limit\": 1} if {\n\tinput.ticket.spec.number == 5\n\tsome x, _ in split(\"" +
			strings.Repeat("x", 11) + "\", \"\")\n\tsome y, _ in split(\"" + strings.Repeat("y", 100) + "\", \"\")\n}\n", "quota: it has more than 1000 elements"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := NewEngine(RuleQuota)
			mustSet(t, e, regoPolicy("enforced", c.rego))
			mustSet(t, e, warning(regoPolicy("warning", c.rego)))
			d := decide(t, e, requestForFive())
			if len(d.Denials) != 1 || d.Denials[0].Code != CodePolicyError || !strings.Contains(d.Denials[0].Message, c.want) {
				t.Errorf("denials %+v, want %s", d.Denials, c.want)
			}
			if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0].Message, c.want) {
				t.Errorf("warnings %+v, want %s", d.Warnings, c.want)
			}
			if len(d.Claims)+len(d.WarnClaims) != 0 {
				t.Errorf("a policy that can't be read claims %+v", d)
			}
		})
	}
}

func TestQuotasAreRefusedWhenTheyAreApplied(t *testing.T) {
	element := func(amount string) string {
		return "package a\n\nquota contains {\"key\": \"k\", \"scope\": \"Cluster\", \"amount\": " + amount + ", \"limit\": 5}"
	}
	const may = ". They may read: input.ticket.spec, input.ticket.metadata.name, input.ticket.metadata.namespace, input.ticket.metadata.uid, " +
		"input.ticket.metadata.creationTimestamp, input.requester, input.namespace.name, input.route, input.parameters"
	const changes = ", which may change while the ticket stays as it is, and then the count would no longer be of what was admitted"
	for _, c := range []struct{ name, rego, want string }{
		{"no set", "package a\n\nquota := {}\n", `spec.rego:3:1: quota must be a partial set, not a single value: write quota contains {"key": ..., "scope": ..., "amount": ..., "limit": ..., "resets": ..., "retain": ..., "warn_at": ...} if { ... }`},
		{"a text", "package a\n\nquota contains \"x\"\n", `spec.rego:3:1: an element of quota must be {"key": ..., "scope": ..., "amount": ..., "limit": ..., "resets": ..., "retain": ..., "warn_at": ...}, not string`},
		{"a mistyped field", "package a\n\nquota contains {\"key\": \"k\", \"scope\": \"Cluster\", \"amount\": 1, \"limt\": 5}\n", `spec.rego:3:1: an element of quota has the unknown field limt: there are key, scope, amount, limit, resets, retain and warn_at (did you mean "limit"?)`},
		{"no limit", "package a\n\nquota contains {\"key\": \"k\", \"scope\": \"Cluster\", \"amount\": 1}\n", `spec.rego:3:1: an element of quota has no limit`},
		{"an amount that is a text", element("input.ticket.spec.from"), `spec.rego:3:1: an element of quota has an amount of type string where a number is due`},
		{"a field that may be absent", element("input.ticket.spec.maxPrice.minor"), `spec.rego:3:59: input.ticket.spec.maxPrice may be absent, and then the element is undefined and quota doesn't fire: ask for it in the body of the rule, and let deny say what becomes of other tickets`},

		{"a label of the ticket", element("count(input.ticket.metadata.labels)"), "spec.rego:3:65: quota and what it uses may not read input.ticket.metadata.labels" + changes + may},
		{"who created it, as an annotation", element(`1`) + ` if input.ticket.metadata.annotations["flights.com/requested-by"] == "x"`, `admitted. input.requester is the same. They may read: `},
		{"who asks", element("count(input.user.username)"), "may not read input.user.username" + changes + ". input.requester is who created the ticket" + may},
		{"a label of the namespace", element("count(input.namespace.labels)"), "may not read input.namespace.labels" + changes},
		{"the time", element("count(input.now)"), "may not read input.now" + changes + ". Take windows of time from the ticket's own dates" + may},
		{"the operation", element("1") + " if input.operation == \"CREATE\"", "may not read input.operation" + changes},
		{"the stage", element("1") + " if input.stage == \"Admission\"", "may not read input.stage" + changes},
		{"a dry run", element("1") + " if not input.dryRun", "may not read input.dryRun" + changes},
		{"the old ticket", element("input.oldTicket.spec.number"), "may not read input.oldTicket.spec.number" + changes},
		{"the generation", element("1") + " if input.ticket.metadata.generation > 1", "may not read input.ticket.metadata.generation" + changes},
		{"the offer at admission", element("1") + " if input.offer.price.minor > 1", "may not read input.offer.price.minor" + changes + ". Write custom.stage: Booking in METADATA above package for a quota"},
		{"the offer's name at booking", "# METADATA\n# custom:\n#   stage: Booking\n" + element("1") + " if input.offer.id == \"1\"", "may not read input.offer.id" + changes},

		{"the whole ticket", element("f(input.ticket)") + "\n\nf(t) := t.spec.number", "spec.rego:3:61: quota and what it uses may not read input.ticket, which may hold more than a claim may see" + may},
		{"all of input", element("f(input)") + "\n\nf(i) := i.ticket.spec.number", "spec.rego:3:61: quota and what it uses may not read input, which may hold more than a claim may see"},
		{"all of input by a name", element("n") + " if {\n\ti := input\n\tn := i.ticket.spec.number\n}", "spec.rego:4:7: quota and what it uses may not read input, which may hold more"},
		{"all of input by an import", "package a\n\nimport input as i\n\nquota contains {\"key\": \"k\", \"scope\": \"Cluster\", \"amount\": f(i), \"limit\": 5}\n\nf(x) := x.ticket.spec.number\n", "may not read input, which may hold more"},
		{"input by a variable", element("1") + " if {\n\tsome x in [\"now\", \"dryRun\"]\n\tinput[x]\n}", "spec.rego:5:2: quota and what it uses may not read input[_], which may hold more"},
		{"metadata by a variable", element("1") + " if {\n\tsome x\n\tinput.ticket.metadata[x]\n}", "may not read input.ticket.metadata[_], which may hold more"},
		{"a walk through input", element("1") + " if {\n\twalk(input, [_, \"x\"])\n}", "spec.rego:4:7: quota and what it uses may not read input, which"},
		{"a look-up in input", element("1") + " if object.get(input, [\"now\"], \"\") == \"x\"", "may not read input, which may hold more"},
		{"an index", element("n") + " if {\n\tn := {\"a\": 1}[input.user.username]\n}", "may not read input.user.username"},
		{"an index into what it may see", element("1") + " if input.parameters[input.user.username]", "may not read input.user.username"},
		{"a comprehension", element("count([1 | some x in input.user.groups])"), "may not read input.user.groups"},
		{"every", element("1") + " if every g in input.user.groups { g != \"x\" }", "may not read input.user.groups"},
		{"a template string", "package a\n\nquota contains {\"key\": $\"{input.user.username}\", \"scope\": \"Cluster\", \"amount\": 1, \"limit\": 5}\n", "may not read input.user.username"},
		{"not", element("1") + " if not input.user.username == \"boss\"", "may not read input.user.username"},
		{"a helper", element("1") + " if helper\n\nhelper if other\n\nother if input.dryRun", "spec.rego:7:10: quota and what it uses may not read input.dryRun"},
		{"else of a helper", element("helper") + "\n\nhelper := 1 if input.ticket.spec.suspend\n\nelse := count(input.now)", "spec.rego:7:15: quota and what it uses may not read input.now"},
		{"a name of a helper", element("count(helper)") + "\n\nhelper[input.user.username] := 1", "may not read input.user.username"},
		{"an inner name of a helper", element("count(helper)") + "\n\nhelper[input.user.username].x := 1", "may not read input.user.username"},
		{"a default of a function", element("f(1)") + "\n\ndefault f(_) := 2\n\nf(x) := x if input.dryRun", "may not read input.dryRun"},
		{"another contract rule", element("count(deny)") + "\n\ndeny contains \"x\" if input.dryRun", "may not read input.dryRun"},
		{"another input", element("count(helper)") + " if helper with input.requester as input.ticket.spec.from\n\nhelper := input.requester", "spec.rego:3:96: quota and what it uses may not replace input by with"},

		{"a stage that is none", "# METADATA\n# custom:\n#   stage: Boking\n" + element("1"), "spec.rego:1:1: METADATA custom.stage is Boking: it is Admission (the default) or Booking"},
		{"a stage without a quota", "# METADATA\n# custom:\n#   stage: Booking\npackage a\n\ndeny contains \"x\" if input.dryRun\n", "spec.rego:1:1: METADATA custom.stage says when a quota is claimed, and the module has no rule quota"},
		{"a stage in the wrong place", "package a\n\n# METADATA\n# custom:\n#   stage: Booking\nquota contains {\"key\": \"k\", \"scope\": \"Cluster\", \"amount\": 1, \"limit\": 5}\n", "spec.rego:3:1: METADATA custom.stage belongs right above package"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := NewEngine(RuleQuota).Validate(t.Context(), regoPolicy("a", c.rego+"\n"))
			var compile *CompileError
			if !errors.As(err, &compile) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got\n  %v\nwant\n  %s", err, c.want)
			}
		})
	}
}
