package story

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/controlplane"
	"github.com/flight-operator/flight-operator/test/scene"
)

// runbook is a page of docs/runbooks, as far as it can be tried.
type runbook struct {
	sees   []string   // the messages
	checks []string   // lines
	ways   [][]string // lines, by way out
}

func readRunbook(t *testing.T, page string) runbook {
	t.Helper()
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "runbooks", page+".md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := func(heading, kind string) (found []string) {
		_, section, _ := strings.Cut(string(text), "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for _, rest := range strings.Split(section, "```"+kind+"\n")[1:] {
			block, _, _ := strings.Cut(rest, "\n```")
			found = append(found, block)
		}
		return found
	}
	r := runbook{sees: blocks("What you see", "text")}
	for _, block := range blocks("What to check", "sh") {
		r.checks = append(r.checks, strings.Split(block, "\n")...)
	}
	for _, block := range blocks("What to do", "sh") {
		r.ways = append(r.ways, strings.Split(block, "\n"))
	}
	return r
}

// caseOf is a ticket that is stalled, and one way out of it.
type caseOf struct {
	page string
	// message and way choose what the page shows more than one of.
	message, way int
	// open makes the scene; nil is one with a provider that is well.
	open func(*testing.T) *scene.Scene
	// stage stalls the ticket, and returns the id of the booking that the page speaks of, if it speaks of one.
	stage func(*shell) string
	// then makes the provider ready for the way out; may be nil.
	then func(*shell)
	// ends checks how it ends.
	ends func(*shell)
}

const trip = "my-flight-ticket"

// Each page is tried as a person would: the message is what the page shows, what is to be checked can be, and what is to be
// done helps. An admin of the namespace's tickets does it; what takes a verb of its own is refused to somebody with edit.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	cases := runbookCases()
	everythingIsTried(t, cases)
	for _, c := range cases {
		t.Run(c.page+" "+string(rune('1'+c.way)), func(t *testing.T) {
			t.Parallel()
			c.play(t)
		})
	}
}

func (c caseOf) play(t *testing.T) {
	open := c.open
	if open == nil {
		open = wellProvided
	}
	s := open(t)
	page := readRunbook(t, c.page)
	s.Do("", "create", "rolebinding", "tenant", "--clusterrole=edit", "--user=tenant")
	s.Do("", "create", "rolebinding", "boss", "--clusterrole=flights-admin", "--user=boss")
	admin, boss, tenant := newShell(s, ""), newShell(s, "boss"), newShell(s, "tenant")
	id := c.stage(admin)
	fill := strings.NewReplacer("my-provider", s.Provider.Name, "my-namespace", s.Namespace, "few-seats", "few-seats-"+s.Namespace, "bk_7f3a", id)
	sees(admin, c.page, fill.Replace(page.sees[c.message]))
	for _, line := range page.checks {
		if a := admin.do(fill.Replace(line)); strings.TrimSpace(a.Out+a.Err) == "" {
			t.Errorf("%s says nothing", line)
		}
	}
	if c.then != nil {
		c.then(admin)
	}
	if err := os.WriteFile(filepath.Join(boss.dir, trip+".yaml"), []byte(s.TicketManifest(trip)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range page.ways[c.way] {
		if strings.HasPrefix(line, "kubectl flights sync ") {
			tenant.do(line)
			continue
		}
		refuseWithoutVerb(tenant, fill.Replace(line))
		boss.do(fill.Replace(line))
	}
	c.ends(admin)
}

// refuseWithoutVerb types a line that takes a verb as somebody who lacks it.
func refuseWithoutVerb(tenant *shell, line string) {
	tenant.Helper()
	for _, verb := range []string{flightsv1.VerbAdopt, flightsv1.VerbResolve, flightsv1.VerbRetain} {
		if !strings.HasPrefix(line, "kubectl flights "+verb+" ") {
			continue
		}
		a := tenant.run(line)
		if a.Code != 1 || a.Out != "" {
			tenant.Errorf("%s ended with code %d for somebody without the verb: %s", line, a.Code, a.Out)
		}
		tenant.Says(a.Err, `user "tenant" lacks the verb `+verb+" on FlightTicket "+trip+" in namespace "+tenant.Namespace,
			`{apiGroups: ["flights.com"], resources: ["flighttickets"], verbs: ["`+verb+`"]}`)
	}
}

// sees waits until the ticket is stalled with a reason and a message, in which ... stands for anything.
func sees(s *shell, reason, message string) {
	s.Helper()
	if reason == flightsv1.ReasonPlaceRefused { // admission lets none through; its words are the same
		text, _, _ := strings.Cut(message, " ...")
		s.Says(s.Refused(s.TicketManifest("elsewhere", `to: "Lodnon"`), "create", "-f", "-"), text)
		return
	}
	want := regexp.MustCompile("^(?s:" + strings.ReplaceAll(regexp.QuoteMeta(message), `\.\.\.`, ".*") + ")$")
	scene.Await(s.Scene, s.Ticket(trip), reason+": "+message, func(t *flightsv1.FlightTicket) bool {
		ready := meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
		return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == reason && want.MatchString(ready.Message) &&
			t.Status.State == flightsv1.StateStalled && meta.IsStatusConditionTrue(t.Status.Conditions, flightsv1.ConditionStalled)
	})
}

// everythingIsTried fails for a page, a message or a way out that no case is about.
func everythingIsTried(t *testing.T, cases []caseOf) {
	t.Helper()
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs", "runbooks", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no runbooks: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		if name == "README" {
			continue
		}
		page := readRunbook(t, name)
		for i := range page.sees {
			if !slices.ContainsFunc(cases, func(c caseOf) bool { return c.page == name && c.message == i }) {
				t.Errorf("%s: nobody sees message %d", name, i+1)
			}
		}
		for i := range page.ways {
			if !slices.ContainsFunc(cases, func(c caseOf) bool { return c.page == name && c.way == i }) {
				t.Errorf("%s: nobody tries way %d", name, i+1)
			}
		}
	}
}
