package places

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

const (
	maxSuggestions = 5
	// maxMisspelt is the longest folded text that is compared with all names: longer ones are no misspelt place.
	maxMisspelt = 40
)

// suggestion is a place whose name is near a text.
type suggestion struct {
	place    ref
	display  string // decides ties
	distance int
}

// suggest returns texts of the places whose names are nearest to a text, best first. One letter in three may be wrong,
// and a name may go on where the text ends.
func (x *index) suggest(text string) []string {
	key := fold(text)
	n := utf8.RuneCountInString(key)
	if n < 3 || n > maxMisspelt || x.countries[key] != "" {
		return nil // a whole country isn't a misspelt city
	}
	limit := min(3, max(1, n/3))
	nearest := map[ref]int{}
	for _, level := range x.names[:levelKeyword] {
		for name, refs := range level {
			distance := editDistance(key, name, limit)
			if distance > limit {
				continue
			}
			for _, r := range best(refs) {
				if d, ok := nearest[r]; !ok || distance < d {
					nearest[r] = distance
				}
			}
		}
	}
	return x.bestOf(nearest)
}

// editDistance returns how many letters differ, 1 for a name that starts with the key as a word, or more than limit.
func editDistance(key, name string, limit int) int {
	if strings.HasPrefix(name, key) && name[len(key):] != "" && name[len(key)] == ' ' {
		return 1
	}
	if difference := utf8.RuneCountInString(name) - utf8.RuneCountInString(key); difference > limit || -difference > limit {
		return limit + 1
	}
	return levenshtein.ComputeDistance(key, name)
}

// bestOf returns the texts of the best suggestions. A city hides its airports, which are the same answer twice.
func (x *index) bestOf(nearest map[ref]int) []string {
	var suggestions []suggestion
	for r, distance := range nearest {
		if r.airport != nil {
			if d, ok := nearest[ref{city: r.airport.serves}]; ok && d <= distance {
				continue
			}
		}
		suggestions = append(suggestions, suggestion{place: r, display: r.display(), distance: distance})
	}
	slices.SortFunc(suggestions, func(a, b suggestion) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.place.rank(), a.place.rank()), cmp.Compare(a.display, b.display))
	})
	var texts []string
	for _, s := range suggestions[:min(len(suggestions), maxSuggestions)] {
		texts = append(texts, x.shortText(s.place))
	}
	return slices.Compact(texts)
}

// shortText returns the bare name of a place where that is enough.
func (x *index) shortText(r ref) string {
	name := ""
	if r.city != nil {
		name = r.city.name
	} else {
		name = r.airport.shortName()
	}
	if f := x.find(name); len(f.refs) == 1 && f.refs[0] == r {
		return name
	}
	return x.text(r)
}
