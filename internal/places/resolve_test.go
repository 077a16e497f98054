package places

import (
	"errors"
	"testing"
)

func TestResolve(t *testing.T) {
	for _, tc := range []struct {
		name, from, to string
		origin, dest   string
		km             int
		international  bool
	}{
		{"the ticket of the README", "Mumbai", "London", "BOM", "LON", 7191, true},
		{"airports", "LHR", "JFK", "LHR", "JFK", 5540, true},
		{"inside a country", "Munich", "Berlin", "MUC", "BER", 462, false},
		{"two airports of one city", "LGW", "LHR", "LGW", "LHR", 41, false},
		{"Newark isn't in New York", "New York", "EWR", "NYC", "EWR", 29, false},
		{"across the date line", "Auckland", "Honolulu", "AKL", "HNL", 7089, true},
		{"a code that nobody knows counts as abroad, at no known distance", "London", "QQQ", "LON", "QQQ", 0, true},
		{"two codes that nobody knows", "QQQ", "QQZ", "QQQ", "QQZ", 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Resolve(tc.from, tc.to)
			if err != nil {
				t.Fatal(err)
			}
			if got.Origin.IATA != tc.origin || got.Destination.IATA != tc.dest {
				t.Errorf("route %s to %s, want %s to %s", got.Origin.IATA, got.Destination.IATA, tc.origin, tc.dest)
			}
			if got.DistanceKm != tc.km {
				t.Errorf("distance %d km, want %d", got.DistanceKm, tc.km)
			}
			if got.International != tc.international {
				t.Errorf("international = %v, want %v", got.International, tc.international)
			}
		})
	}
}

func TestResolveRefusesOnePlaceTwice(t *testing.T) {
	for _, tc := range []struct{ name, from, to, iata string }{
		{"the same text", "London", "London", "LON"},
		{"an old name and a new one", "Bombay", "Mumbai", "BOM"},
		{"an airport and its city", "BOM", "Mumbai", "BOM"},
		{"an airport and its metropolitan area", "Heathrow", "London", "LON"},
		{"the area and its airport", "London", "LGW", "LON"},
		{"one airport by two names", "LHR", "Heathrow", "LHR"},
		{"a code that nobody knows", "QQQ", "QQQ", "QQQ"},
		{"a suburb and the area", "Narita", "Tokyo", "TYO"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Resolve(tc.from, tc.to)
			var same *SamePlaceError
			if !errors.As(err, &same) {
				t.Fatalf("error %v, want a *SamePlaceError", err)
			}
			if same.From != tc.from || same.To != tc.to || same.IATA != tc.iata {
				t.Errorf("error %+v, want IATA %s", same, tc.iata)
			}
		})
	}
}

func TestResolveSaysWhichEndIsWrong(t *testing.T) {
	for _, tc := range []struct{ name, from, to, field, message string }{
		{"an unknown origin", "Lodnon", "Paris", "from",
			`"Lodnon" is not a place we know; did you mean "London"? Else use a city, an airport or an IATA code, as in "London", "Heathrow" or "LHR"`},
		{"an ambiguous destination", "Paris", "San Jose", "to",
			`"San Jose" means several places: write one of "San Jose, CR", "San Jose, PH", "San Jose, US", or an IATA code`},
		{"no destination", "Paris", "", "to",
			`no place is given: use a city, an airport or an IATA code, as in "London", "Heathrow" or "LHR"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Resolve(tc.from, tc.to)
			var end *EndError
			if !errors.As(err, &end) {
				t.Fatalf("error %v, want an *EndError", err)
			}
			if end.Field != tc.field || end.Error() != tc.message {
				t.Errorf("error of %q: %s\nwant %q: %s", end.Field, end, tc.field, tc.message)
			}
			var unknown *UnknownError
			var ambiguous *AmbiguousError
			if !errors.As(err, &unknown) && !errors.As(err, &ambiguous) {
				t.Errorf("error %v wraps none of Lookup's", err)
			}
		})
	}
}

func BenchmarkResolve(b *testing.B) {
	TableDate() // builds the table
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Resolve("Mumbai", "London"); err != nil {
			b.Fatal(err)
		}
	}
}
