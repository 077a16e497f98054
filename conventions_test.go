package layout

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The sizes from which a file or a function is worth a second look. They are shown, not enforced.
const (
	longFile     = 400
	longFunction = 60
	someLines    = 30
)

// nameless are package names that say nothing about what is inside.
var nameless = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base"}

// source is a parsed Go file of ours.
type source struct {
	path string // relative to the root, with slashes
	file *ast.File
	set  *token.FileSet
	text []byte
}

func TestEachPackageIsNamedAfterWhatItHolds(t *testing.T) {
	for _, s := range sources(t) {
		if slices.Contains(nameless, strings.TrimSuffix(s.file.Name.Name, "_test")) {
			t.Errorf("%s: package %s says nothing of what it holds: name it after its noun, or put its functions beside their user",
				s.path, s.file.Name.Name)
		}
	}
}

func TestNothingHappensBeforeMain(t *testing.T) {
	for _, s := range sources(t) {
		for _, f := range functions(s) {
			if f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: init runs whether it is wanted or not: call a function from main", s.at(f))
			}
		}
	}
}

func TestFlagsStayInPrograms(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasPrefix(s.path, "cmd/") || s.file.Name.Name == "main" {
			continue
		}
		for _, imported := range s.imports() {
			if imported == "flag" || imported == "github.com/spf13/pflag" || imported == "github.com/spf13/cobra" {
				t.Errorf("%s: imports %s: options reach a package as values, flags belong to cmd", s.path, imported)
			}
		}
	}
}

// A test that reads a person's kubeconfig runs against that person's cluster.
func TestTestsReadNoKubeconfigOfAPerson(t *testing.T) {
	readers := []string{
		`Getenv("KUBECONFIG")`, `LookupEnv("KUBECONFIG")`, "NewDefaultClientConfigLoadingRules(", "RecommendedHomeFile",
		"GetConfigOrDie(", "config.GetConfig(", "ctrl.GetConfig(", "InClusterConfig(",
	}
	for _, s := range sources(t) {
		if !strings.HasSuffix(s.path, "_test.go") || s.path == "conventions_test.go" {
			continue
		}
		for _, reader := range readers {
			if bytes.Contains(s.text, []byte(reader)) {
				t.Errorf("%s: calls %s: take the configuration from internal/controlplane", s.path, reader)
			}
		}
	}
}

func TestEachPackageSaysWhatItKnows(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		folder := filepath.Dir(s.path)
		if strings.HasSuffix(s.path, "_test.go") && folder != "." { // the root holds tests only
			continue
		}
		documented[folder] = documented[folder] || s.file.Doc != nil
	}
	for folder, has := range documented {
		if !has {
			t.Errorf("%s: no file has a package comment: say what the package knows and what it must not", folder)
		}
	}
}

// The sizes are a mirror: what stands here is either worth its size or worth a cut. Nothing fails.
func TestSizesAreShown(t *testing.T) {
	all, short := 0, 0
	for _, s := range sources(t) {
		if lines := bytes.Count(s.text, []byte("\n")); lines > longFile {
			t.Logf("%s: %d lines", s.path, lines)
		}
		for _, f := range functions(s) {
			lines := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1
			all++
			if lines <= someLines {
				short++
			}
			if lines > longFunction {
				t.Logf("%s: %s has %d lines", s.at(f), f.Name.Name, lines)
			}
		}
	}
	t.Logf("%d of %d functions have at most %d lines", short, all, someLines)
}

// sources parses every Go file that a person wrote, nested modules included.
func sources(t *testing.T) []source {
	t.Helper()
	var found []source
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || path == "bin" || path == "dist"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil && !ast.IsGenerated(file) {
			found = append(found, source{filepath.ToSlash(path), file, set, text})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("found no Go file: these tests must run in the root of the work tree")
	}
	return found
}

func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

func (s source) at(node ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.set.Position(node.Pos()).Line)
}

func functions(s source) []*ast.FuncDecl {
	var found []*ast.FuncDecl
	for _, declaration := range s.file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok {
			found = append(found, f)
		}
	}
	return found
}
