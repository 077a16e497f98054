package policy

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
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
	// maxRules bounds the rules of a module: the compiler's time grows with the square of their number.
	maxRules = 500
)

// program is a compiled module with its queries. Its store is empty, and its one transaction only reads: an evaluation
// wants to see one, and policies have no data.
type program struct {
	compiler *ast.Compiler
	query    ast.Body
	store    storage.Store
	txn      storage.Transaction
	// parameters is the schema of parameters, nil when there are none; source is the text that was compiled.
	parameters map[string]any
	source     string
	quota      *quotaProgram // nil when the module has no such rule
	mutate     ast.Body      // for the rule mutate alone; nil when the module has none
}

// moduleText is the Rego of a policy, the field that problems with it are told of, and what the program acts on.
type moduleText struct {
	source, field string
	acts          []Rule
}

// at makes a problem at a place in the module.
func (t moduleText) at(loc *ast.Location, format string, args ...any) Problem {
	p := Problem{Field: t.field, Message: fmt.Sprintf(format, args...)}
	if loc != nil {
		p.Row, p.Col = loc.Row, loc.Col
	}
	return p
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
	module, err := ast.ParseModuleWithOpts(t.field, t.source, ast.ParserOptions{
		Capabilities: capabilities(), ProcessAnnotation: true, RegoVersion: ast.RegoV1,
	})
	if err != nil {
		return nil, t.parseProblems(err)
	}
	if r := ruleBeyond(module, maxRules); r != nil {
		return nil, []Problem{t.at(r.Location, "the module has more than %d rules: split it into several policies", maxRules)}
	}
	return module, nil
}

// ruleBeyond is the first rule after so many, or nil. Each else counts as one.
func ruleBeyond(module *ast.Module, limit int) *ast.Rule {
	count := 0
	var beyond *ast.Rule
	ast.WalkRules(module, func(r *ast.Rule) bool {
		if count++; count > limit && beyond == nil {
			beyond = r
		}
		return false
	})
	return beyond
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
		problems[i] = t.at(e.Location, "%s", worded(e))
	}
	return problems
}

// compile checks a parsed module and makes its program. It tells all problems that can be told at once.
func (t moduleText) compile(module *ast.Module, parameters map[string]any) (*program, []Problem) {
	schema, err := schemaOfInput(parameters)
	if err != nil {
		return nil, []Problem{t.at(nil, "%v", err)}
	}
	quota, problems := t.quotaOf(module)
	problems = append(problems, t.checkContract(module)...)
	problems = append(problems, t.checkImports(module)...)
	if resolved := resolve(module); resolved != nil {
		fields := inputFields{schema}
		problems = append(problems, t.checkUnused(resolved)...)
		problems = append(problems, t.checkWorld(resolved, parameters != nil)...)
		problems = append(problems, t.checkFields(resolved, fields)...)
		problems = append(problems, t.checkArguments(resolved, fields)...)
		problems = append(problems, t.checkMessages(resolved, fields)...)
		problems = append(problems, t.checkQuota(resolved, quota)...)
	}
	known := capabilities()
	if len(problems) > 0 {
		known = allCapabilities() // the module is refused; a forbidden built-in needn't hide what else is wrong
	}
	compiler := newCompiler(known, schema)
	compiler.Compile(map[string]*ast.Module{moduleName: module})
	if compiler.Failed() {
		return nil, append(problems, t.compilerProblems(compiler.Errors)...)
	}
	problems = append(problems, t.checkElements(module, compiler.TypeEnv)...)
	if len(problems) > 0 {
		return nil, problems
	}
	made := &program{compiler: compiler, parameters: parameters, source: t.source, quota: quota}
	return made, t.prepare(made, module)
}

// prepare compiles the queries of a program and opens its store.
func (t moduleText) prepare(p *program, module *ast.Module) []Problem {
	var err error
	if body := t.query(module, decisive...); len(body) > 0 {
		if p.query, err = p.compiler.QueryCompiler().Compile(body); err != nil {
			return t.parseProblems(err)
		}
	}
	if body := t.query(module, string(RuleMutate)); len(body) > 0 {
		if p.mutate, err = p.compiler.QueryCompiler().Compile(body); err != nil {
			return t.parseProblems(err)
		}
	}
	if p.quota != nil {
		if p.quota.query, err = p.compiler.QueryCompiler().Compile(t.query(module, string(RuleQuota))); err != nil {
			return t.parseProblems(err)
		}
	}
	p.store = inmem.New()
	if p.txn, err = p.store.NewTransaction(context.Background()); err != nil {
		return []Problem{t.at(nil, "open an empty store: %v", err)}
	}
	return nil
}

// newCompiler checks strictly and against a schema of input. Schemas that a module brings along are ignored.
func newCompiler(known *ast.Capabilities, schema map[string]any) *ast.Compiler {
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, schema)
	return ast.NewCompiler().WithCapabilities(known).WithStrict(true).WithSchemas(schemas).WithUseTypeCheckAnnotations(false)
}

// moduleName is what the compiler calls the module; nobody sees it.
const moduleName = "policy"

// resolve is the module with its references resolved and its local variables unique, or nil when that fails: then the
// compiler tells why. All built-ins are known, so that the ones that policies may not use are told by name.
func resolve(module *ast.Module) *ast.Module {
	compiler := ast.NewCompiler().
		WithCapabilities(allCapabilities()).
		WithOnlyStagesUpTo(ast.StageRewriteLocalVars)
	compiler.Compile(map[string]*ast.Module{moduleName: module})
	if compiler.Failed() {
		return nil
	}
	return compiler.Modules[moduleName]
}

// compilerProblems words the compiler's errors for people who write policies.
func (t moduleText) compilerProblems(errs ast.Errors) []Problem {
	var problems []Problem
	for _, e := range errs {
		if name, ok := strings.CutPrefix(e.Message, "undefined function "); ok {
			if _, told := forbidden(name); told {
				continue
			}
		}
		problems = append(problems, t.at(e.Location, "%s", worded(e)))
	}
	return problems
}

// decisive are the rules that a decision rests on. What a policy sets in a ticket is asked for before.
var decisive = []string{"deny", "warn", string(RuleHold), string(RuleQuota)}

// query asks for some contract rules at once, as far as the module has them: deny = data.<package>.deny; ...
func (t moduleText) query(module *ast.Module, only ...string) ast.Body {
	var body ast.Body
	for _, rule := range contract {
		if !t.supports(rule) || !slices.Contains(only, rule.name) {
			continue
		}
		for _, r := range module.Rules {
			if r.Head.Name == ast.Var(rule.name) {
				ref := module.Package.Path.Append(ast.StringTerm(rule.name))
				body.Append(ast.Equality.Expr(ast.VarTerm(rule.name), ast.NewTerm(ref)))
				break
			}
		}
	}
	return body
}
