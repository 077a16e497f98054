// Package mutants takes guards out, one at a time, and wants a named test to notice. A guard that nothing misses is not
// tested, however green the tests are.
//
// It knows the text of the sources and the Go tool. The guards stay where they are: a mutant is a copy of one file that
// the tool is given in place of the original (docs/decisions/0007-mutate-by-overlay.md).
package mutants

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// everything is the environment variable by which `make mutants` asks for all of the table. Without it, those run that
// are marked as quick.
const everything = "MUTANTS"

func TestATestMissesEachGuardThatIsTakenOut(t *testing.T) {
	chosen := slices.DeleteFunc(table(), func(m mutant) bool { return os.Getenv(everything) != "all" && !m.quick })
	if len(chosen) == 0 {
		t.Fatal("the table holds no mutant to run")
	}
	b := newBench(t)
	if !t.Run("nothing taken out", func(t *testing.T) { b.sound(t, chosen) }) {
		t.Fatal("a test that fails with everything in place can't tell what a mutant does")
	}
	r := &results{all: len(chosen)}
	t.Run("taken out", func(t *testing.T) {
		for _, m := range chosen {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				verdict, err := b.try(t, m)
				r.note(m, verdict, time.Since(began))
				if err != nil {
					t.Error(err)
				}
			})
		}
	})
	r.print()
}

// verdict is what became of a mutant.
type verdict string

const (
	// caught: the named test failed.
	caught verdict = "caught"
	// survived: the named test passed.
	survived verdict = "SURVIVED"
	// broken: the mutant could not be tried, so that it says nothing.
	broken verdict = "BROKEN"
)

// results are told one by one, and in a table at the end.
type results struct {
	mu   sync.Mutex
	all  int
	rows []string
}

func (r *results) note(m mutant, v verdict, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, fmt.Sprintf("%s\t%s\t%s\t%s %s", v, m.name, m.without, m.pkg, m.test))
	fmt.Fprintf(os.Stderr, "%d of %d: %s without %s (%.0f s)\n", len(r.rows), r.all, v, m.name, took.Seconds())
}

// print writes the table, in the order of the alphabet, for the mutants end as they like.
func (r *results) print() {
	slices.Sort(r.rows)
	w := tabwriter.NewWriter(os.Stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nverdict\ttaken out\tso that\tmissed by\n%s\n\n", strings.Join(r.rows, "\n"))
	_ = w.Flush() // to the terminal, best effort
}

func TestAMutantIsMadeOfTextThatIsThereOnce(t *testing.T) {
	for name, c := range map[string]struct {
		texts map[string]string
		old   string
		want  string
	}{
		"text that is there once":     {map[string]string{"a.go": "if late {\n\treturn\n}", "b.go": "if early {}"}, "if late", ""},
		"text that is not there":      {map[string]string{"a.go": "if late {}"}, "if early", "is there 0 times"},
		"text that is there twice":    {map[string]string{"a.go": "if late {}\nif late {}"}, "if late", "is there 2 times"},
		"text that two files hold":    {map[string]string{"a.go": "if late {}", "b.go": "if late {}"}, "if late", "is there 2 times"},
		"no text":                     {map[string]string{"a.go": "if late {}"}, "", "replaces nothing"},
		"text that stays as it stood": {map[string]string{"a.go": "if false {}"}, "if false", "replaces nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			file, text, err := mutant{in: "x", old: c.old, new: "if false"}.apply(c.texts)
			switch {
			case c.want == "" && (err != nil || file != "a.go" || text != "if false {\n\treturn\n}"):
				t.Errorf("apply = %q, %q, %v", file, text, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error = %v, want one that says %q", err, c.want)
			}
		})
	}
}

func TestOnlyAFailureOfTheNamedTestCatches(t *testing.T) {
	m := mutant{test: "TestNext/a_fresh_one"}
	for name, c := range map[string]struct {
		output string
		passed bool
		want   verdict
	}{
		"the named test fails": {"--- FAIL: TestNext (0.00s)\n    --- FAIL: TestNext/a_fresh_one (0.00s)\nFAIL\n", false, caught},
		"everything passes":    {"--- PASS: TestNext (0.00s)\n    --- PASS: TestNext/a_fresh_one (0.00s)\nPASS\n", true, survived},
		"another test fails":   {"--- FAIL: TestNext (0.00s)\n    --- FAIL: TestNext/a_fresh_one_that_is_late (0.00s)\nFAIL\n", false, broken},
		"it hangs":             {"panic: test timed out after 2m0s\n", false, broken},
		"no such test":         {"testing: warning: no tests to run\nPASS\n", true, broken},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := m.judge(c.output, c.passed); got != c.want {
				t.Errorf("verdict = %s, want %s", got, c.want)
			}
		})
	}
}
