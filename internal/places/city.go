package places

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// cityRadiusKm is how far apart airports that name the same city may be to serve one city.
const cityRadiusKm = 75

// city is a city or metropolitan area.
type city struct {
	code, name, country, region string
	metro                       bool
	airports                    []*airport // main one first
	displayed                   string
	lat, lon                    float64
}

// buildCities returns the metropolitan areas and the cities of all other airports, and tells the airports whom they
// serve. An airport of a metropolitan area takes its name for the city.
func buildCities(t *tables) []*city {
	var cities []*city
	for _, m := range t.metros {
		c := &city{code: m.code, name: m.name, country: m.country, metro: true}
		for _, code := range m.airports {
			c.add(t.airports[code])
		}
		cities = append(cities, c)
	}
	groups := map[string][]*city{}
	for _, a := range mainFirst(t.airports) {
		if a.serves != nil {
			continue
		}
		key := a.country + " " + fold(a.city)
		i := slices.IndexFunc(groups[key], func(c *city) bool { return distanceKm(c.airports[0], a) <= cityRadiusKm })
		if i < 0 {
			c := &city{code: a.code, name: a.city, country: a.country}
			groups[key] = append(groups[key], c)
			cities = append(cities, c)
			i = len(groups[key]) - 1
		}
		groups[key][i].add(a)
	}
	for _, c := range cities {
		c.complete()
	}
	return cities
}

// add makes the airport serve the city. The municipality that the city replaces stays findable as a keyword.
func (c *city) add(a *airport) {
	if fold(a.city) != fold(c.name) {
		a.keywords = append(a.keywords, a.city)
	}
	a.city, a.serves = c.name, c
	c.airports = append(c.airports, a)
	if c.region == "" {
		c.region = a.region
	}
}

// complete computes what depends on all airports of the city.
func (c *city) complete() {
	c.lat, c.lon = centre(c.airports)
	c.displayed = fmt.Sprintf("%s (%s), %s", c.name, c.code, c.country)
	for _, a := range c.airports {
		a.displayed = fmt.Sprintf("%s (%s), %s, %s", a.shortName(), a.code, a.city, a.country)
	}
}

// codes returns the sorted codes of the city's airports.
func (c *city) codes() []string {
	codes := make([]string, len(c.airports))
	for i, a := range c.airports {
		codes[i] = a.code
	}
	slices.Sort(codes)
	return codes
}

// mainFirst sorts airports by size, then by code, so that the same airport of a city gives it its code in every run.
func mainFirst(airports map[string]*airport) []*airport {
	sorted := make([]*airport, 0, len(airports))
	for _, a := range airports {
		sorted = append(sorted, a)
	}
	slices.SortFunc(sorted, func(a, b *airport) int {
		if a.large != b.large {
			if a.large {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.code, b.code)
	})
	return sorted
}

// generic are words that tell no airport from another.
var generic = map[string]bool{"airport": true, "international": true, "intl": true, "airfield": true, "aerodrome": true,
	"aeropuerto": true, "internacional": true}

// vague are remains of a name that would be no name on their own.
var vague = map[string]bool{"": true, "city": true, "regional": true, "municipal": true, "national": true, "county": true,
	"north": true, "south": true, "east": true, "west": true, "new": true, "island": true, "central": true, "memorial": true,
	"de": true, "domestic": true, "sur": true, "norte": true}

// shortName returns the name of the airport as people say it, as in "Heathrow" for "London Heathrow Airport".
func (a *airport) shortName() string {
	name, _, _ := strings.Cut(a.name, "(")
	name, _, _ = strings.Cut(name, " / ")
	words := slices.DeleteFunc(strings.Fields(name), func(w string) bool { return generic[fold(w)] })
	whole := strings.Trim(strings.Join(words, " "), " ,-–")
	if fold(whole) == "" {
		return a.name
	}
	if n := len(a.city); n < len(whole) && strings.EqualFold(whole[:n], a.city) && strings.ContainsRune(" -–/", firstRune(whole[n:])) {
		if rest := strings.Trim(whole[n:], " ,-–/"); !vague[fold(rest)] {
			return rest
		}
	}
	return whole
}

func firstRune(text string) rune {
	for _, r := range text {
		return r
	}
	return 0
}

// withoutGeneric drops the words that tell no airport from another from a folded name.
func withoutGeneric(folded string) string {
	words := strings.Fields(folded)
	kept := slices.DeleteFunc(words, func(w string) bool { return generic[w] })
	return strings.Join(kept, " ")
}
