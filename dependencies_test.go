package layout

import (
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
