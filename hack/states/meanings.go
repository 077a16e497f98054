package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// meanings say what the value of a constant stands for. States and reasons share words, so that they are kept apart.
type meanings struct {
	states, reasons map[string]string
}

// readMeanings takes the comments of the constants State... and Reason... in the Go files of a folder. A value that is
// declared for several kinds of object keeps the meaning that was read first: that of a ticket.
func readMeanings(folder string) (meanings, error) {
	m := meanings{states: map[string]string{}, reasons: map[string]string{}}
	for _, name := range []string{"flightticket_types.go", "conditions.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, name), nil, parser.ParseComments)
		if err != nil {
			return meanings{}, fmt.Errorf("read the constants: %w", err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				m.take(spec)
			}
			return true
		})
	}
	return m, nil
}

func (m meanings) take(spec *ast.ValueSpec) {
	if len(spec.Names) != 1 || len(spec.Values) != 1 {
		return
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok {
		return
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return // a number
	}
	name := spec.Names[0].Name
	into := m.reasons
	switch {
	case strings.HasPrefix(name, "State"):
		into = m.states
	case !strings.HasPrefix(name, "Reason"):
		return
	}
	if _, known := into[value]; !known {
		_, meaning, _ := strings.Cut(strings.Join(strings.Fields(spec.Doc.Text()), " "), ": ")
		into[value] = meaning
	}
}
