package policy

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Rego orders values of all types: every number is less than every string. So "input.ticket.spec.number > \"1\"" never
// holds, and the rule never fires. The type checker lets it pass.

// ordering are the comparisons that depend on an order.
var ordering = []string{ast.GreaterThan.Name, ast.GreaterThanEq.Name, ast.LessThan.Name, ast.LessThanEq.Name}

// checkOrder looks at the comparisons in a rule.
func (a *arguments) checkOrder(s *scope, r *ast.Rule) {
	compare := func(operator ast.Ref, operands []*ast.Term, loc *ast.Location) {
		if len(operands) != 2 || !slices.Contains(ordering, operator.String()) {
			return
		}
		left, right := s.kindOf(operands[0]), s.kindOf(operands[1])
		if left == "" || right == "" {
			return
		}
		place := fmt.Sprint("order:", loc.Row, ":", loc.Col)
		if left == right {
			a.found[place] = true
			return
		}
		a.missing[place] = a.text.at(loc, "%s compares %s with %s, which comes out the same for every ticket: compare values of one type",
			ast.BuiltinMap[operator.String()].Infix, left, right)
	}
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if e.IsCall() {
			compare(e.Operator(), e.Operands(), e.Location)
		}
		return false
	})
	ast.WalkTerms(r, func(t *ast.Term) bool {
		if call, is := t.Value.(ast.Call); is {
			if operator, isRef := call[0].Value.(ast.Ref); isRef {
				compare(operator, call[1:], t.Location)
			}
		}
		return false
	})
}

// kindOf is the type of a literal or of a path in input, or "" when it isn't known.
func (s *scope) kindOf(t *ast.Term) string {
	switch v := t.Value.(type) {
	case ast.Number:
		return "a number"
	case ast.String:
		return "a string"
	case ast.Boolean:
		return "a boolean"
	case ast.Null:
		return "null"
	case *ast.Array, *ast.ArrayComprehension:
		return "an array"
	case ast.Set, *ast.SetComprehension:
		return "a set"
	case ast.Object, *ast.ObjectComprehension:
		return "an object"
	case ast.Ref:
		return s.kindOfPath(v)
	case ast.Var:
		if defs := s.defs[v]; len(defs) == 1 && defs[0].whole {
			if _, isPath := defs[0].value.Value.(ast.Ref); !isPath {
				return s.kindOfLiteral(defs[0].value)
			}
		}
		return s.kindOfPath(ast.Ref{t})
	}
	return ""
}

// kindOfLiteral is the type of a value that names no other value.
func (s *scope) kindOfLiteral(t *ast.Term) string {
	if _, isVar := t.Value.(ast.Var); isVar {
		return ""
	}
	return s.kindOf(t)
}

func (s *scope) kindOfPath(ref ast.Ref) string {
	path, known := s.path(ref, 0)
	if !known {
		return ""
	}
	_, last := s.fields.walk(path)
	switch kind, _ := s.fields.deref(last.schema)["type"].(string); kind {
	case "integer", "number":
		return "a number"
	case "string", "boolean":
		return "a " + kind
	case "array", "object":
		return "an " + kind
	}
	return ""
}
