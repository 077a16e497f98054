package policy

import "github.com/open-policy-agent/opa/v1/ast"

// ofMessage lists the optional paths that the messages of a rule rest on. A message that is an element of another set of
// the module, as in deny contains msg if some msg in messages, is looked at where it is made.
func (m messages) ofMessage(r *ast.Rule, depth int) []need {
	needs := m.unguarded(r, r.Head.Key, nil, 0)
	s := m.newScope(r, nil, 0)
	name, isElement := s.setOf(r.Head.Key, 0)
	if !isElement {
		return needs
	}
	for _, made := range m.module.Rules {
		if ruleName(made) == name && isPartialSet(made) && m.mayLook(depth+1) {
			needs = append(needs, m.ofMessage(made, depth+1)...)
		}
	}
	return needs
}

// setOf is the name of the rule whose element a term is, if it is one.
func (s *scope) setOf(t *ast.Term, depth int) (string, bool) {
	if *s.steps--; *s.steps < 0 {
		return "", false
	}
	switch v := t.Value.(type) {
	case ast.Var:
		for _, d := range s.defs[v] {
			if depth >= maxInline || !d.whole {
				break
			}
			if name, ok := s.setOf(d.value, depth+1); ok {
				return name, true
			}
		}
	case ast.Ref:
		pkg := s.module.Package.Path
		if len(v) != len(pkg)+2 || !v.HasPrefix(pkg) {
			return "", false
		}
		name, isText := v[len(pkg)].Value.(ast.String)
		_, isVar := v[len(pkg)+1].Value.(ast.Var)
		return string(name), isText && isVar
	}
	return "", false
}
