package flightticket

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"

	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
)

// The set of actions is closed. The compiler doesn't see a case that is missing; this does.
func TestEveryActionIsCarriedOut(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "reconciler.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var handled []string
	ast.Inspect(file, func(n ast.Node) bool {
		clause, ok := n.(*ast.CaseClause)
		if !ok {
			return true
		}
		for _, expression := range clause.List {
			if name, ok := expression.(*ast.SelectorExpr); ok {
				handled = append(handled, name.Sel.Name)
			}
		}
		return true
	})
	for _, action := range lifecycle.Actions() {
		if !slices.Contains(handled, string(action)) {
			t.Errorf("no case carries out %s", action)
		}
	}
}
