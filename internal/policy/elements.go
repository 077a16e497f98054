package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// elementKind is the type of a field of an element; the zero value takes any.
type elementKind string

const (
	kindText    elementKind = "text"
	kindNumber  elementKind = "number"
	kindBoolean elementKind = "boolean"
)

// takes says whether a value of a type may be what the field wants.
func (k elementKind) takes(t types.Type) bool {
	if _, isAny := t.(types.Any); isAny || t == nil || k == "" {
		return true // told at evaluation
	}
	var same bool
	switch k {
	case kindText:
		_, same = t.(types.String)
	case kindNumber:
		_, same = t.(types.Number)
	case kindBoolean:
		_, same = t.(types.Boolean)
	}
	return same
}

// elementField is a field of an element that is an object.
type elementField struct {
	name     string
	kind     elementKind
	required bool
}

func (c contractRule) fieldNames() []string {
	names := make([]string, len(c.fields))
	for i, f := range c.fields {
		names[i] = f.name
	}
	return names
}

// shape is what an element looks like: a text or {"msg": ..., "code": ...}.
func (c contractRule) shape() string {
	var parts []string
	if c.text {
		parts = append(parts, "a text")
	}
	if len(c.fields) > 0 {
		parts = append(parts, "{\""+strings.Join(c.fieldNames(), "\": ..., \"")+"\": ...}")
	}
	return strings.Join(parts, " or ")
}

// example is a definition of the rule as it is meant.
func (c contractRule) example() string {
	if c.text {
		return c.name + " contains msg if { ... msg := \"...\" }"
	}
	return c.name + " contains " + c.shape() + " if { ... }"
}

// checkElements refuses contract rules whose elements have a type that the engine doesn't take.
func (t moduleText) checkElements(module *ast.Module, env *ast.TypeEnv) []Problem {
	var problems []Problem
	told := map[string]bool{}
	for _, r := range module.Rules {
		c, ok := contractRuleOf(ruleName(r))
		if !ok || !t.supports(c) || told[c.name] || !isPartialSet(r) {
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
		if c.text {
			return ""
		}
	case types.Any:
		for _, one := range e {
			if wrong := c.wrongElement(one); wrong != "" {
				return wrong
			}
		}
		return "" // any: told at evaluation
	case *types.Object:
		if len(c.fields) > 0 {
			return c.wrongObject(e)
		}
	}
	return fmt.Sprintf("must be %s, not %s", c.shape(), types.Sprint(element))
}

func (c contractRule) wrongObject(o *types.Object) string {
	if o.DynamicProperties() != nil {
		return "" // told at evaluation
	}
	names := c.fieldNames()
	for _, key := range o.Keys() {
		name, ok := key.(string)
		if !ok || !slices.Contains(names, name) {
			return fmt.Sprintf("has the unknown field %v: there are %s%s", key, listed(names), didYouMean(fmt.Sprint(key), names))
		}
	}
	for _, f := range c.fields {
		if f.required && o.Select(f.name) == nil {
			return "has no " + f.name
		}
	}
	for _, f := range c.fields {
		if tpe := o.Select(f.name); !f.kind.takes(tpe) {
			return fmt.Sprintf("has %s of type %s where a %s is due", withArticle(f.name), types.Sprint(tpe), f.kind)
		}
	}
	return ""
}

func withArticle(name string) string {
	if strings.ContainsAny(name[:1], "aeiou") {
		return "an " + name
	}
	return "a " + name
}
