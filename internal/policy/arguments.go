package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The type checker knows nothing of a function's arguments, nor of what every visits: a mistyped field there would be
// undefined for ever, and the rule never fire. checkArguments follows input into both.
//
// A function may be written for values of several kinds. So a field is refused only if it is missing from all values that
// the function is known to be called with.
func (t moduleText) checkArguments(resolved *ast.Module, f inputFields) []Problem {
	a := arguments{messages: newMessages(resolved, f), missing: map[string]Problem{}, found: map[string]bool{}, text: t}
	for _, r := range resolved.Rules {
		if len(r.Head.Args) == 0 {
			a.follow(r, nil, 0)
		}
	}
	var problems []Problem
	for place, p := range a.missing {
		if !a.found[place] {
			problems = append(problems, p)
		}
	}
	return problems
}

// arguments gathers, by place in the module, the fields that are missing or found.
type arguments struct {
	messages
	text    moduleText
	missing map[string]Problem
	found   map[string]bool
}

// follow goes through a rule whose arguments stand for paths in input.
func (a *arguments) follow(r *ast.Rule, args map[ast.Var]*ast.Term, depth int) {
	for branch := r; branch != nil && a.mayLook(depth); branch = branch.Else {
		s := a.newScope(branch, args, depth)
		own := *branch
		own.Else = nil // else has a body of its own
		ast.WalkExprs(&own, func(e *ast.Expr) bool {
			if every, is := e.Terms.(*ast.Every); is {
				s.defineEvery(every)
			}
			return false
		})
		ast.WalkRefs(&own, func(ref ast.Ref) bool {
			a.check(s, ref)
			return false
		})
		a.checkOrder(s, &own)
		a.followCalls(&own, s, depth)
	}
}

// visited stands in a path for whichever element every visits.
var visited = ast.VarTerm("$every")

// defineEvery lets the variable of every stand for what is visited.
func (s *scope) defineEvery(e *ast.Every) {
	head := ast.Ref{e.Domain}
	if ref, is := e.Domain.Value.(ast.Ref); is {
		head = ref
	}
	if v, is := e.Value.Value.(ast.Var); is {
		s.defs[v] = append(s.defs[v], definition{value: ast.NewTerm(head.Append(visited)), whole: true})
	}
}

// check looks a reference by a local name up in the schema, unless the type checker does.
func (a *arguments) check(s *scope, ref ast.Ref) {
	constant := s.constant(ref)
	replaced := !constant.Equal(ref)
	if len(ref) < 2 || ref[0].Equal(ast.InputRootDocument) && !replaced {
		return
	}
	path, known := s.path(ref, 0)
	if !known || len(s.args) == 0 && !replaced && !slices.ContainsFunc(path, visited.Equal) {
		return
	}
	place := fmt.Sprint(ref[0].Location.Row, ":", ref[0].Location.Col)
	for length := 2; length <= len(path); length++ {
		_, last := a.fields.walk(path[:length])
		if last.schema == nil && !last.missing {
			break
		}
		if last.missing {
			_, parent := a.fields.walk(path[:length-1])
			name, names := strings.Trim(path[length-1].String(), `"`), a.fields.names(parent.schema)
			a.missing[place] = a.text.at(ref[0].Location, "%v has no field %s%s; there are: %s", shown(path[:length-1]), name,
				didYouMean(name, names), strings.Join(names, ", "))
			return
		}
	}
	a.found[place] = true
}

// shown is a path without the names that the compiler gives to variables.
func shown(path ast.Ref) ast.Ref {
	out := slices.Clone(path)
	for i, t := range out[1:] {
		if _, isVar := t.Value.(ast.Var); isVar {
			out[i+1] = ast.VarTerm("_")
		}
	}
	return out
}

func (a *arguments) followCalls(r *ast.Rule, s *scope, depth int) {
	call := func(operator ast.Ref, operands []*ast.Term) {
		pkg := a.module.Package.Path
		if !operator.HasPrefix(pkg) || len(operator) <= len(pkg) {
			return
		}
		name, _ := operator[len(pkg)].Value.(ast.String)
		for _, callee := range a.module.Rules {
			if ruleName(callee) == string(name) && len(callee.Head.Args) > 0 {
				a.follow(callee, s.passed(callee, operands), depth+1)
			}
		}
	}
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if e.IsCall() {
			call(e.Operator(), e.Operands())
		}
		return false
	})
	ast.WalkTerms(r, func(t *ast.Term) bool {
		if c, is := t.Value.(ast.Call); is {
			if operator, isRef := c[0].Value.(ast.Ref); isRef {
				call(operator, c[1:])
			}
		}
		return false
	})
}

// passed are the parameters of a function that are given a path from input.
func (s *scope) passed(callee *ast.Rule, operands []*ast.Term) map[ast.Var]*ast.Term {
	args := map[ast.Var]*ast.Term{}
	for i, parameter := range callee.Head.Args {
		v, isVar := parameter.Value.(ast.Var)
		if !isVar || i >= len(operands) {
			continue
		}
		head := ast.Ref{operands[i]}
		if ref, is := operands[i].Value.(ast.Ref); is {
			head = ref
		}
		if path, known := s.path(head, 0); known {
			args[v] = ast.NewTerm(path)
		}
	}
	return args
}
