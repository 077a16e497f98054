package policy

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// A message that formats a field which isn't set is undefined, and then the rule doesn't fire: what should be refused
// is allowed in silence. checkMessages refuses messages that rest on a field that may be absent, unless the rule also
// asks for that field in a condition, and so is meant for tickets that have it.
//
// It runs on a module whose references are resolved and whose local variables are unique, before OPA rewrites template
// strings: these print <undefined> and are a way out.
func (t moduleText) checkMessages(resolved *ast.Module, f inputFields) []Problem {
	m := newMessages(resolved, f)
	var problems []Problem
	for _, r := range resolved.Rules {
		c, ok := contractRuleOf(ruleName(r))
		if !ok || !isPartialSet(r) {
			continue
		}
		for _, p := range m.ofMessage(r, 0) {
			problems = append(problems, t.at(p.loc, "%s", c.wayOut(p.path)))
		}
	}
	return problems
}

// wayOut says what comes of a path that may be absent, and what to write instead.
func (c contractRule) wayOut(path ast.Ref) string {
	if !c.text {
		return fmt.Sprintf("%v may be absent, and then the element is undefined and %s doesn't fire: ask for it in the body of the rule, and let deny say what becomes of other tickets",
			path, c.name)
	}
	last := len(path) - 1
	return fmt.Sprintf("%v may be absent, and then the message is undefined and %s doesn't fire: write object.get(%v, %v, \"none\") or a template string $\"... {%v}\"",
		path, c.name, path[:last], path[last], path)
}

const (
	// maxInline bounds how deep helper rules are looked into; they can't be recursive, but they can be many.
	maxInline = 8
	// maxLooks bounds how often: helpers that call helpers several times each multiply.
	maxLooks = 10000
	// maxSteps bounds the search for what names stand for, which may have several values each.
	maxSteps = 1000000
)

// messages looks for what the messages of a module rest on.
type messages struct {
	module *ast.Module
	fields inputFields
	looks  *int // left
	steps  *int // left
}

func newMessages(resolved *ast.Module, f inputFields) messages {
	looks, steps := maxLooks, maxSteps
	return messages{module: resolved, fields: f, looks: &looks, steps: &steps}
}

// mayLook says whether a rule so deep may still be looked into, and counts it.
func (m messages) mayLook(depth int) bool {
	*m.looks--
	return depth <= maxInline && *m.looks >= 0
}

// need is a path from input that a term rests on: without it the term is undefined.
type need struct {
	path ast.Ref
	loc  *ast.Location
}

// definition is an expression of a body that gives a variable its value.
type definition struct {
	value *ast.Term
	whole bool // the variable is the value, not a part of it
	expr  int  // index in the body
}

// scope is one rule as the search goes through it.
type scope struct {
	messages
	defs  map[ast.Var][]definition
	args  map[ast.Var]*ast.Term // of a function, already in terms of the caller
	seen  map[ast.Var]bool
	chain map[int]bool // the expressions that make up the message
	depth int
	needs []need
}

// unguarded lists the optional paths that value, a part of the rule, rests on and the rule doesn't ask for otherwise.
func (m messages) unguarded(r *ast.Rule, value *ast.Term, args map[ast.Var]*ast.Term, depth int) []need {
	s := m.newScope(r, args, depth)
	s.visit(value)

	guards := m.newScope(r, args, depth)
	for i, e := range r.Body {
		if !s.chain[i] && !e.Negated && len(e.With) == 0 {
			guards.visitExpr(e)
		}
	}
	var out []need
	for _, n := range s.needs {
		optional, _ := m.fields.walk(n.path)
		for _, length := range optional {
			prefix := n.path[:length]
			if !guards.asksFor(prefix) && !iterated(n.path, length) {
				out = append(out, need{prefix, n.loc})
				break
			}
		}
	}
	return out
}

