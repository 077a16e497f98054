package layout

import (
	"maps"
	"os"
	"strings"
	"testing"
)

func TestEveryDirectDependencySaysWhyItIsThere(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	direct := 0
	for line := range strings.Lines(string(text)) {
		requirement, reason, _ := strings.Cut(line, "//")
		fields, reason := strings.Fields(requirement), strings.TrimSpace(reason)
		if len(fields) != 2 || !strings.HasPrefix(fields[1], "v") || reason == "indirect" {
			continue
		}
		direct++
		if reason == "" {
			t.Errorf("go.mod: %s has no reason: write one behind it, as in // the Rego engine", fields[0])
		}
	}
	if direct == 0 {
		t.Error("no direct dependency was found in go.mod: this test no longer reads it right")
	}
}

// The control plane's programs, the generators and we are compiled from the same versions of the modules that they share.
// So each package of those is compiled once, which is a third of the time of a first build.
func TestToolsAreBuiltFromTheModulesThatWeBuildFrom(t *testing.T) {
	apart := map[string]string{
		"hack/certmanager: github.com/google/cel-go": "cert-manager needs a newer one than Kubernetes can be built with",
	}
	ours := requirements(t, "go.mod")
	for _, folder := range []string{"hack/cluster", "hack/certmanager", "hack/tools/controller-gen", "hack/tools/oapi-codegen"} {
		shared := 0
		for module, version := range requirements(t, folder+"/go.mod") {
			switch wanted, both := ours[module]; {
			case !both:
			case version == wanted:
				shared++
			case apart[folder+": "+module] == "":
				t.Errorf("%s requires %s %s, and go.mod %s: run 'go get %[2]s@%[4]s' in %[1]s", folder, module, version, wanted)
			}
		}
		if shared == 0 {
			t.Errorf("%s shares no module with go.mod: this test no longer reads it right", folder)
		}
	}
}

// requirements are the modules that a go.mod requires, with the versions that it takes.
func requirements(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	versions, replacements := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "//")
		switch fields := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(line, "require "), "replace ")); {
		case len(fields) == 4 && fields[1] == "=>":
			replacements[fields[0]] = fields[3]
		case len(fields) == 2 && strings.HasPrefix(fields[1], "v"):
			versions[fields[0]] = fields[1]
		}
	}
	maps.Copy(versions, replacements)
	return versions
}
