package places

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// data holds the table that hack/places writes, and the tables that are written by hand.
//
//go:embed data/airports.tsv.gz data/metros.tsv data/cities.tsv data/airports_fixed.tsv data/airports_added.tsv
var data embed.FS

// airport is one row of the table.
type airport struct {
	code, name, city, country, region string
	lat, lon                          float64
	large                             bool
	keywords                          []string

	// Set by buildCities:
	serves    *city
	displayed string
}

// metro is a metropolitan area as IATA lists it.
type metro struct {
	code, name, country string
	airports            []string
}

// otherNames are names of the city or metropolitan area of a code.
type otherNames struct {
	code  string
	names []string
}

// tables is what the embedded files say, checked and merged, before any index is built.
type tables struct {
	date      string
	airports  map[string]*airport
	metros    []metro
	others    []otherNames
	countries map[string]string // code to English name
	regions   map[string]string // ISO 3166-2 code to English name
}

// shared is built by the first lookup and never changes.
var shared = sync.OnceValue(func() *index {
	t, err := readTables(data)
	if err != nil {
		// The files are part of the program, and the tests read them: this can't depend on input.
		panic(fmt.Sprintf("read embedded places: %v", err)) //nolint:forbidigo // the program was built wrong: every test fails
	}
	return buildIndex(t)
})

// Load reads the table now. The first look-up would do it else, and a program that answers within a deadline wants it done
// before.
func Load() { shared() }

// readTables reads and merges the files.
func readTables(files embed.FS) (*tables, error) {
	t := &tables{airports: map[string]*airport{}, countries: map[string]string{}, regions: map[string]string{}}
	packed, err := files.ReadFile("data/airports.tsv.gz")
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, err
	}
	if err := eachLine(string(text), t.addRecord); err != nil {
		return nil, fmt.Errorf("airports.tsv.gz: %w", err)
	}
	for _, file := range []struct {
		name string
		add  func([]string) error
	}{
		{"airports_added.tsv", t.addAirport},
		{"airports_fixed.tsv", t.fixAirport},
		{"metros.tsv", t.addMetro},
		{"cities.tsv", t.addOtherNames},
	} {
		text, err := files.ReadFile("data/" + file.name)
		if err != nil {
			return nil, err
		}
		if err := eachLine(string(text), file.add); err != nil {
			return nil, fmt.Errorf("%s: %w", file.name, err)
		}
	}
	return t, nil
}

// eachLine calls add with the fields of every line that is no comment.
func eachLine(text string, add func([]string) error) error {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := add(strings.Split(line, "\t")); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return nil
}

// addRecord adds one record of the generated table; its first field is the kind of record.
func (t *tables) addRecord(fields []string) error {
	switch {
	case fields[0] == "D" && len(fields) == 2:
		t.date = fields[1]
	case fields[0] == "C" && len(fields) == 3:
		t.countries[fields[1]] = fields[2]
	case fields[0] == "R" && len(fields) == 3:
		t.regions[fields[1]] = fields[2]
	case fields[0] == "A":
		return t.addAirport(fields[1:])
	default:
		return fmt.Errorf("record %q with %d fields is unknown", fields[0], len(fields))
	}
	return nil
}

// addAirport adds an airport: code, name, city, country, region, latitude, longitude, size, keywords.
func (t *tables) addAirport(f []string) error {
	if err := wantFields(f, 9); err != nil {
		return err
	}
	if t.airports[f[0]] != nil {
		return fmt.Errorf("airport %s is there twice", f[0])
	}
	lat, err := strconv.ParseFloat(f[5], 64)
	if err != nil {
		return fmt.Errorf("read latitude: %w", err)
	}
	lon, err := strconv.ParseFloat(f[6], 64)
	if err != nil {
		return fmt.Errorf("read longitude: %w", err)
	}
	t.airports[f[0]] = &airport{code: f[0], name: f[1], city: f[2], country: f[3], region: f[4], lat: lat, lon: lon,
		large: strings.EqualFold(f[7], "l"), keywords: list(f[8], "|")}
	return nil
}

// fixAirport mends an airport: code, city, size, more keywords.
func (t *tables) fixAirport(f []string) error {
	if err := wantFields(f, 4); err != nil {
		return err
	}
	a := t.airports[f[0]]
	if a == nil {
		return fmt.Errorf("airport %s is unknown", f[0])
	}
	if f[1] != "-" {
		// The village that the airport stands in stays findable.
		a.keywords = append(a.keywords, a.city)
		a.city = f[1]
	}
	switch f[2] {
	case "L", "M":
		a.large = f[2] == "L"
	case "X":
		delete(t.airports, a.code)
	case "-":
	default:
		return fmt.Errorf("size %q of %s is unknown", f[2], f[0])
	}
	a.keywords = append(a.keywords, list(f[3], "|")...)
	return nil
}

// addMetro adds a metropolitan area: code, name, country, airports.
func (t *tables) addMetro(f []string) error {
	if err := wantFields(f, 4); err != nil {
		return err
	}
	m := metro{code: f[0], name: f[1], country: f[2], airports: list(f[3], ",")}
	for _, code := range m.airports {
		if t.airports[code] == nil {
			return fmt.Errorf("airport %s of %s is unknown", code, m.code)
		}
	}
	slices.Sort(m.airports)
	t.metros = append(t.metros, m)
	return nil
}

// addOtherNames adds names of a city: code, names.
func (t *tables) addOtherNames(f []string) error {
	if err := wantFields(f, 2); err != nil {
		return err
	}
	t.others = append(t.others, otherNames{code: f[0], names: list(f[1], "|")})
	return nil
}

func wantFields(fields []string, n int) error {
	if len(fields) != n {
		return fmt.Errorf("%d fields, want %d", len(fields), n)
	}
	return nil
}

// list splits a list; "-" and "" are the empty one.
func list(text, separator string) []string {
	if text == "" || text == "-" {
		return nil
	}
	return strings.Split(text, separator)
}
