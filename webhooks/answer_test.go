package webhooks

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestAnAnswerIsBoundedAndSaysSo(t *testing.T) {
	var reasons []reason
	var warnings []string
	for i := range 1000 {
		reasons = append(reasons, reason{source: fmt.Sprintf("policy-%d", i), text: strings.Repeat("é", 5000)})
		warnings = append(warnings, strings.Repeat("é", 5000))
	}
	out := forbid(admission.Request{}, reasons, warnings)
	lines := strings.Split(out.response.Result.Message, "\n")
	if len(lines) != maxReasons+2 || lines[0] != "1000 reasons:" || lines[len(lines)-1] != "and 900 more reasons" {
		t.Errorf("%d lines from %q to %q", len(lines), lines[0], lines[len(lines)-1])
	}
	total := 0
	for _, w := range out.response.Warnings {
		total += len(w)
		if len(w) > maxWarningText || !utf8.ValidString(w) {
			t.Errorf("warning of %d bytes: %q", len(w), w)
		}
	}
	if total > 4096 || out.response.Warnings[maxWarnings] != "and 985 more warnings" {
		t.Errorf("%d bytes of warnings, the last is %q", total, out.response.Warnings[maxWarnings])
	}
}

func TestAFieldOfAnyNameStaysInItsLine(t *testing.T) {
	name := "spec.parameters.a\nb\x1b[2J"
	out := invalid(admission.Request{}, []reason{{source: name, field: name, text: "no"}})
	if got, field := out.response.Result.Message, out.response.Result.Details.Causes[0].Field; got != "spec.parameters.a b [2J: no" || field != "spec.parameters.a b [2J" {
		t.Errorf("got %q for %q", got, field)
	}
}

func TestAReasonIsOneLineThatATerminalCanShow(t *testing.T) {
	got := oneLine("a\nb\x1b[31mred\x1b[0m\t\xffz\r\n", 100)
	if got != "a b [31mred [0m ?z" {
		t.Errorf("got %q", got)
	}
}