// iterated says whether a path goes on to visit what there is beneath a prefix: some p in input.oldTicket.spec.passengers.
func iterated(path ast.Ref, length int) bool {
	return slices.ContainsFunc(path[length:], func(t *ast.Term) bool { _, isVar := t.Value.(ast.Var); return isVar })
}

func (s *scope) asksFor(prefix ast.Ref) bool {
	return slices.ContainsFunc(s.needs, func(n need) bool { return n.path.HasPrefix(prefix) })
}

func (m messages) newScope(r *ast.Rule, args map[ast.Var]*ast.Term, depth int) *scope {
	s := &scope{messages: m, defs: map[ast.Var][]definition{}, args: args, seen: map[ast.Var]bool{},
		chain: map[int]bool{}, depth: depth}
	for i, e := range r.Body {
		if !e.Negated && len(e.With) == 0 && e.IsCall() {
			s.define(i, e)
		}
	}
	return s
}

// define enters the variables that an expression gives a value: x := value, [x, y] := value, f(a, x).
func (s *scope) define(i int, e *ast.Expr) {
	operands := e.Operands()
	switch name := e.Operator().String(); {
	case name == ast.Equality.Name || name == ast.Assign.Name:
		if len(operands) == 2 {
			s.bind(i, operands[0], operands[1])
			s.bind(i, operands[1], operands[0])
		}
	case ast.BuiltinMap[name] != nil && len(operands) == ast.BuiltinMap[name].Decl.Arity()+1:
		last := len(operands) - 1
		call := append([]*ast.Term{ast.NewTerm(e.Operator()).SetLocation(e.Location)}, operands[:last]...)
		s.bind(i, operands[last], ast.CallTerm(call...).SetLocation(e.Location))
	}
}

func (s *scope) bind(i int, pattern, value *ast.Term) {
	switch p := pattern.Value.(type) {
	case ast.Var:
		s.defs[p] = append(s.defs[p], definition{value, true, i})
	case *ast.Array:
		p.Foreach(func(part *ast.Term) {
			if v, ok := part.Value.(ast.Var); ok {
				s.defs[v] = append(s.defs[v], definition{value, false, i})
			}
		})
	}
}

// visit gathers what a term rests on.
func (s *scope) visit(t *ast.Term) {
	switch v := t.Value.(type) {
	case ast.Var:
		s.visitVar(v)
	case ast.Ref:
		s.visitRef(v, t.Location)
	case ast.Call:
		s.visitCall(v)
	case *ast.Array:
		v.Foreach(s.visit)
	case ast.Set:
		v.Foreach(s.visit)
	case ast.Object:
		v.Foreach(func(k, member *ast.Term) { s.visit(k); s.visit(member) })
	case *ast.TemplateString, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
		// What is undefined inside is printed as such or left out. The variables of the rule must have a value still.
		s.visitFree(t)
	}
}

func (s *scope) visitFree(t *ast.Term) {
	ast.WalkVars(t, func(v ast.Var) bool {
		s.visitVar(v)
		return false
	})
	if template, ok := t.Value.(*ast.TemplateString); ok {
		for _, part := range template.Parts {
			ast.WalkVars(part, func(v ast.Var) bool {
				s.visitVar(v)
				return false
			})
		}
	}
}

func (s *scope) visitVar(v ast.Var) {
	if s.seen[v] {
		return
	}
	s.seen[v] = true
	for _, d := range s.defs[v] {
		s.chain[d.expr] = true
		s.visit(d.value)
	}
	if arg, ok := s.args[v]; ok {
		s.visit(arg)
	}
}

func (s *scope) visitRef(ref ast.Ref, loc *ast.Location) {
	if loc == nil {
		loc = ref[0].Location
	}
	for _, index := range ref[1:] {
		if _, isVar := index.Value.(ast.Var); !isVar {
			s.visit(index)
		}
	}
	if ref.HasPrefix(s.module.Package.Path) {
		s.visitHelper(ref, nil)
		return
	}
	if path, ok := s.path(ref, 0); ok {
		s.needs = append(s.needs, need{path, loc})
	}
	s.visit(ref[0])
}

