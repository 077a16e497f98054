package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/flight-operator/flight-operator/internal/places"
)

// checkNames holds parameters whose schema has one of the formats flights-airport, flights-city and flights-country to
// the table of places: a denylist that names "UK" or "Bombay, IN" would deny nothing, in silence.
//
// Only who applies a policy is told. A stored one goes on as it is when a newer table names a place otherwise.
func checkNames(schema map[string]any, raw *apiextensionsv1.JSON) []Problem {
	if schema == nil {
		return nil
	}
	parameters, problems := readParameters(raw)
	if len(problems) > 0 {
		return problems
	}
	return validated(schema, parameters,
		placeFormat("flights-airport", wrongAirport), placeFormat("flights-city", wrongCity), placeFormat("flights-country", wrongCountry))
}

// placeFormat is a format of texts; wrong says what is wrong with one.
func placeFormat(name string, wrong func(string) error) *jsonschema.Format {
	return &jsonschema.Format{Name: name, Validate: func(v any) error {
		if text, ok := v.(string); ok {
			return wrong(text)
		}
		return nil
	}}
}

// wrongAirport refuses codes of metropolitan areas, which no ticket's airports hold. A code that the table lacks may be
// one that it will have, and tickets may name it.
func wrongAirport(code string) error {
	p, err := places.Lookup(code)
	if err != nil || slices.Contains(p.Airports, code) {
		return nil
	}
	return fmt.Errorf("it stands for a city, write its airports (%s), or \"%s, %s\" under cities",
		strings.Join(p.Airports, ", "), p.City, p.Country)
}

func wrongCity(text string) error {
	if i := strings.LastIndex(text, ", "); i >= 0 && places.HasCity(text[:i], text[i+2:]) {
		return nil
	}
	p, err := places.Lookup(text)
	switch {
	case err != nil:
		return fmt.Errorf("tickets never have this city: %w", err)
	case p.Kind == places.KindAirport:
		return fmt.Errorf("tickets never have this city: it is an airport of \"%s, %s\", write that, or %s under airports", p.City, p.Country, p.IATA)
	case p.Kind == places.KindCity:
		return fmt.Errorf("tickets have this city by another name: write \"%s, %s\"", p.City, p.Country)
	}
	return fmt.Errorf("tickets never have this city: write a city and a country, as in \"London, GB\"")
}

func wrongCountry(code string) error {
	known, ok := places.Country(code)
	switch {
	case known == code:
		return nil
	case ok:
		return fmt.Errorf("it is no ISO 3166-1 code: write %q", known)
	}
	return fmt.Errorf("it is no ISO 3166-1 code of a country that we know: write one such as \"GB\"")
}
