package policy

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

//go:embed input.schema.json
var inputSchema []byte

// InputSchema is the JSON schema of what policies see as input, version v1. Documentation is made from it.
func InputSchema() []byte { return inputSchema }

const (
	// maxModuleBytes bounds a module, and is what the field's CRD schema says.
	maxModuleBytes = 256 << 10
	// maxDepth bounds how deep terms may be nested. The compiler recurses, and a stack that overflows can't be
	// recovered from.
	maxDepth = 200
)

// program is a compiled module with its one query.
type program struct {
	compiler *ast.Compiler
	query    ast.Body
}

// moduleText is the Rego of a policy and the field that problems with it are told of.
type moduleText struct{ source, field string }

// at makes a problem at a place in the module.
func (t moduleText) at(loc *ast.Location, format string, args ...any) Problem {
	p := Problem{Field: t.field, Message: fmt.Sprintf(format, args...)}
	if loc != nil {
		p.Row, p.Col = loc.Row, loc.Col
	}
	return p
}

// compile fills in parameters and program, unless it finds problems. A panic of the compiler is a problem like others.
func (rev *revision) compile(ctx context.Context, text moduleText, raw *apiextensionsv1.JSON, l limits) (problems []Problem) {
	defer func() {
		if r := recover(); r != nil {
			problems = append(problems, text.at(nil, "the Rego compiler failed on this module (%v): simplify it, and report the module as a defect", r))
		}
	}()
	parameters, problem := readParameters(raw)
	if problem != nil {
		problems = append(problems, *problem)
	}
	module, found := text.parse()
	problems = append(problems, found...)
	if module == nil {
		return problems
	}
	schema, found := text.parameterSchema(module)
	problems = append(problems, found...)
	if len(found) == 0 && parameters != nil {
		problems = append(problems, checkParameters(schema, parameters)...)
	}
	program, found := text.compile(module, schema)
	problems = append(problems, found...)
	if len(problems) > 0 {
		return problems
	}
	term, err := parametersTerm(parameters)
	if err != nil {
		return []Problem{{Field: specParameters, Message: err.Error()}}
	}
	rev.parameters, rev.program = term, program
	if problems = rev.tryOut(ctx, text, l); len(problems) > 0 {
		rev.program = nil
	}
	return problems
}

// parse reads the module. Without a module there are problems.
func (t moduleText) parse() (*ast.Module, []Problem) {
	if len(t.source) > maxModuleBytes {
		return nil, []Problem{t.at(nil, "the module has %d bytes, more than the %d allowed: split it into several policies",
			len(t.source), maxModuleBytes)}
	}
	// The parser that builds modules has no depth to set; this one has.
	_, _, errs := ast.NewParser().WithReader(strings.NewReader(t.source)).WithMaxRecursionDepth(maxDepth).
		WithCapabilities(capabilities()).WithRegoVersion(ast.RegoV1).Parse()
	for _, err := range errs {
		if err.Message == ast.ErrMaxParsingRecursionDepthExceeded.Error() {
			return nil, []Problem{t.at(err.Location, "nested more than %d deep: name the parts as rules", maxDepth)}
		}
	}
	module, err := ast.ParseModuleWithOpts("", t.source, ast.ParserOptions{
		Capabilities: capabilities(), ProcessAnnotation: true, RegoVersion: ast.RegoV1,
	})
	if err != nil {
		return nil, t.parseProblems(err)
	}
	return module, nil
}

func (t moduleText) parseProblems(err error) []Problem {
	var list ast.Errors
	var one *ast.Error
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = ast.Errors{one}
	default:
		return []Problem{t.at(nil, "%v", err)}
	}
	problems := make([]Problem, len(list))
	for i, e := range list {
		problems[i] = t.at(e.Location, "%s", e.Message)
	}
	return problems
}

// compile checks a parsed module and makes its program.
func (t moduleText) compile(module *ast.Module, parameters map[string]any) (*program, []Problem) {
	schemas := ast.NewSchemaSet()
	schema, err := schemaOfInput(parameters)
	if err != nil {
		return nil, []Problem{t.at(nil, "%v", err)}
	}
	schemas.Put(ast.SchemaRootRef, schema)
	compiler := ast.NewCompiler().WithCapabilities(capabilities()).WithStrict(true).WithSchemas(schemas).
		WithUseTypeCheckAnnotations(false)
	var problems []Problem
	compiler.Compile(map[string]*ast.Module{"policy": module})
	if len(compiler.Errors) > 0 {
		problems = append(problems, t.parseProblems(compiler.Errors)...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	query, err := compiler.QueryCompiler().Compile(t.query(module))
	if err != nil {
		return nil, t.parseProblems(err)
	}
	return &program{compiler: compiler, query: query}, nil
}

// query asks for all contract rules that the module has, at once: deny = data.<package>.deny; ...
func (t moduleText) query(module *ast.Module) ast.Body {
	var body ast.Body
	for _, rule := range contract {
		for _, r := range module.Rules {
			if rule.supported && r.Head.Name == ast.Var(rule.name) {
				ref := module.Package.Path.Append(ast.StringTerm(rule.name))
				body.Append(ast.Equality.Expr(ast.VarTerm(rule.name), ast.NewTerm(ref)))
				break
			}
		}
	}
	return body
}
