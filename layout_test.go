// Package layout guards the house: which package may know which, and what must never reach the shipped programs. It
// holds tests only.
package layout

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/flight-operator/flight-operator"

// allowedImports says which packages of ours a package may import. A pattern that ends in /... covers everything below
// it; the longest pattern that fits a package decides. Imports go strictly down: programs, then webhooks and
// controllers (which never know each other), then the pure cores, then ports, then values.
var allowedImports = map[string][]string{
	"api/v1":                             {},
	"policies":                           {},
	"docs":                               {},
	"internal/money":                     {},
	"internal/places":                    {},
	"internal/instruction":               {},
	"internal/booking":                   {"api/v1", "internal/money"},
	"internal/booking/rest":              {"api/v1", "internal/booking", "internal/money"},
	"internal/booking/guard":             {"api/v1", "internal/booking", "internal/money"},
	"internal/booking/simulator":         {"api/v1", "internal/money"},
	"internal/booking/conformance":       {"api/v1", "internal/booking", "internal/money"},
	"internal/quota":                     {"api/v1"},
	"internal/quota/store":               {"api/v1", "internal/quota"},
	"internal/quota/census":              {"api/v1", "internal/policy", "internal/quota"},
	"internal/policy":                    {"api/v1", "policies", "internal/booking", "internal/money", "internal/places", "internal/quota"},
	"internal/policy/loader":             {"api/v1", "internal/policy"},
	"internal/replica":                   {"api/v1"},
	"internal/controlplane":              {},
	"webhooks/...":                       {"api/v1", "internal/instruction", "internal/money", "internal/places", "internal/policy", "internal/booking", "internal/quota", "internal/quota/store"},
	"controllers/flightticket/lifecycle": {"api/v1", "internal/booking", "internal/instruction", "internal/money"},
	"controllers/flightticket":           {"api/v1", "controllers/flightticket/lifecycle", "internal/booking", "internal/instruction", "internal/money", "internal/places", "internal/policy", "internal/quota"},
	"controllers/flightpolicy":           {"api/v1", "internal/policy", "internal/replica"},
	"controllers/quotabucket":            {"api/v1", "internal/booking", "internal/policy", "internal/quota", "internal/quota/census", "internal/quota/store"},
	"controllers/bookingprovider":        {"api/v1", "internal/booking", "internal/booking/rest", "internal/booking/guard", "internal/money"},
	"hack/states":                        {"api/v1", "controllers/flightticket/lifecycle"},
	"cmd/...":                            {"..."},
	"test/...":                           {"..."},
}

// forbiddenDependencies are promises about whole programs and packages: what must not be reached by any way.
var forbiddenDependencies = []struct{ pkg, forbidden, why string }{
	{"controllers/flightticket/lifecycle", "github.com/open-policy-agent/opa", "the core has a verdict of its own, so that it stays pure"},
	{"controllers/flightticket/lifecycle", "k8s.io/client-go", "the core does no I/O"},
	{"internal/policy", "k8s.io/client-go", "the engine must run offline, in the command line and in tests"},
	{"internal/policy", "sigs.k8s.io/controller-runtime", "the engine must run offline, in the command line and in tests"},
	{"internal/quota", "k8s.io/client-go", "the ledger's arithmetic does no I/O"},
	{"internal/quota", "sigs.k8s.io/controller-runtime", "the ledger's arithmetic does no I/O"},
	{"api/v1", "k8s.io/client-go", "clients import the kinds alone"},
	{"cmd/webhook", module + "/internal/booking/simulator", "a simulator has no place in a shipped program"},
	{"cmd/webhook", module + "/internal/booking/rest", "the webhook must not be able to book"},
	{"cmd/webhook", "sigs.k8s.io/controller-runtime/pkg/envtest", "test machinery has no place in a shipped program"},
	{"cmd/controller", module + "/internal/booking/simulator", "a simulator has no place in a shipped program"},
	{"cmd/controller", "sigs.k8s.io/controller-runtime/pkg/envtest", "test machinery has no place in a shipped program"},
	{"cmd/kubectl-flights/exit", "k8s.io/client-go", "commands that work offline end in the same way"},
	{"cmd/kubectl-flights/ledger", "k8s.io/client-go", "what a person may read is found out elsewhere, and never guessed"},
	{"cmd/kubectl-flights", module + "/internal/booking/rest", "a decision about a ticket is written, never carried out here"},
	{"cmd/controller", module + "/webhooks", "the controller serves no admission"},
}

func TestPackagesImportOnlyWhatTheHouseAllows(t *testing.T) {
	for _, line := range goList(t, "{{.ImportPath}} {{join .Imports \" \"}}", "./...") {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(strings.TrimPrefix(fields[0], module), "/")
		if pkg == "" {
			continue
		}
		allowed, known := lookup(pkg)
		if !known {
			t.Errorf("package %s has no line in allowedImports: decide what it may know", pkg)
			continue
		}
		for _, imported := range fields[1:] {
			ours, is := strings.CutPrefix(imported, module+"/")
			if is && !covers(allowed, ours) {
				t.Errorf("%s must not import %s", pkg, ours)
			}
		}
	}
}

func TestProgramsAndCoresDoNotReachWhatTheyMustNotKnow(t *testing.T) {
	for _, f := range forbiddenDependencies {
		for _, dependency := range goList(t, "{{join .Deps \"\\n\"}}", "./"+f.pkg) {
			if dependency == f.forbidden || strings.HasPrefix(dependency, f.forbidden+"/") {
				t.Errorf("%s reaches %s: %s", f.pkg, dependency, f.why)
			}
		}
	}
}

// lookup returns the allowed imports of the longest pattern that fits a package.
func lookup(pkg string) (allowed []string, known bool) {
	longest := -1
	for pattern, list := range allowedImports {
		if covers([]string{pattern}, pkg) && len(pattern) > longest {
			longest, allowed, known = len(pattern), list, true
		}
	}
	return allowed, known
}

func covers(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if pattern == "..." || pattern == pkg {
			return true
		}
		folder, wide := strings.CutSuffix(pattern, "/...")
		return wide && (pkg == folder || strings.HasPrefix(pkg, folder+"/"))
	})
}

func goList(t *testing.T, format, pattern string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", format, pattern).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pattern, err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
