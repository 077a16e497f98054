package places

import (
	"slices"
	"strings"
)

// HasCity says whether the table has a city of exactly this name in a country, but for capitals: the name that a Place's
// City has, and no other name for it.
func HasCity(name, country string) bool {
	return slices.ContainsFunc(shared().names[levelCity][fold(name)], func(r ref) bool {
		return r.city != nil && strings.EqualFold(r.city.name, name) && r.city.country == country
	})
}

// Country returns the ISO 3166-1 alpha-2 code that a code or name of a country stands for: "GB" for "UK".
func Country(text string) (code string, known bool) {
	code, known = shared().countries[fold(text)]
	return code, known
}
