package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/exit"
)

// called runs a command line.
func called(args ...string) (code int, out, errs string) {
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	code = run(args, streams)
	return code, stdout.String(), stderr.String()
}

func TestACommandLineThatMakesNoSenseEndsWithTwoAndSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		want string
	}{
		"a command that isn't there":       {"resolv trip", `"resolv" is no command; do you mean resolve?`},
		"a word that is near no command":   {"frobnicate", `"frobnicate" is no command`},
		"a flag that isn't there":          {"sync trip --fast", "unknown flag: --fast"},
		"no ticket":                        {"resolve --done", "name one ticket"},
		"two tickets where one is decided": {"adopt one two --booking b", "name one ticket"},
		"no tickets":                       {"retain", "name one ticket or more"},
		"an empty name":                    {"sync  trip", "the name of a ticket is empty"},
		"done and not done":                {"resolve trip --done --not-done", "say --done or --not-done, not both"},
		"a booking that was not made":      {"resolve trip --not-done --booking b", "--booking goes with --done"},
		"a booking for no decision":        {"resolve trip --booking b", "--booking goes with --done"},
		"an adoption of nothing":           {"adopt trip", "say --booking ID"},
		"a dry run of another kind":        {"retain trip --dry-run=perhaps", "--dry-run is none, client or server"},
		"an output that isn't there":       {"retain trip -o table", "allowed formats are"},
		"a name where flags say it":        {"quota team-seats", `quota takes no names, so "team-seats" says nothing`},
		"labels that make no sense":        {"quota -l a=b=c", "--selector: "},
		"a table of another kind":          {"quota -o narrow", "go-template,go-template-file,json,jsonpath"},
		"no time to wait":                  {"sync trip --timeout=0s", "--timeout is 0s and must be above 0"},
		"a time that is none":              {"sync trip --timeout=soon", "invalid argument"},
		"an argument of version":           {"version now", "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := called(strings.Split(c.args, " ")...)
			if code != exit.Usage || out != "" || !strings.Contains(errs, "error: ") || !strings.Contains(errs, c.want) || !strings.Contains(errs, "--help' for usage") {
				t.Errorf("code %d, %q, %q", code, out, errs)
			}
		})
	}
}

func TestAKubeconfigThatIsNotThereIsAFailure(t *testing.T) {
	code, out, errs := called("sync", "trip", "--kubeconfig=testdata/none")
	if code != exit.Failed || out != "" || !strings.Contains(errs, "load the kubeconfig: ") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	streams := genericiooptions.NewTestIOStreamsDiscard()
	for _, c := range newRoot(streams, "").Commands() {
		if c.Name() == "completion" { // cobra's own, which has one for each shell
			continue
		}
		if !strings.Contains(c.Example, "kubectl flights "+c.Name()) || c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short %q, example %q", c.Name(), c.Short, c.Example)
		}
		code, out, _ := called(c.Name(), "--help")
		if code != exit.OK || !strings.Contains(out, "Usage:\n  kubectl flights "+c.Name()) || !strings.Contains(out, "Examples:") {
			t.Errorf("%s --help ends with %d: %s", c.Name(), code, out)
		}
	}
	if code, out, _ := called(); code != exit.OK || !strings.Contains(out, "Exit codes:") {
		t.Errorf("no arguments end with %d: %s", code, out)
	}
}

func TestVersionAndCompletionWorkWithoutACluster(t *testing.T) {
	if code, out, _ := called("version"); code != exit.OK || !strings.HasPrefix(out, "kubectl-flights development (go") {
		t.Errorf("version ends with %d: %s", code, out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, _ := called("completion", shell); code != exit.OK || !strings.Contains(out, "kubectl-flights") {
			t.Errorf("completion %s ends with %d: %.200s", shell, code, out)
		}
	}
	if code, out, _ := called(cobra.ShellCompRequestCmd, "res"); code != exit.OK || !strings.Contains(out, "resolve\t") {
		t.Errorf("res is completed with %d: %s", code, out)
	}
}

func TestErrorsGoToStandardError(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"nonsense"}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs}); code != exit.Usage {
		t.Errorf("code %d", code)
	}
	if out.Len() > 0 || errs.Len() == 0 {
		t.Errorf("%q, %q", &out, &errs)
	}
}
