package policy

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Rule is a contract rule that not every program acts on.
type Rule string

// The rules that a program must say it acts on. An engine of one that doesn't refuses policies with such a rule: what
// nobody acts on would be admitted in silence.
const (
	RuleHold   Rule = "hold"
	RuleMutate Rule = "mutate"
	RuleQuota  Rule = "quota"
)

// Rules lists all of them.
func Rules() []Rule { return []Rule{RuleHold, RuleMutate, RuleQuota} }

// contractRule is a rule that the engine reads of a module.
type contractRule struct {
	name string
	// always says that every program acts on the rule. Another rule is refused by name and not ignored, unless the
	// program acts on it: a policy that counts on it would allow what its author wants held back.
	always bool
	// text says that an element may be a text; fields, that it may be an object of these.
	text   bool
	fields []elementField
}

// contract is the closed list of contract rules, all partial sets. What isn't here, and isn't used by one that is, is
// refused: it would do nothing.
var contract = []contractRule{
	{name: "deny", always: true, text: true, fields: []elementField{
		{name: "msg", kind: kindText, required: true}, {name: "code", kind: kindText}, {name: "details"},
	}},
	{name: "warn", always: true, text: true},
	{name: string(RuleHold), text: true},
	{name: string(RuleMutate), fields: []elementField{
		{name: "path", kind: kindText, required: true}, {name: "value", required: true}, {name: "when", kind: kindText, required: true},
	}},
	{name: string(RuleQuota), fields: []elementField{
		{name: "key", kind: kindText, required: true}, {name: "scope", kind: kindText, required: true},
		{name: "amount", kind: kindNumber, required: true}, {name: "limit", kind: kindNumber, required: true},
		{name: "resets", kind: kindText}, {name: "retain", kind: kindBoolean}, {name: "warn_at", kind: kindNumber},
	}},
}

func contractRuleOf(name string) (contractRule, bool) {
	i := slices.IndexFunc(contract, func(c contractRule) bool { return c.name == name })
	if i < 0 {
		return contractRule{}, false
	}
	return contract[i], true
}

func contractNames() []string {
	names := make([]string, len(contract))
	for i, c := range contract {
		names[i] = c.name
	}
	return names
}

// supports says whether the engine acts on a rule, or its caller does.
func (t moduleText) supports(c contractRule) bool {
	return c.always || slices.Contains(t.acts, Rule(c.name))
}

// supportedRules are the names that a policy may define, for messages.
func (t moduleText) supportedRules() []string {
	var names []string
	for _, c := range contract {
		if t.supports(c) {
			names = append(names, c.name)
		}
	}
	return names
}

// listed is a list in words: a, b and c.
func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// ruleName is the first part of a rule's name: "deny" of deny.foo contains ...
func ruleName(r *ast.Rule) string {
	if ref := r.Head.Ref(); len(ref) > 0 {
		if v, ok := ref[0].Value.(ast.Var); ok {
			return string(v)
		}
	}
	return string(r.Head.Name)
}

// checkContract refuses contract rules that aren't partial sets or not supported, and modules without any.
func (t moduleText) checkContract(module *ast.Module) []Problem {
	var problems []Problem
	found := false
	for _, r := range module.Rules {
		c, ok := contractRuleOf(ruleName(r))
		if !ok {
			continue
		}
		found = true
		switch {
		case !t.supports(c):
			problems = append(problems, t.at(r.Location, "the rule %s isn't supported by this version: there are %s",
				c.name, listed(t.supportedRules())))
		case !isPartialSet(r):
			problems = append(problems, t.at(r.Location, "%s must be a partial set, not %s: write %s", c.name, kindOf(r), c.example()))
		}
	}
	if !found {
		problems = append(problems, t.at(module.Package.Location,
			"the module has no rule that the engine reads, so it would allow everything: write deny contains msg if { ... }"))
	}
	return problems
}

func isPartialSet(r *ast.Rule) bool {
	return !r.Default && len(r.Head.Args) == 0 && len(r.Head.Ref()) == 1 && r.Head.Key != nil && r.Head.Value == nil
}

func kindOf(r *ast.Rule) string {
	switch {
	case r.Default:
		return "a default"
	case len(r.Head.Args) > 0:
		return "a function"
	case len(r.Head.Ref()) > 1 && r.Head.Key != nil && r.Head.Value == nil:
		return "a set under a name of its own (" + r.Head.Ref().String() + ")"
	case r.Head.Key != nil, len(r.Head.Ref()) > 1:
		return "an object"
	}
	return "a single value"
}

// checkUnused refuses rules that no contract rule uses, directly or by way of others.
func (t moduleText) checkUnused(resolved *ast.Module) []Problem {
	used := usedRules(resolved, contractNames()...)
	var problems []Problem
	told := map[string]bool{}
	for _, r := range resolved.Rules {
		name := ruleName(r)
		if used[name] || told[name] {
			continue
		}
		if _, isContract := contractRuleOf(name); isContract {
			continue // told by checkContract
		}
		told[name] = true
		problems = append(problems, t.at(r.Location, "the rule %s is never used: the engine reads %s, and %s isn't used by one of them%s",
			name, listed(t.supportedRules()), name, didYouMean(name, t.supportedRules())))
	}
	return problems
}

// usedRules are the names of the rules that can be reached from some rules, these among them.
func usedRules(resolved *ast.Module, from ...string) map[string]bool {
	uses := map[string][]string{}
	for _, r := range resolved.Rules {
		uses[ruleName(r)] = append(uses[ruleName(r)], namesUsed(r, resolved)...)
	}
	used := map[string]bool{}
	var visit func(string)
	visit = func(name string) {
		if used[name] {
			return
		}
		used[name] = true
		for _, next := range uses[name] {
			visit(next)
		}
	}
	for _, name := range from {
		visit(name)
	}
	return used
}

// namesUsed lists the rules of the module that a rule refers to. A reference to the package as a whole or by a variable
// uses them all; it is recursive and refused elsewhere.
func namesUsed(r *ast.Rule, resolved *ast.Module) []string {
	var names []string
	pkg := resolved.Package.Path
	ast.WalkRefs(r, func(ref ast.Ref) bool {
		if ref.HasPrefix(pkg) && len(ref) > len(pkg) {
			if s, ok := ref[len(pkg)].Value.(ast.String); ok {
				names = append(names, string(s))
			}
		}
		return false
	})
	return names
}
