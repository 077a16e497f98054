package places

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// usage ends every message about a text that is no place.
	usage = `use a city, an airport or an IATA code, as in "London", "Heathrow" or "LHR"`
	// maxQuoted is how much of a text a message repeats.
	maxQuoted = 60
	// maxListed is how many candidates a message lists.
	maxListed = 10
)

// UnknownError says that a text names no place we know. Suggestions are the nearest names, best first, at most five.
// The Text of one that was refused for its length is its beginning.
type UnknownError struct {
	Text        string
	Suggestions []string
}

// Error says what is wrong and what to do.
func (e *UnknownError) Error() string {
	switch {
	case e.Text == "":
		return "no place is given: " + usage
	case utf8.RuneCountInString(e.Text) > maxText:
		return fmt.Sprintf("%s is longer than %d characters: %s", quote(e.Text), maxText, usage)
	case len(e.Suggestions) > 0:
		return fmt.Sprintf("%s is not a place we know; did you mean %s? Else %s", quote(e.Text),
			strings.Join(quoteAll(e.Suggestions), ", "), usage)
	default:
		return fmt.Sprintf("%s is not a place we know: %s", quote(e.Text), usage)
	}
}

// AmbiguousError says that a text names several places. Candidates are sorted display texts that Lookup would resolve
// to one place each, as in "San Jose, CR".
type AmbiguousError struct {
	Text       string
	Candidates []string
}

// Error says what is wrong and what to do.
func (e *AmbiguousError) Error() string {
	listed, more := e.Candidates, ""
	if len(listed) > maxListed {
		more = fmt.Sprintf(" (and %d more)", len(listed)-maxListed)
		listed = listed[:maxListed]
	}
	return fmt.Sprintf("%s means several places: write one of %s%s, or an IATA code", quote(e.Text),
		strings.Join(quoteAll(listed), ", "), more)
}

// SamePlaceError says that both ends of a route are the same place once resolved, as "Bombay" and "Mumbai", or an
// airport and the metropolitan area that it belongs to.
type SamePlaceError struct{ From, To, IATA string }

// Error says what is wrong and what to do.
func (e *SamePlaceError) Error() string {
	return fmt.Sprintf("%s and %s are the same place (%s): use two places that are apart", quote(e.From), quote(e.To), e.IATA)
}

// EndError says which end of a route an error belongs to.
type EndError struct {
	Field string // "from" or "to"
	Err   error
}

// Error returns the message of the wrapped error. The caller has the field and says it in its own way.
func (e *EndError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *EndError) Unwrap() error { return e.Err }

// quote quotes foreign text, cut, and without characters that disturb a terminal.
func quote(text string) string {
	if utf8.RuneCountInString(text) > maxQuoted {
		text = firstRunes(text, maxQuoted) + "…"
	}
	return strconv.Quote(text)
}

func quoteAll(texts []string) []string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return quoted
}
