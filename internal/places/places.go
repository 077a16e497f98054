package places

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxText is how many characters a text may have, as in the fields of a ticket.
const maxText = 100

// Kind says what a place is.
type Kind string

// The kinds of place.
const (
	KindAirport Kind = "airport" // one airport
	KindCity    Kind = "city"    // a city or metropolitan area; Airports lists what it stands for
	KindCode    Kind = "code"    // three capital letters that the table lacks; accepted, known to nobody here
)

// Place is a resolved place.
type Place struct {
	Text     string   `json:"text"` // as the user wrote it, trimmed
	Kind     Kind     `json:"kind"`
	IATA     string   `json:"iata"`     // airport or metropolitan code: BOM, LON
	Airports []string `json:"airports"` // sorted; the airport itself for an airport; the code itself for KindCode
	City     string   `json:"city"`     // "" for KindCode
	Country  string   `json:"country"`  // ISO 3166-1 alpha-2; "" for KindCode
	Name     string   `json:"-"`        // display name, as in "London (LON), GB" or "Heathrow (LHR), London, GB"
	Lat, Lon float64  `json:"-"`        // of the airport, or the mean of a city's airports
}

// Route is a pair of resolved places.
type Route struct {
	Origin      Place `json:"origin"`
	Destination Place `json:"destination"`
	DistanceKm  int   `json:"distanceKm"` // great circle, rounded; 0 when an end is KindCode
	// International says that the ends are in different countries. It is true where a country is unknown (KindCode):
	// policies restrict journeys abroad, and a journey that can't be shown to be domestic isn't.
	International bool `json:"international"`
}

// Lookup resolves one text. Errors are *UnknownError and *AmbiguousError.
// The package comment says how texts are resolved. It is safe for concurrent use.
func Lookup(text string) (Place, error) {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if utf8.RuneCountInString(text) > maxText {
		return Place{}, &UnknownError{Text: firstRunes(text, maxText+1)}
	}
	x := shared()
	f := x.find(text)
	switch {
	case len(f.refs) == 1:
		return f.refs[0].place(text), nil
	case len(f.refs) > 1:
		return Place{}, &AmbiguousError{Text: text, Candidates: x.texts(f.all)}
	}
	if _, isUpper := isCode(text); isUpper && x.countries[fold(text)] == "" {
		return Place{Text: text, Kind: KindCode, IATA: text, Airports: []string{text}, Name: text}, nil
	}
	return Place{}, &UnknownError{Text: text, Suggestions: x.suggest(text)}
}

// Resolve resolves both ends of a route. Errors are those of Lookup, wrapped in *EndError, and *SamePlaceError.
func Resolve(from, to string) (Route, error) {
	origin, err := Lookup(from)
	if err != nil {
		return Route{}, &EndError{Field: "from", Err: err}
	}
	destination, err := Lookup(to)
	if err != nil {
		return Route{}, &EndError{Field: "to", Err: err}
	}
	if code, same := overlap(origin, destination); same {
		return Route{}, &SamePlaceError{From: origin.Text, To: destination.Text, IATA: code}
	}
	route := Route{Origin: origin, Destination: destination}
	if origin.Kind == KindCode || destination.Kind == KindCode {
		route.International = true
		return route, nil
	}
	route.International = origin.Country != destination.Country
	route.DistanceKm = int(math.Round(haversineKm(origin.Lat, origin.Lon, destination.Lat, destination.Lon)))
	return route, nil
}

// overlap reports whether a journey from a to b could begin and end at one airport, and the code of the place that
// both are in. Two airports of one city are different places: people do fly, or book, from one to the other.
func overlap(a, b Place) (code string, same bool) {
	if !slices.ContainsFunc(a.Airports, func(code string) bool { return slices.Contains(b.Airports, code) }) {
		return "", false
	}
	if b.Kind == KindCity {
		return b.IATA, true
	}
	return a.IATA, true
}

// place returns the place that a text was resolved to. Its slice is the caller's own.
func (r ref) place(text string) Place {
	if a := r.airport; a != nil {
		return Place{Text: text, Kind: KindAirport, IATA: a.code, Airports: []string{a.code}, City: a.city,
			Country: a.country, Name: a.displayed, Lat: a.lat, Lon: a.lon}
	}
	c := r.city
	return Place{Text: text, Kind: KindCity, IATA: c.code, Airports: c.codes(), City: c.name, Country: c.country,
		Name: c.displayed, Lat: c.lat, Lon: c.lon}
}

func firstRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// TableDate is the day that the embedded table was made on, as in "2026-11-30". Codes change: a status that shows the
// date lets people see whether a place is missing because the table is old. The first call of this or of any lookup
// builds the index, which takes some tenths of a second: a program calls this at its start, so that no user waits.
func TableDate() string { return shared().date }
