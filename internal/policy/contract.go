package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// contractRule is a rule that the engine reads of a module.
type contractRule struct {
	name string
	// supported is false for a rule that a later version will read. It is refused by name and not ignored: a policy
	// that counts on it would allow what its author wants held back.
	supported bool
	// objects says that an element may be an object of msg, code and details besides a text.
	objects bool
}

// contract is the closed list of contract rules, all partial sets. What isn't here, and isn't used by one that is, is
// refused: it would do nothing.
var contract = []contractRule{
	{name: "deny", supported: true, objects: true},
	{name: "warn", supported: true},
	{name: "hold"},
	{name: "mutate"},
	{name: "quota"},
}

func contractRuleOf(name string) (contractRule, bool) {
	i := slices.IndexFunc(contract, func(c contractRule) bool { return c.name == name })
	if i < 0 {
		return contractRule{}, false
	}
	return contract[i], true
}

// supportedRules are the names that a policy may define, for messages.
func supportedRules() []string {
	var names []string
	for _, c := range contract {
		if c.supported {
			names = append(names, c.name)
		}
	}
	return names
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
		case !c.supported:
			problems = append(problems, t.at(r.Location, "the rule %s isn't supported by this version: there are %s",
				c.name, strings.Join(supportedRules(), " and ")))
		case !isPartialSet(r):
			problems = append(problems, t.at(r.Location, "%s must be a partial set, not %s: write %s contains msg if { ... msg := \"...\" }",
				c.name, kindOf(r), c.name))
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
	used := usedRules(resolved)
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
			name, strings.Join(supportedRules(), " and "), name, didYouMean(name, supportedRules())))
	}
	return problems
}

// usedRules are the names of the rules that can be reached from the contract rules.
func usedRules(resolved *ast.Module) map[string]bool {
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
	for _, c := range contract {
		visit(c.name)
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

// checkElements refuses contract rules whose elements have a type that the engine doesn't take.
func (t moduleText) checkElements(module *ast.Module, env *ast.TypeEnv) []Problem {
	var problems []Problem
	told := map[string]bool{}
	for _, r := range module.Rules {
		c, ok := contractRuleOf(ruleName(r))
		if !ok || !c.supported || told[c.name] || !isPartialSet(r) {
			continue
		}
		told[c.name] = true
		set, ok := env.GetByRef(module.Package.Path.Append(ast.StringTerm(c.name))).(*types.Set)
		if !ok {
			continue
		}
		if wrong := c.wrongElement(set.Of()); wrong != "" {
			problems = append(problems, t.at(r.Location, "an element of %s %s", c.name, wrong))
		}
	}
	return problems
}

// wrongElement says what is wrong with a type of elements, or "".
func (c contractRule) wrongElement(element types.Type) string {
	switch e := element.(type) {
	case types.String:
		return ""
	case types.Any:
		for _, one := range e {
			if wrong := c.wrongElement(one); wrong != "" {
				return wrong
			}
		}
		return "" // any: told at evaluation
	case *types.Object:
		if c.objects {
			return wrongObject(e)
		}
	}
	if c.objects {
		return fmt.Sprintf("must be a text or {\"msg\": ..., \"code\": ..., \"details\": ...}, not %s", types.Sprint(element))
	}
	return fmt.Sprintf("must be a text, not %s", types.Sprint(element))
}

func wrongObject(o *types.Object) string {
	if o.DynamicProperties() != nil {
		return "" // told at evaluation
	}
	fields := []string{"msg", "code", "details"}
	for _, key := range o.Keys() {
		name, ok := key.(string)
		if !ok || !slices.Contains(fields, name) {
			return fmt.Sprintf("has the unknown field %v: there are msg, code and details%s", key, didYouMean(fmt.Sprint(key), fields))
		}
	}
	if o.Select("msg") == nil {
		return "has no msg"
	}
	for _, name := range []string{"msg", "code"} {
		switch tpe := o.Select(name).(type) {
		case nil, types.String, types.Any:
		default:
			return fmt.Sprintf("has a %s of type %s where a text is due", name, types.Sprint(tpe))
		}
	}
	return ""
}
