package policy

import "github.com/open-policy-agent/opa/v1/ast"

// inputParameters is the path of a policy's parameters.
var inputParameters = ast.MustParseRef("input.parameters")

// checkWorld refuses what reaches out of the policy: built-ins off the list, data that isn't the module's own, and
// "with" on anything but input.
//
// Parameters of a policy without a schema are refused with them: nobody could set them.
func (t moduleText) checkWorld(resolved *ast.Module, hasParameters bool) []Problem {
	var problems []Problem
	pkg := resolved.Package.Path
	ast.WalkRefs(resolved, func(ref ast.Ref) bool {
		if text, bad := forbidden(ref.String()); bad {
			problems = append(problems, t.at(ref[0].Location, "%s", text))
		}
		if ref[0].Equal(ast.DefaultRootDocument) && !ref.HasPrefix(pkg) {
			problems = append(problems, t.at(ref[0].Location,
				"%v isn't there: a policy sees input and its own rules, settings go into input.parameters", ref))
		}
		if !hasParameters && ref.HasPrefix(inputParameters) && len(ref) > len(inputParameters) {
			problems = append(problems, t.at(ref[0].Location,
				"%v: the policy has no schema for its parameters: describe them in METADATA above package (custom.parameters)", ref))
		}
		return false
	})
	ast.WalkWiths(resolved, func(w *ast.With) bool {
		if ref, ok := w.Target.Value.(ast.Ref); !ok || !ref[0].Equal(ast.InputRootDocument) {
			problems = append(problems, t.at(w.Location, "with may replace input and parts of it, not %v", w.Target))
		}
		return false
	})
	return problems
}

// checkImports refuses imports of other packages. They are resolved away later, and an unused one leaves no trace.
func (t moduleText) checkImports(module *ast.Module) []Problem {
	var problems []Problem
	for _, imp := range module.Imports {
		ref, ok := imp.Path.Value.(ast.Ref)
		if ok && ref[0].Equal(ast.DefaultRootDocument) && !ref.HasPrefix(module.Package.Path) {
			problems = append(problems, t.at(imp.Location,
				"import %v: there is nothing to import, a policy is one module that sees input and its own rules", ref))
		}
	}
	return problems
}
