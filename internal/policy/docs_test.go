package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"sigs.k8s.io/yaml"
)

// The pages for people who write policies.
const (
	guide      = "../../docs/policies.md"
	inputGuide = "../../docs/policy-input.md"
	quotaGuide = "../../docs/policy-quotas.md"
	tryGuide   = "../../docs/policy-rollout.md"
)

func readPage(t *testing.T, file string) string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestTheGuideTablesAreFresh holds what the pages list to what it is made from. UPDATE_GOLDEN=1 writes it anew.
func TestTheGuideTablesAreFresh(t *testing.T) {
	for _, c := range []struct{ file, name, text string }{
		{inputGuide, "input", inputTable(t)},
		{guide, "builtins", builtinTable()},
		{quotaGuide, "claims", claimTable()},
	} {
		page := readPage(t, c.file)
		begin, end := "<!-- generated: "+c.name+" -->\n", "<!-- end of "+c.name+" -->"
		before, rest, found := strings.Cut(page, begin)
		_, after, ended := strings.Cut(rest, end)
		fresh := before + begin + c.text + end + after
		switch {
		case !found || !ended:
			t.Errorf("%s has no %q with %q after it", c.file, begin, end)
		case fresh == page:
		case os.Getenv("UPDATE_GOLDEN") == "":
			t.Errorf("%s is stale: run UPDATE_GOLDEN=1 go test ./internal/policy -run Guide", c.file)
		default:
			if err := os.WriteFile(c.file, []byte(fresh), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// schemaNode is what the table needs of a schema.
type schemaNode struct {
	Type                 string
	Description          string
	Required             []string
	Properties           map[string]*schemaNode
	Items                *schemaNode
	AdditionalProperties any
}

// shape is the same for schemas with the same fields.
func (n *schemaNode) shape() string {
	if n.Items != nil {
		return n.Type + "[" + n.Items.shape() + "]"
	}
	var parts []string
	for _, name := range n.names() {
		parts = append(parts, name+":"+n.Properties[name].shape())
	}
	return n.Type + "{" + strings.Join(parts, ",") + "}"
}

// names are what is always there, in the order of the schema, and then what may be absent.
func (n *schemaNode) names() []string {
	var optional []string
	for name := range n.Properties {
		if !slices.Contains(n.Required, name) {
			optional = append(optional, name)
		}
	}
	slices.Sort(optional)
	return append(slices.Clone(n.Required), optional...)
}

func inputTable(t *testing.T) string {
	t.Helper()
	var root schemaNode
	if err := json.Unmarshal(InputSchema(), &root); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| path | type | optional? | meaning |\n|---|---|---|---|\n")
	seen := map[string]string{}
	var write func(n *schemaNode, path string)
	write = func(n *schemaNode, path string) {
		for _, name := range n.names() {
			field, optional := n.Properties[name], ""
			if !slices.Contains(n.Required, name) {
				optional = "optional"
			}
			at, kind, about, inner := path+"."+name, field.Type, field.Description, field
			if field.Items != nil {
				kind, inner = "array of "+field.Items.Type, field.Items
			}
			if texts, _ := field.AdditionalProperties.(map[string]any); texts != nil {
				kind = fmt.Sprintf("object of %v", texts["type"])
			}
			first, known := seen[inner.shape()]
			if known = known && len(inner.Properties) > 1; known {
				about += " Its fields are those of `" + first + "`."
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", at, kind, optional, about)
			if field.Items != nil {
				at += "[_]"
			}
			if !known {
				seen[inner.shape()] = at
				write(inner, at)
			}
		}
	}
	write(&root, "input")
	return b.String()
}

// builtinTable groups the missing built-ins by what to do instead, and lists those that are there.
func builtinTable() string {
	var order []string
	names := map[string][]string{}
	for _, a := range advice {
		name := "`" + a.prefix + "`"
		if strings.HasSuffix(a.prefix, ".") {
			name = "`" + a.prefix + "*`"
			if slices.ContainsFunc(allowedBuiltins, func(b string) bool { return strings.HasPrefix(b, a.prefix) }) {
				name = "other " + name
			}
		}
		if names[a.text] == nil {
			order = append(order, a.text)
		}
		names[a.text] = append(names[a.text], name)
	}
	var b strings.Builder
	b.WriteString("| missing | why, or what instead |\n|---|---|\n")
	for _, text := range order {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(names[text], ", "), text)
	}
	there := slices.Clone(allowedBuiltins)
	there = slices.DeleteFunc(there, func(name string) bool { return strings.HasPrefix(name, "internal.") })
	slices.SortFunc(there, cmp.Compare[string])
	fmt.Fprintf(&b, "\nAll that is there, operators among them: `%s`.\n", strings.Join(there, "`, `"))
	return b.String()
}

// claimTable lists what a claim may see.
func claimTable() string {
	var b strings.Builder
	b.WriteString("| path | when |\n|---|---|\n")
	for _, path := range claimPaths {
		fmt.Fprintf(&b, "| `%v` | always |\n", path)
	}
	for _, path := range offerPaths {
		fmt.Fprintf(&b, "| `%v` | with `stage: Booking` |\n", path)
	}
	return b.String()
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// TestTheGuideSnippetsAreWhatTheySay compiles each manifest and module of the pages as the engine does. What is followed by
// a comment "refused:" must be refused in these words.
func TestTheGuideSnippetsAreWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		page                         string
		engine                       *Engine
		manifests, modules, refusals int
	}{
		{guide, NewEngine(RuleQuota), 2, 2, 9}, {quotaGuide, NewEngine(Rules()...), 1, 2, 3},
		{tryGuide, NewEngine(Rules()...), 2, 2, 0},
	} {
		manifests, modules, refusals := checkSnippets(t, c.page, c.engine)
		if manifests < c.manifests || modules < c.modules || refusals < c.refusals {
			t.Errorf("%s has %d manifests, %d modules and %d refusals: are they still found?", c.page, manifests, modules, refusals)
		}
	}
}

func checkSnippets(t *testing.T, page string, e *Engine) (manifests, modules, refusals int) {
	t.Helper()
	for _, block := range fence.FindAllStringSubmatch(readPage(t, page), -1) {
		kind, text := block[1], block[2]
		switch {
		case kind == "yaml":
			manifests++
			var p flightsv1.FlightPolicy
			if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
				t.Errorf("%v in\n%s", err, text)
			} else if err := e.Validate(t.Context(), &p); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
		case kind == "rego" && strings.Contains(text, "\n# refused: "):
			for _, snippet := range strings.Split(text, "\n\n") {
				refusals++
				checkRefused(t, e, snippet)
			}
		case kind == "rego":
			modules++
			if err := e.Validate(t.Context(), regoPolicy("a", withPackage(text))); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
		}
	}
	return manifests, modules, refusals
}

// withPackage makes a module of rules, which then stand on line 3, unless they are one.
func withPackage(rules string) string {
	if strings.Contains(rules, "\npackage ") {
		return rules
	}
	return "package example\n\n" + rules
}

// checkRefused compares the first problem with what is quoted, in the form of the webhook. … stands for what is left out.
func checkRefused(t *testing.T, e *Engine, snippet string) {
	t.Helper()
	rules, quoted, found := strings.Cut(snippet, "\n# refused: ")
	if !found {
		t.Errorf("nothing is said about\n%s", snippet)
		return
	}
	want := strings.Join(strings.Fields(strings.ReplaceAll(quoted, "\n#", " ")), " ")
	var broken *CompileError
	if err := e.Validate(t.Context(), regoPolicy("a", withPackage(rules+"\n"))); !errors.As(err, &broken) {
		t.Errorf("not refused (%v):\n%s", err, rules)
		return
	}
	p := broken.Problems[0]
	got := fmt.Sprintf("%s: line %d, column %d: %s", p.Field, p.Row, p.Col, p.Message)
	start, cut := strings.CutSuffix(want, "…")
	if got != want && (!cut || !strings.HasPrefix(got, start)) {
		t.Errorf("%s\nis refused with\n  %s\nthe page says\n  %s", rules, got, want)
	}
}

func TestTheGuideTellsTheLimits(t *testing.T) {
	page, l := readPage(t, guide), defaultLimits()
	all := page + readPage(t, quotaGuide)
	for _, limit := range []string{
		fmt.Sprintf("| %d ms |", l.policy.Milliseconds()), fmt.Sprintf("| %.0f s |", l.request.Seconds()),
		fmt.Sprintf("| %.0f s |", l.compile.Seconds()), fmt.Sprintf("| %d MiB |", l.allocations>>20),
		fmt.Sprintf("| %d KiB, %d rules |", maxModuleBytes>>10, maxRules), fmt.Sprintf("| %d |", maxMessages),
		fmt.Sprintf("| %d bytes |", maxMessageBytes), fmt.Sprintf("%d time-outs in a row", maxStrikes),
		fmt.Sprintf("%.0f s of quarantine", coolDown.Seconds()),
	} {
		if !strings.Contains(page, limit) {
			t.Errorf("%s doesn't say %q", guide, limit)
		}
	}
	for _, name := range Library() {
		if !strings.Contains(all, "`"+name+"`") {
			t.Errorf("no page names the shipped policy %s", name)
		}
	}
	if lines := strings.Count(page, "\n"); lines >= 200 {
		t.Errorf("%s has %d lines: keep it under 200", guide, lines)
	}
}
