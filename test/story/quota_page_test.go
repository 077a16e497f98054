package story

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flight-operator/flight-operator/internal/controlplane"
	"github.com/flight-operator/flight-operator/internal/quota"
	"github.com/flight-operator/flight-operator/internal/quota/store"
	"github.com/flight-operator/flight-operator/test/scene"
)

// quotaPatience is for a policy of quotas that is made and changed: each time it isn't Ready before a request's life has passed.
const quotaPatience = 8 * time.Minute

// typed is a command on a page, who types it, and what it says.
type typed struct {
	admin bool
	line  string
	says  []string
}

// docsPage reads a page of docs.
func docsPage(t *testing.T, name string) string {
	t.Helper()
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// consoles are the commands of all blocks of a page that show a console. A line that begins with a prompt is a command, up to
// EOF if it takes a manifest from there; the lines after it are what it says.
func consoles(page string) (commands []typed) {
	for _, rest := range strings.Split(page, "\n```console\n")[1:] {
		block, _, _ := strings.Cut(rest, "\n```")
		open := false // a manifest
		for line := range strings.SplitSeq(block, "\n") {
			text, admin := strings.CutPrefix(line, "admin$ ")
			prompted := admin
			if !admin {
				text, prompted = strings.CutPrefix(line, "$ ")
			}
			last := len(commands) - 1
			switch {
			case prompted:
				commands = append(commands, typed{admin: admin, line: text})
				open = strings.HasSuffix(text, "<<EOF")
			case open:
				commands[last].line += "\n" + line
				open = line != "EOF"
			default:
				commands[last].says = append(commands[last].says, line)
			}
		}
	}
	return commands
}

// words is a text as tests compare it: columns are as wide as their widest cell, which depends on names.
func words(lines []string) []string {
	var out []string
	for _, line := range lines {
		if fields := strings.Fields(line); len(fields) > 0 {
			out = append(out, strings.Join(fields, " "))
		}
	}
	return out
}

// said reports whether lines are those of a page, on which … stands for anything within a line.
func said(want, got []string) bool {
	want, got = words(want), words(got)
	return slices.EqualFunc(want, got, func(want, got string) bool {
		form := "^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$"
		return regexp.MustCompile(form).MatchString(got)
	})
}

// The page about quotas is one story, which a tenant and an admin play here word for word.
func TestThePageAboutQuotas(t *testing.T) {
	t.Parallel()
	stage := house.stage
	stage.Patience = quotaPatience
	s := scene.New(t, stage)
	s.Do("", "create", "rolebinding", "tenant", "--clusterrole=edit", "--user=tenant")
	admin, tenant := newShell(s, ""), newShell(s, "tenant")
	year := time.Now().Year() + 1
	fill := strings.NewReplacer("team-seats", "seats-of-"+s.Namespace, "team-a", s.Namespace, "2027-", fmt.Sprint(year, "-"))
	t.Cleanup(func() {
		if out, err := house.kubectl("delete", "flightpolicy", fill.Replace("team-seats"), "--ignore-not-found"); err != nil {
			t.Errorf("clean up: %v: %s", err, out)
		}
	})
	commands := consoles(fill.Replace(docsPage(t, "quotas.md")))
	if len(commands) < 15 {
		t.Fatalf("only %d commands were found: this test no longer reads the page right", len(commands))
	}
	for _, c := range commands {
		sh := tenant
		if c.admin {
			sh = admin
		}
		a := sh.run("exec 2>&1\n" + c.line)
		if got := strings.Split(a.Out, "\n"); !said(c.says, got) {
			t.Fatalf("%s\nends with code %d and says\n%s\nand the page\n%s", c.line, a.Code, a.Out, strings.Join(c.says, "\n"))
		}
	}
}

// What can't be brought about at will is compared with the words of the program.
func TestThePageAboutQuotasQuotesWhatSaysTryAgain(t *testing.T) {
	page := docsPage(t, "quotas.md")
	for _, err := range []error{
		&store.CountingError{Policy: "team-seats", Key: "2027-03", Generation: 2, Counted: 1},
		&quota.BusyError{Policy: "team-seats", Key: "2027-03", Reason: "1000 tickets are admitted and not counted yet"},
		&quota.StaleError{Policy: "team-seats", Generation: 1, Newest: 2},
	} {
		if line := "\n" + err.Error() + "; nothing was stored, retry\n"; !strings.Contains(page, line) {
			t.Errorf("the page doesn't say %s", line)
		}
	}
}
