package main

import (
	"bytes"
	"cmp"
	"errors"
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
	// misleading are keywords that name no place, or one that is better known elsewhere: York isn't in Pennsylvania,
	// and who writes Ahmadabad doesn't mean Tehran.
	misleading = set("disney", "disneyland", "olympics", "kurdish", "kurd", "java", "york", "middletown", "ahmadabad", "lewis",
		"playa", "normal", "global", "geopark", "sekai", "oki", "cargo", "height", "long runway", "vulcano", "regional", "shell",
		"diamonds", "kimberlite", "estafeta", "banana", "libby", "black sea", "north sea", "offshore", "ela", "formerly kfca",
		"formerly kyum", "gaucharan", "covington", "alcantara", "minghi")
)

// writeTable writes one record a line: D(ate), C(ountry) code name, R(egion) code name, A(irport) code name city
// country region latitude longitude size aliases. All but D are sorted by code.
func writeTable(w *bytes.Buffer, date string, src source, keep map[string]bool) error {
	fmt.Fprintf(w, "D\t%s\n", date)
	byCode := func(a, b sourceArea) int { return cmp.Compare(a.Code, b.Code) }
	slices.SortFunc(src.Countries, byCode)
	slices.SortFunc(src.Regions, byCode)
	slices.SortFunc(src.Airports, func(a, b sourceAirport) int { return cmp.Compare(a.IATA, b.IATA) })
	for _, c := range src.Countries {
		fmt.Fprintf(w, "C\t%s\t%s\n", c.Code, clean(c.Name))
	}
	kept := func(a sourceAirport) bool { return iata.MatchString(a.IATA) && (a.Scheduled == "yes" || keep[a.IATA]) }
	none := otherPlaces(src, kept)
	served := map[string]bool{}
	var rows bytes.Buffer
	for _, a := range src.Airports {
		if kept(a) {
			served[a.Region] = true
			if err := writeAirport(&rows, a, none); err != nil {
				return err
			}
		}
	}
	for _, r := range src.Regions {
		if served[r.Code] && !strings.HasPrefix(r.Name, "(") {
			fmt.Fprintf(w, "R\t%s\t%s\n", r.Code, clean(r.Name))
		}
	}
	w.Write(rows.Bytes())
	return nil
}

// names are those that can't be an airport's keyword, in small letters.
type names struct {
	areas     map[string]bool     // whole countries and regions: "Java" isn't Jakarta
	elsewhere map[string][]string // cities without scheduled service, with their regions: "Cambridge" isn't Waterloo in Ontario
}

// otherPlaces gathers the names that must not become keywords.
func otherPlaces(src source, kept func(sourceAirport) bool) names {
	n := names{areas: map[string]bool{}, elsewhere: map[string][]string{}}
	for _, area := range slices.Concat(src.Countries, src.Regions) {
		n.areas[strings.ToLower(area.Name)] = true
	}
	for _, a := range src.Airports {
		if city, _ := splitCity(a); !kept(a) {
			n.elsewhere[strings.ToLower(city)] = append(n.elsewhere[strings.ToLower(city)], a.Region)
		}
	}
	return n
}

// mislead reports whether a keyword of an airport in a region would lead people who mean another place there.
func (n names) mislead(name, region string) bool {
	name = strings.ToLower(name)
	return n.areas[name] || misleading[name] || slices.ContainsFunc(n.elsewhere[name], func(r string) bool { return r != region })
}

func writeAirport(w *bytes.Buffer, a sourceAirport, none names) error {
	lat, errLat := degrees(a.Lat)
	lon, errLon := degrees(a.Lon)
	if err := errors.Join(errLat, errLon); err != nil {
		return fmt.Errorf("read the coordinates of %s: %w", a.IATA, err)
	}
	city, others := splitCity(a)
	aliases := slices.DeleteFunc(slices.Concat(others, keywords(a.Keywords)), func(k string) bool { return none.mislead(k, a.Region) })
	slices.Sort(aliases)
	fmt.Fprintf(w, "A\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.IATA, clean(a.Name), city, a.Country, a.Region,
		lat, lon, a.Type[:1], strings.Join(slices.Compact(aliases), "|"))
	return nil
}

// splitCity returns the name of the city and the other names in the municipality, as in "Raleigh/Durham",
// "Shanghai (Pudong)" or "Pendik, Istanbul".
func splitCity(a sourceAirport) (city string, others []string) {
	text := clean(a.Municipality)
	for _, m := range parentheses.FindAllStringSubmatch(text, -1) {
		if a.Country != "CN" { // districts, many of which have the names of cities
			others = append(others, m[1])
		}
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

// keywords returns the keywords that are names.
func keywords(text string) []string {
	var found []string
	for _, k := range strings.Split(text, ",") {
		if k = clean(strings.ReplaceAll(k, "|", " ")); !noAlias.MatchString(k) {
			found = append(found, k)
		}
	}
	return found
}

// degrees rounds to a thousandth of a degree, about a hundred metres.
func degrees(text string) (string, error) {
	value, err := strconv.ParseFloat(text, 64)
	return strconv.FormatFloat(value, 'f', 3, 64), err
}

// clean makes text fit for a field.
func clean(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

func set(names ...string) map[string]bool {
	in := make(map[string]bool, len(names))
	for _, name := range names {
		in[name] = true
	}
	return in
}
