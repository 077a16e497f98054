package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// inputFields answers questions about paths in input by its JSON schema.
type inputFields struct{ root map[string]any }

// step is what the schema says of one step of a path.
type step struct {
	schema   map[string]any // of the value that the step leads to; nil when nothing is known
	optional bool           // the value may be absent
	missing  bool           // the schema has no such field
}

// next takes one step from a value with a schema.
func (f inputFields) next(schema map[string]any, key ast.Value) step {
	schema = f.deref(schema)
	switch {
	case schema == nil:
		return step{}
	case schema["type"] == "array":
		items, _ := schema["items"].(map[string]any)
		_, fixed := key.(ast.Number)
		return step{schema: items, optional: fixed}
	}
	name, isText := key.(ast.String)
	props, hasProps := schema["properties"].(map[string]any)
	if !hasProps {
		values, _ := schema["additionalProperties"].(map[string]any)
		// A map such as labels, or something that the schema leaves open: any fixed key may be absent. By a variable, only
		// what is there is visited.
		_, isVar := key.(ast.Var)
		return step{schema: values, optional: !isVar && (!isText || !required(schema, string(name)))}
	}
	if !isText {
		return step{}
	}
	prop, ok := props[string(name)].(map[string]any)
	if !ok {
		return step{missing: schema["additionalProperties"] == false}
	}
	_, hasDefault := f.defaultOf(prop)
	return step{schema: prop, optional: !required(schema, string(name)) && !hasDefault}
}

func required(schema map[string]any, name string) bool {
	list, _ := schema["required"].([]any)
	return slices.Contains(list, any(name))
}

// deref follows references within the schema.
func (f inputFields) deref(schema map[string]any) map[string]any {
	for range 8 {
		ref, ok := schema["$ref"].(string)
		if !ok {
			return schema
		}
		var at any = f.root
		if ref == "#" {
			schema = f.root
			continue
		}
		for _, token := range strings.Split(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
			m, _ := at.(map[string]any)
			at = m[unescaped(token)]
		}
		schema, _ = at.(map[string]any)
	}
	return nil
}

// unescaped is a part of a JSON pointer as the key that it means.
func unescaped(token string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(token) }

// walk follows a path from input on. It returns the lengths of the prefixes that end in a field that may be absent, and
// the last step.
func (f inputFields) walk(path ast.Ref) (optional []int, last step) {
	last = step{schema: f.root}
	for i, term := range path[1:] {
		last = f.next(last.schema, term.Value)
		if last.optional {
			optional = append(optional, i+2)
		}
		if last.schema == nil {
			return optional, last
		}
	}
	return optional, last
}

// names are the fields of a value with a schema, sorted.
func (f inputFields) names(schema map[string]any) []string {
	props, _ := f.deref(schema)["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(props))
}

// checkFields refuses what the type checker lets pass: object.get with a field that doesn't exist, and a comparison
// with a word that the field never holds.
func (t moduleText) checkFields(resolved *ast.Module, f inputFields) []Problem {
	var problems []Problem
	visit := func(operator ast.Ref, args []*ast.Term, loc *ast.Location) {
		switch operator.String() {
		case ast.ObjectGet.Name:
			problems = append(problems, t.checkGet(args, f, loc)...)
		case ast.Equal.Name, ast.Equality.Name, ast.NotEqual.Name:
			problems = append(problems, t.checkWord(args, f, loc)...)
		case ast.Member.Name:
			problems = append(problems, t.checkMembers(args, f, loc)...)
		}
	}
	ast.WalkExprs(resolved, func(e *ast.Expr) bool {
		if e.IsCall() {
			visit(e.Operator(), e.Operands(), e.Location)
		}
		return false
	})
	ast.WalkTerms(resolved, func(term *ast.Term) bool {
		if call, ok := term.Value.(ast.Call); ok {
			if ref, ok := call[0].Value.(ast.Ref); ok {
				visit(ref, call[1:], term.Location)
			}
		}
		return false
	})
	return problems
}

// checkGet looks at object.get(input..., key, default), where key is a field or an array of fields.
func (t moduleText) checkGet(args []*ast.Term, f inputFields, loc *ast.Location) []Problem {
	if len(args) < 2 {
		return nil
	}
	path, ok := inputRef(args[0])
	if !ok {
		return nil
	}
	keys := []*ast.Term{args[1]}
	if array, ok := args[1].Value.(*ast.Array); ok {
		keys = nil
		array.Foreach(func(k *ast.Term) { keys = append(keys, k) })
	}
	_, at := f.walk(path)
	for _, key := range keys {
		if at.schema == nil {
			return nil
		}
		from := at.schema
		if at = f.next(from, key.Value); at.missing {
			name, names := strings.Trim(key.String(), `"`), f.names(from)
			return []Problem{t.at(loc, "object.get: %v has no field %s%s; there are: %s", path, name,
				didYouMean(name, names), strings.Join(names, ", "))}
		}
		path = path.Append(key)
	}
	return nil
}

// checkWord looks at a comparison of a field that has a closed list of words with another word.
func (t moduleText) checkWord(args []*ast.Term, f inputFields, loc *ast.Location) []Problem {
	if len(args) != 2 {
		return nil
	}
	field, word := args[0], args[1]
	if _, ok := field.Value.(ast.String); ok {
		field, word = word, field
	}
	text, ok := word.Value.(ast.String)
	path, isInput := inputRef(field)
	if !ok || !isInput {
		return nil
	}
	_, at := f.walk(path)
	words := texted(f.deref(at.schema)["enum"])
	if len(words) == 0 || slices.Contains(words, string(text)) {
		return nil
	}
	return []Problem{t.at(loc, "%v is never %q%s; it is one of: %s", path, string(text), didYouMean(string(text), words),
		strings.Join(words, ", "))}
}

// checkMembers looks at input... in ["word", ...], or in a set.
func (t moduleText) checkMembers(args []*ast.Term, f inputFields, loc *ast.Location) []Problem {
	if len(args) < 2 {
		return nil
	}
	var problems []Problem
	compare := func(word *ast.Term) {
		problems = append(problems, t.checkWord([]*ast.Term{args[0], word}, f, loc)...)
	}
	switch list := args[1].Value.(type) {
	case *ast.Array:
		list.Foreach(compare)
	case ast.Set:
		list.Foreach(compare)
	}
	return problems
}

// texted is a list of strings that JSON holds, or nil when it holds anything else.
func texted(v any) []string {
	list, _ := v.([]any)
	words := make([]string, 0, len(list))
	for _, item := range list {
		word, ok := item.(string)
		if !ok {
			return nil
		}
		words = append(words, word)
	}
	return words
}

// inputRef is a term as a path from input, if it is one.
func inputRef(t *ast.Term) (ast.Ref, bool) {
	switch v := t.Value.(type) {
	case ast.Ref:
		return v, v[0].Equal(ast.InputRootDocument)
	case ast.Var:
		return ast.Ref{t}, t.Equal(ast.InputRootDocument)
	}
	return nil, false
}