// constant is a reference whose variable indexes are replaced by the texts that they stand for: input.ticket.spec[field]
// after field := "cabin".
func (s *scope) constant(ref ast.Ref) ast.Ref {
	out := ref
	for i, index := range ref[1:] {
		v, isVar := index.Value.(ast.Var)
		if !isVar || len(s.defs[v]) != 1 {
			continue
		}
		if _, isText := s.defs[v][0].value.Value.(ast.String); isText && s.defs[v][0].whole {
			if &out[0] == &ref[0] {
				out = slices.Clone(ref)
			}
			out[i+1] = s.defs[v][0].value
		}
	}
	return out
}

// path is a reference in terms of input, with the local names in front replaced by what they stand for.
func (s *scope) path(ref ast.Ref, depth int) (ast.Ref, bool) {
	ref = s.constant(ref)
	if ref[0].Equal(ast.InputRootDocument) {
		return ref, true
	}
	v, ok := ref[0].Value.(ast.Var)
	if *s.steps--; !ok || depth > maxInline || *s.steps < 0 {
		return nil, false
	}
	candidates := make([]*ast.Term, 0, 1)
	for _, d := range s.defs[v] {
		if d.whole {
			candidates = append(candidates, d.value)
		}
	}
	if arg, ok := s.args[v]; ok {
		candidates = append(candidates, arg)
	}
	for _, c := range candidates {
		head := ast.Ref{c}
		if r, ok := c.Value.(ast.Ref); ok {
			head = r
		}
		if path, ok := s.path(head, depth+1); ok {
			return path.Concat(ref[1:]), true
		}
	}
	return nil, false
}

func (s *scope) visitCall(call ast.Call) {
	for _, arg := range call[1:] {
		s.visit(arg)
	}
	if ref, ok := call[0].Value.(ast.Ref); ok && ref.HasPrefix(s.module.Package.Path) {
		s.visitHelper(ref, call[1:])
	}
}

// visitHelper looks into a rule or function that has one definition, and so no other answer for what is absent.
func (s *scope) visitHelper(ref ast.Ref, operands []*ast.Term) {
	pkg := s.module.Package.Path
	if len(ref) <= len(pkg) || !s.mayLook(s.depth+1) {
		return
	}
	var rules []*ast.Rule
	for _, r := range s.module.Rules {
		if name, ok := ref[len(pkg)].Value.(ast.String); ok && ruleName(r) == string(name) {
			rules = append(rules, r)
		}
	}
	if len(rules) != 1 || rules[0].Else != nil || rules[0].Default || rules[0].Head.Value == nil ||
		len(rules[0].Head.Ref()) > 1 {
		return
	}
	args := map[ast.Var]*ast.Term{}
	for i, parameter := range rules[0].Head.Args {
		if v, ok := parameter.Value.(ast.Var); ok && i < len(operands) {
			args[v] = s.substituted(operands[i])
		}
	}
	s.needs = append(s.needs, s.unguarded(rules[0], rules[0].Head.Value, args, s.depth+1)...)
}

// substituted is an operand in terms of input where it is a path, for use in another rule.
func (s *scope) substituted(t *ast.Term) *ast.Term {
	ref, ok := t.Value.(ast.Ref)
	if !ok {
		ref = ast.Ref{t}
	}
	if path, ok := s.path(ref, 0); ok {
		return ast.NewTerm(path).SetLocation(t.Location)
	}
	return ast.StringTerm(fmt.Sprint(t)) // what it rests on is told where it stands
}

// visitExpr gathers what a condition rests on.
func (s *scope) visitExpr(e *ast.Expr) {
	switch terms := e.Terms.(type) {
	case *ast.Term:
		s.visit(terms)
	case []*ast.Term:
		s.visitCall(ast.Call(terms))
	case *ast.Every:
		s.visit(terms.Domain)
	}
}
