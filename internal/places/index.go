package places

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ref is an airport or a city: one of the two is set.
type ref struct {
	airport *airport
	city    *city
}

// The levels of names: what is found on one hides the next.
const (
	levelCity    = iota // names and display names of cities, display names of airports
	levelAirport        // names of airports
	levelKeyword        // lesser names of airports
	levels
)

// index finds places by folded names. It is read-only once built.
type index struct {
	date      string
	codes     map[string]ref // airports, and metropolitan areas whose code no airport has
	names     [levels]map[string][]ref
	countries map[string]string // folded name or code to code
	regions   map[string]string // ISO 3166-2 code to folded name
}

// moreCountries are names of countries that the table writes otherwise.
var moreCountries = map[string]string{
	"uk": "GB", "great britain": "GB", "britain": "GB", "usa": "US", "united states of america": "US", "america": "US",
	"uae": "AE", "emirates": "AE", "czechia": "CZ", "turkiye": "TR", "korea": "KR", "republic of korea": "KR",
	"holland": "NL", "the netherlands": "NL", "viet nam": "VN", "deutschland": "DE", "espana": "ES", "schweiz": "CH",
	"osterreich": "AT", "brasil": "BR", "italia": "IT", "russian federation": "RU", "ivory coast": "CI",
}

// buildIndex indexes the tables. It panics where the embedded tables contradict each other.
func buildIndex(t *tables) *index {
	x := &index{date: t.date, codes: map[string]ref{}, countries: maps.Clone(moreCountries), regions: map[string]string{}}
	for i := range x.names {
		x.names[i] = map[string][]ref{}
	}
	for code, name := range t.countries {
		x.countries[fold(name)] = code
		x.countries[fold(code)] = code
	}
	for code, name := range t.regions {
		x.regions[code] = fold(name)
	}
	cities := buildCities(t)
	x.addCities(cities)
	for _, c := range cities {
		for _, a := range c.airports {
			x.codes[a.code] = ref{airport: a}
		}
	}
	x.addOtherNames(t.others, cities)
	for _, c := range cities {
		for _, a := range c.airports {
			x.addAirport(a)
		}
	}
	return x
}

func (x *index) addCities(cities []*city) {
	for _, c := range cities {
		r := ref{city: c}
		x.add(levelCity, fold(c.name), r)
		x.add(levelCity, fold(c.displayed), r)
		if c.metro {
			x.codes[c.code] = r // an airport of the same code takes its place
		}
	}
}

func (x *index) addOtherNames(others []otherNames, cities []*city) {
	byCode := map[string]*city{}
	for _, c := range cities {
		byCode[c.code] = c
	}
	for _, o := range others {
		c := byCode[o.code]
		if c == nil {
			panic(fmt.Sprintf("places: other names of %s, which is no code of a city", o.code)) //nolint:forbidigo // the embedded table is at odds with itself: every test fails
		}
		for _, name := range o.names {
			x.add(levelCity, fold(name), ref{city: c})
		}
	}
}

func (x *index) addAirport(a *airport) {
	r := ref{airport: a}
	x.add(levelCity, fold(a.displayed), r)
	for _, name := range []string{a.name, a.shortName(), a.city + " " + a.shortName()} {
		for _, key := range []string{fold(name), withoutGeneric(fold(name))} {
			if !vague[key] && !x.misleads(key, a) {
				x.add(levelAirport, key, r)
			}
		}
	}
	for _, keyword := range a.keywords {
		for _, key := range []string{fold(keyword), withoutGeneric(fold(keyword))} {
			if !vague[key] && (x.names[levelCity][key] != nil || !x.misleads(key, a)) {
				x.add(levelKeyword, key, r)
			}
		}
	}
}

// misleads reports whether a name would lead people who mean a better known city to this airport, as "London Airport"
// would to the one in Ontario.
func (x *index) misleads(key string, a *airport) bool {
	same := x.names[levelCity][withoutGeneric(key)]
	return len(same) > 0 && !slices.Contains(best(same), ref{city: a.serves})
}

func (x *index) add(level int, key string, r ref) {
	if key != "" && !slices.Contains(x.names[level][key], r) {
		x.names[level][key] = append(x.names[level][key], r)
	}
}

// display returns the name that people are shown, which Lookup resolves to this place.
func (r ref) display() string {
	if r.city != nil {
		return r.city.displayed
	}
	return r.airport.displayed
}

func (r ref) country() string {
	if r.city != nil {
		return r.city.country
	}
	return r.airport.country
}

// regions returns the ISO 3166-2 codes of the regions that the place is in.
func (r ref) regions() []string {
	if r.airport != nil {
		return []string{r.airport.region}
	}
	var regions []string
	for _, a := range r.city.airports {
		regions = append(regions, a.region)
	}
	return regions
}

// rank orders places of one name: metropolitan areas, then cities with a large airport and large airports, then others.
func (r ref) rank() int {
	switch {
	case r.city != nil && r.city.metro:
		return 3
	case r.city != nil && slices.ContainsFunc(r.city.airports, func(a *airport) bool { return a.large }):
		return 2
	case r.airport != nil && r.airport.large:
		return 2
	default:
		return 1
	}
}

// best returns the places of the highest rank.
func best(refs []ref) []ref {
	highest := 0
	for _, r := range refs {
		highest = max(highest, r.rank())
	}
	return slices.DeleteFunc(slices.Clone(refs), func(r ref) bool { return r.rank() < highest })
}

// texts returns the sorted texts that lead to one of the places each.
func (x *index) texts(refs []ref) []string {
	var texts []string
	for _, r := range refs {
		texts = append(texts, x.text(r))
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// text returns the shortest of the usual texts that leads to this place and no other, as in "San Jose, CR".
func (x *index) text(r ref) string {
	if r.airport != nil {
		return r.display()
	}
	c := r.city
	for _, text := range []string{c.name + ", " + c.country, c.name + ", " + c.region} {
		if found := x.find(text); len(found.refs) == 1 && found.refs[0] == r {
			return text
		}
	}
	return r.display()
}

// isCode reports whether text is three ASCII letters, and whether they are capitals.
func isCode(text string) (isWord, isUpper bool) {
	if len(text) != 3 {
		return false, false
	}
	isUpper = true
	for _, c := range []byte(text) {
		if c < 'A' || c > 'Z' {
			isUpper = false
		}
		if c|0x20 < 'a' || c|0x20 > 'z' {
			return false, false
		}
	}
	return true, isUpper
}

// codeOf returns the place that three letters are the code of.
func (x *index) codeOf(text string) (ref, bool) {
	r, ok := x.codes[strings.ToUpper(text)]
	return r, ok
}
