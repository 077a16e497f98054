package main

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	iata        = regexp.MustCompile(`^[A-Z]{3}$`)
	parentheses = regexp.MustCompile(`\s*\(([^)]*)\)`)
	// noAlias are keywords that are no names: addresses, ICAO codes, lists of codes. Codes of three letters go too:
	// metropolitan areas come from a table of their own, since the keywords know ten of them only.
	noAlias = regexp.MustCompile(`^[A-Z0-9,]{2,}$|https?:|^.{0,2}$|^.{60,}$|[?]|[\t\r\n]`)
	// sights are keywords that name no place that an airport serves.
	sights = map[string]bool{"disney": true, "disneyland": true, "olympics": true, "kurdish": true, "kurd": true, "java": true}
)

// writeTable writes one record a line: D(ate), C(ountry) code name, R(egion) code name, A(irport) code name city
// country region latitude longitude size aliases. All but D are sorted by code.
func writeTable(w *bytes.Buffer, date string, src source, keep map[string]bool) {
	fmt.Fprintf(w, "D\t%s\n", date)
	byCode := func(a, b sourceArea) int { return cmp.Compare(a.Code, b.Code) }
	slices.SortFunc(src.Countries, byCode)
	slices.SortFunc(src.Regions, byCode)
	slices.SortFunc(src.Airports, func(a, b sourceAirport) int { return cmp.Compare(a.IATA, b.IATA) })
	areas := map[string]bool{}
	for _, c := range src.Countries {
		areas[strings.ToLower(c.Name)] = true
		fmt.Fprintf(w, "C\t%s\t%s\n", c.Code, clean(c.Name))
	}
	served := map[string]bool{}
	var rows bytes.Buffer
	for _, r := range src.Regions {
		areas[strings.ToLower(r.Name)] = true
	}
	for _, a := range src.Airports {
		if !iata.MatchString(a.IATA) || (a.Scheduled != "yes" && !keep[a.IATA]) {
			continue
		}
		served[a.Region] = true
		writeAirport(&rows, a, areas)
	}
	for _, r := range src.Regions {
		if served[r.Code] && !strings.HasPrefix(r.Name, "(") {
			fmt.Fprintf(w, "R\t%s\t%s\n", r.Code, clean(r.Name))
		}
	}
	w.Write(rows.Bytes())
}

func writeAirport(w *bytes.Buffer, a sourceAirport, areas map[string]bool) {
	city, others := splitCity(a)
	aliases := slices.Concat(others, keywords(a.Keywords, areas))
	slices.Sort(aliases)
	fmt.Fprintf(w, "A\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.IATA, clean(a.Name), city, a.Country, a.Region,
		degrees(a.Lat), degrees(a.Lon), a.Type[:1], strings.Join(slices.Compact(aliases), "|"))
}

// splitCity returns the name of the city and the other names in the municipality, as in "Raleigh/Durham",
// "Shanghai (Pudong)" or "Pendik, Istanbul".
func splitCity(a sourceAirport) (city string, others []string) {
	text := clean(a.Municipality)
	for _, m := range parentheses.FindAllStringSubmatch(text, -1) {
		others = append(others, m[1])
	}
	text = parentheses.ReplaceAllString(text, "")
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '/' || r == ',' })
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	if len(parts) == 0 {
		return bareName(a.Name), nil
	}
	// China and Turkey write the district first.
	if (a.Country == "CN" || a.Country == "TR") && strings.Contains(text, ",") {
		slices.Reverse(parts)
	}
	city = parts[0]
	others = append(others, parts[1:]...)
	if short, ok := strings.CutPrefix(city, "Ciudad de "); ok && a.Country == "MX" {
		city, others = short, append(others, city)
	}
	return city, others
}

// bareName makes a city of an airport's name, for the airports that have no municipality.
func bareName(name string) string {
	name = parentheses.ReplaceAllString(clean(name), "")
	for _, word := range []string{" International Airport", " Airport", " Airfield", " Army Aviation Centre"} {
		name = strings.TrimSuffix(name, word)
	}
	return name
}

// keywords returns the keywords that are names of a place that this airport serves. Names of whole countries and
// regions would send somebody who wrote "Java" to Jakarta.
func keywords(text string, areas map[string]bool) []string {
	var names []string
	for _, k := range strings.Split(text, ",") {
		k = strings.Join(strings.Fields(strings.ReplaceAll(k, "|", " ")), " ")
		lower := strings.ToLower(k)
		if !noAlias.MatchString(k) && !areas[lower] && !sights[lower] {
			names = append(names, k)
		}
	}
	return names
}

// degrees rounds to a thousandth of a degree, about a hundred metres.
func degrees(text string) string {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("coordinate %q: %v", text, err))
	}
	return strconv.FormatFloat(value, 'f', 3, 64)
}

// clean makes text fit for a field.
func clean(text string) string {
	return strings.Join(strings.Fields(text), " ")
}
