package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// worded is an error of the parser or compiler with what it leaves out: which types, and what to do. What it doesn't know
// stays as it is.
func worded(e *ast.Error) string {
	switch d := e.Details.(type) {
	case *ast.RefErrInvalidDetail:
		return unknownField(d)
	case *ast.UnificationErrDetail:
		return e.Message + ": " + neverEqual(d.Left, d.Right)
	case *ast.ArgErrDetail:
		return e.Message + ": " + wrongArguments(e.Message, d)
	}
	switch {
	case e.Code == ast.ParseErr && strings.HasPrefix(e.Message, "unexpected eof token"):
		return "the module ends too early: a brace or bracket is not closed, or a rule is not finished"
	case e.Code == ast.CompileErr && strings.HasPrefix(e.Message, "assigned var ") && strings.HasSuffix(e.Message, " unused"):
		return e.Message + ": remove it, or write _ in its place"
	case e.Code == ast.CompileErr && strings.HasPrefix(e.Message, "declared var ") && strings.HasSuffix(e.Message, " unused"):
		return e.Message + ": remove it"
	}
	return e.Message
}

// unknownField says which field is unknown and which ones there are.
func unknownField(d *ast.RefErrInvalidDetail) string {
	if len(d.OneOf) == 0 || d.Pos >= len(d.Ref) {
		return fmt.Sprintf("undefined ref: %v", d.Ref)
	}
	names := make([]string, len(d.OneOf))
	for i, v := range d.OneOf {
		names[i] = strings.Trim(v.String(), `"`)
	}
	slices.Sort(names)
	name := strings.Trim(d.Ref[d.Pos].String(), `"`)
	return fmt.Sprintf("undefined ref: %v: %v has no field %s%s; there are: %s", d.Ref, d.Ref[:d.Pos], name,
		didYouMean(name, names), strings.Join(names, ", "))
}

// neverEqual names two types. Those of one kind, as two objects, differ within, so all of them is told.
func neverEqual(left, right types.Type) string {
	a, b := typeKind(left), typeKind(right)
	if a == b {
		a, b = shorten(types.Sprint(left)), shorten(types.Sprint(right))
	}
	return fmt.Sprintf("%s is never equal to %s: compare values of one type", a, b)
}

// wrongArguments says what a function is given and wants. A list forgotten around the values of sprintf is so frequent
// that it has words of its own.
func wrongArguments(told string, d *ast.ArgErrDetail) string {
	if strings.HasPrefix(told, ast.Sprintf.Name+": ") {
		if len(d.Have) < 2 || typeKind(d.Have[1]) != "an array" || strings.HasSuffix(told, "arity mismatch") {
			return `the second argument is a list, as in sprintf("%v of %v", [a, b])`
		}
	}
	return strings.Join(d.Lines(), ", ")
}

// typeKind is a type in words, without what is in it.
func typeKind(t types.Type) string {
	switch t.(type) {
	case types.Null:
		return "null"
	case types.Boolean:
		return "a boolean"
	case types.Number:
		return "a number"
	case types.String:
		return "a string"
	case *types.Array:
		return "an array"
	case *types.Set:
		return "a set"
	case *types.Object:
		return "an object"
	}
	return types.Sprint(t)
}
