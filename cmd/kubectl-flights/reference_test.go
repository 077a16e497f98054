package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const introduction = `# kubectl flights

<!-- Written by the tests of cmd/kubectl-flights from the programs' own help: UPDATE_GOLDEN=1 go test ./cmd/kubectl-flights -->

The plugin for what people do with tickets beyond apply, get and delete. Build it and put it into your PATH, and kubectl finds it:

` + "```text" + `
go build -o ~/bin/kubectl-flights ./cmd/kubectl-flights
cp cmd/kubectl-flights/kubectl_complete-flights ~/bin/   # kubectl's own completion then completes names of tickets and policies
` + "```" + `

Which page of the [runbooks](runbooks/README.md) tells when to use a command is said by the ticket's reason.

`

// The reference is the help of each command, so that it can't say anything else than the program.
func TestTheReferenceIsTheHelpOfEachCommand(t *testing.T) {
	var page strings.Builder
	page.WriteString(introduction)
	section := func(title string, args ...string) {
		code, out, errs := called(append(args, "--help")...)
		if code != 0 || errs != "" {
			t.Fatalf("%s --help ends with %d: %s", title, code, errs)
		}
		page.WriteString("## " + title + "\n\n```text\n" + strings.TrimSpace(out) + "\n```\n\n")
	}
	section("kubectl flights")
	for _, c := range newRoot(genericiooptions.NewTestIOStreamsDiscard(), "").Commands() {
		section("kubectl flights "+c.Name(), c.Name())
	}
	got := strings.TrimRight(page.String(), "\n") + "\n"
	path := filepath.Join("..", "..", "docs", "kubectl-flights.md")
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is stale (-want +got; UPDATE_GOLDEN=1 writes it):\n%s", path, diff)
	}
}
