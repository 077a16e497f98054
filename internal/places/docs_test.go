package places

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestThePageSaysWhatLookupDoes keeps the examples of docs/places.md true.
func TestThePageSaysWhatLookupDoes(t *testing.T) {
	page, err := os.ReadFile("../../docs/places.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 19 {
		t.Fatalf("%d examples, want those of the page", len(rows))
	}
	for _, row := range rows {
		got, err := Lookup(row[1])
		answer := got.Name
		if err != nil {
			answer = err.Error()
		}
		if answer != row[2] {
			t.Errorf("%q is %q, the page says %q", row[1], answer, row[2])
		}
	}
	if !strings.Contains(string(page), "the table of "+TableDate()) {
		t.Errorf("the page lacks the date of the table, %s", TableDate())
	}
}
