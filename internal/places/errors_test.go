package places

import (
	"strings"
	"testing"
)

func TestMessagesSayWhatToDo(t *testing.T) {
	many := make([]string, 12)
	for i := range many {
		many[i] = "X, US"
	}
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"unknown", &UnknownError{Text: "Atlantis"}, `"Atlantis" is not a place we know: use a city`},
		{"unknown with suggestions", &UnknownError{Text: "Pariss", Suggestions: []string{"Paris", "Parma"}}, `did you mean "Paris", "Parma"? Else use a city`},
		{"too long", &UnknownError{Text: strings.Repeat("é", 101)}, `…" is longer than 100 characters: use a city`},
		{"control characters are quoted", &UnknownError{Text: "a\x1b[31m\u202e"}, `"a\x1b[31m\u202e" is not`},
		{"ambiguous", &AmbiguousError{Text: "X", Candidates: []string{"X, CA", "X, US"}}, `write one of "X, CA", "X, US", or an IATA code`},
		{"too many candidates", &AmbiguousError{Text: "X", Candidates: many}, `"X, US" (and 2 more), or an IATA code`},
		{"the same place", &SamePlaceError{From: "Bombay", To: "Mumbai", IATA: "BOM"}, `"Bombay" and "Mumbai" are the same place (BOM): use two`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.err.Error(); !strings.Contains(got, tc.want) {
				t.Errorf("message %q lacks %q", got, tc.want)
			}
		})
	}
}
