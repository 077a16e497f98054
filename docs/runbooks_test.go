// Package docs holds tests of the pages beside it, and nothing else. They read texts and source files, and know no cluster:
// that the commands on the pages work is tested by test/story.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const core = "../controllers/flightticket/lifecycle"

// The headings of a runbook, in order.
func sections() []string {
	return []string{"What you see", "What happened", "What to check", "What to do", "What happens then"}
}

func TestEveryReasonOfStalledHasARunbookAndEveryRunbookAReason(t *testing.T) {
	reasons := stalledReasons(t)
	if len(reasons) < 10 {
		t.Fatalf("only %v were found in %s: this test no longer reads it right", reasons, core)
	}
	index, err := os.ReadFile(filepath.Join("runbooks", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages := runbooks(t)
	for _, reason := range reasons {
		if !slices.Contains(pages, reason) {
			t.Errorf("a ticket can be Stalled with %s, and docs/runbooks/%s.md does not exist", reason, reason)
		}
		if !strings.Contains(string(index), "| ["+reason+"]("+reason+".md) |") {
			t.Errorf("docs/runbooks/README.md does not list %s", reason)
		}
	}
	for _, page := range pages {
		if !slices.Contains(reasons, page) {
			t.Errorf("docs/runbooks/%s.md is about a reason with which no ticket is Stalled", page)
		}
	}
}

func TestEveryRunbookHasAllSections(t *testing.T) {
	for _, page := range runbooks(t) {
		text, err := os.ReadFile(filepath.Join("runbooks", page+".md"))
		if err != nil {
			t.Fatal(err)
		}
		title, rest, _ := strings.Cut(string(text), "\n")
		if title != "# "+page {
			t.Errorf("%s: the title is %q", page, title)
		}
		parts := strings.Split("\n"+strings.TrimSpace(rest), "\n## ")[1:]
		var found []string
		for _, part := range parts {
			heading, body, _ := strings.Cut(part, "\n")
			found = append(found, heading)
			if len(strings.Fields(body)) < 5 {
				t.Errorf("%s: %q says next to nothing", page, heading)
			}
			if fence := map[string]string{"What you see": "```text\n", "What to check": "```sh\n", "What to do": "```sh\n"}[heading]; !strings.Contains(body, fence) {
				t.Errorf("%s: %q has no %q block", page, heading, strings.Trim(fence, "`\n"))
			}
		}
		if !slices.Equal(found, sections()) {
			t.Errorf("%s: the sections are %q, want %q", page, found, sections())
		}
	}
}

// runbooks are the reasons that have a page.
func runbooks(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("runbooks", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, file := range files {
		if page := strings.TrimSuffix(filepath.Base(file), ".md"); page != "README" {
			pages = append(pages, page)
		}
	}
	return pages
}

// stalledReasons reads the source of the core: the reasons that stand nearest to each place where a report's mood becomes
// stalled.
func stalledReasons(t *testing.T) []string {
	t.Helper()
	files, named := parsedCore(t)
	found := map[string]bool{}
	for _, file := range files {
		var above []ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				above = above[:len(above)-1]
				return true
			}
			above = append(above, n)
			if name, is := n.(*ast.Ident); is && name.Name == "stalled" && sets(above) {
				for _, reason := range nearest(above, named) {
					found[reason] = true
				}
			}
			return true
		})
	}
	var reasons []string
	for reason := range found {
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	return reasons
}

// parsedCore parses the core, and finds the functions that return a reason.
func parsedCore(t *testing.T) ([]*ast.File, map[string]*ast.FuncDecl) {
	t.Helper()
	set := token.NewFileSet()
	entries, err := fs.Glob(os.DirFS(core), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	named := map[string]*ast.FuncDecl{}
	for _, entry := range entries {
		if strings.HasSuffix(entry, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, filepath.Join(core, entry), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && returnsReason(f) {
				named[f.Name.Name] = f
			}
		}
	}
	return files, named
}

func returnsReason(f *ast.FuncDecl) bool {
	if f.Type.Results == nil {
		return false
	}
	return slices.ContainsFunc(f.Type.Results.List, func(field *ast.Field) bool {
		return slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.Name == "reason" })
	})
}

// sets says whether the mood is set at a place, rather than declared or compared.
func sets(above []ast.Node) bool {
	switch above[len(above)-2].(type) {
	case *ast.BinaryExpr, *ast.ValueSpec:
		return false
	default:
		return true
	}
}

// nearest are the reasons in the smallest part of the source around a place that has any.
func nearest(above []ast.Node, named map[string]*ast.FuncDecl) []string {
	for i := len(above) - 1; i >= 0; i-- {
		if reasons := reasonsIn(above[i], named); len(reasons) > 0 {
			return reasons
		}
		if _, is := above[i].(*ast.FuncDecl); is {
			return nil // it words another function's report differently
		}
	}
	return nil
}

// reasonsIn are the reasons of tickets that a part of the source names, itself or through a function that returns one.
func reasonsIn(part ast.Node, named map[string]*ast.FuncDecl) []string {
	var reasons []string
	ast.Inspect(part, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if reason, is := strings.CutPrefix(n.Sel.Name, "Reason"); is {
				reasons = append(reasons, reason)
			}
		case *ast.CallExpr:
			if name, is := n.Fun.(*ast.Ident); is && named[name.Name] != nil {
				reasons = append(reasons, reasonsIn(named[name.Name].Body, nil)...)
			}
		}
		return true
	})
	return reasons
}
