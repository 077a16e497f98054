package places

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLookupFindsOnePlace(t *testing.T) {
	london := "city LON LCY,LGW,LHR,LTN,STN London GB"
	for _, tc := range []struct{ name, text, want string }{
		{"a city with one airport has its code", "Mumbai", "city BOM BOM Mumbai IN"},
		{"an old name", "Bombay", "city BOM BOM Mumbai IN"},
		{"a code is an airport, even where the city has the same", "BOM", "airport BOM BOM Mumbai IN"},
		{"a code in small letters", "bom", "airport BOM BOM Mumbai IN"},
		{"white space around", " \t BOM\n", "airport BOM BOM Mumbai IN"},
		{"a metropolitan area goes before a city of the same name", "London", london},
		{"a metropolitan code", "LON", london},
		{"a metropolitan code in small letters", "lon", london},
		{"no matter which case", "lOnDoN", london},
		{"a name in another language", "Londres", london},
		{"a city and its country code", "London, GB", london},
		{"a city and its country", "London, United Kingdom", london},
		{"a city and a usual name of its country", "London, UK", london},
		{"a city and its part of the country", "London, England", london},
		{"a country code goes before a state of the USA", "London, CA", "city YXU YXU London CA"},
		{"the comma may be missing", "London CA", "city YXU YXU London CA"},
		{"a country by name", "London, Canada", "city YXU YXU London CA"},
		{"a region by name", "London, Ontario", "city YXU YXU London CA"},
		{"a display name", "London (LON), GB", london},
		{"the word airport behind a city isn't the airport of a small city", "London Airport", london},
		{"a state where the country has no such city", "San Jose, CA", "city SJC SJC San Jose US"},
		{"San Jose in Costa Rica", "San Jose, CR", "city SJO SJO,SYQ San Jose CR"},
		{"San José with an accent", "San José, Costa Rica", "city SJO SJO,SYQ San Jose CR"},
		{"a state of the USA", "Portland, OR", "city PDX PDX Portland US"},
		{"a state whose code is also a country without such a city", "Portland, ME", "city PWM PWM Portland US"},
		{"a whole region code", "Portland, US-OR", "city PDX PDX Portland US"},
		{"a state and the country", "Portland, Oregon, USA", "city PDX PDX Portland US"},
		{"a state code and a long country", "Portland, OR, United States of America", "city PDX PDX Portland US"},
		{"a region by its local code outside the USA", "Sydney, NS", "city YQY YQY Sydney CA"},
		{"a large airport goes before a small one", "Sydney", "city SYD SYD,WSI Sydney AU"},
		{"the small one by its country", "Sydney, CA", "city YQY YQY Sydney CA"},
		{"Barcelona isn't the one in Venezuela", "Barcelona", "city BCN BCN Barcelona ES"},
		{"Birmingham isn't the one in Alabama", "Birmingham", "city BHX BHX Birmingham GB"},
		{"Melbourne isn't the one in Florida", "Melbourne", "city MEL AVV,MEL Melbourne AU"},
		{"an airport by the name people say", "Heathrow", "airport LHR LHR London GB"},
		{"an airport with its city", "London Heathrow", "airport LHR LHR London GB"},
		{"an airport with the word airport", "Heathrow Airport", "airport LHR LHR London GB"},
		{"an airport and its city behind it", "Heathrow, London", "airport LHR LHR London GB"},
		{"an airport and its country", "Gatwick, GB", "airport LGW LGW London GB"},
		{"an airport by its display name", "Heathrow (LHR), London, GB", "airport LHR LHR London GB"},
		{"an airport whose name alone is vague", "London City", "airport LCY LCY London GB"},
		{"an airport of several words", "charles de gaulle", "airport CDG CDG Paris FR"},
		{"a city and the code of its airport", "Paris CDG", "airport CDG CDG Paris FR"},
		{"a code and its country", "CDG, FR", "airport CDG CDG Paris FR"},
		{"an apostrophe", "O’Hare", "airport ORD ORD Chicago US"},
		{"no apostrophe", "ohare", "airport ORD ORD Chicago US"},
		{"an airport stands in a village and serves a city", "Narita", "airport NRT NRT Tokyo JP"},
		{"an airport serves the city of its metropolitan area", "NRT", "airport NRT NRT Tokyo JP"},
		{"Boryspil is Kyiv's", "KBP", "airport KBP KBP Kyiv UA"},
		{"Kyiv by its Russian name", "Kiev", "city IEV IEV,KBP Kyiv UA"},
		{"Newark isn't in New York", "EWR", "airport EWR EWR Newark US"},
		{"New York is two airports", "New York", "city NYC JFK,LGA New York US"},
		{"New York by its code", "NYC", "city NYC JFK,LGA New York US"},
		{"a code of airport and area is the airport", "DXB", "airport DXB DXB Dubai AE"},
		{"and the name is the area", "Dubai", "city DXB DWC,DXB Dubai AE"},
		{"an airport of the area that isn't its code", "Tehran", "city THR IKA,THR Tehran IR"},
		{"an airport without scheduled service in its area", "Belo Horizonte", "city BHZ CNF,PLU Belo Horizonte BR"},
		{"umlauts", "München", "city MUC MUC Munich DE"},
		{"umlauts written out", "Muenchen", "city MUC MUC Munich DE"},
		{"decomposed umlauts", "Mu\u0308nchen", "city MUC MUC Munich DE"},
		{"no accents", "Sao Paulo", "city SAO CGH,GRU,VCP São Paulo BR"},
		{"accents", "SÃO PAULO", "city SAO CGH,GRU,VCP São Paulo BR"},
		{"a barred letter", "Wroclaw", "city WRO WRO Wrocław PL"},
		{"another script", "東京", "city TYO HND,NRT Tokyo JP"},
		{"St for Saint", "St. Louis", "city STL STL St Louis US"},
		{"Saint for St", "Saint Louis", "city STL STL St Louis US"},
		{"a direction mark inside", "Mum\u200fbai", "city BOM BOM Mumbai IN"},
		{"a three-letter word that is no code", "Niš", "city INI INI Nis RS"},
		{"and in capitals", "UBE", "city UBJ UBJ Ube JP"},
		{"a three-letter code that is also a word, in capitals", "LEH", "airport LEH LEH Le Havre FR"},
		{"the word with its country", "Leh, IN", "city IXL IXL Leh IN"},
		{"a keyword", "Dulles", "airport IAD IAD Washington US"},
		{"a new airport", "NMI", "airport NMI NMI Navi Mumbai IN"},
		{"a new airport's city", "Noida", "city DXN DXN Noida IN"},
		{"a new code", "Bishkek", "city BSZ BSZ Bishkek KG"},
		{"the code that it had before", "FRU", "city BSZ BSZ Bishkek KG"},
		{"another new airport", "WSI", "airport WSI WSI Sydney AU"},
		{"a capital of another name", "Delhi", "city DEL DEL Delhi IN"},
		{"a city that was renamed", "Astana", "city NQZ NQZ Astana KZ"},
		{"a code that the table lacks", "QQQ", "code QQQ QQQ  "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Lookup(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			line := strings.Join([]string{string(got.Kind), got.IATA, strings.Join(got.Airports, ","), got.City, got.Country}, " ")
			if line != tc.want {
				t.Errorf("Lookup(%q) = %q, want %q", tc.text, line, tc.want)
			}
			if got.Text != strings.TrimSpace(tc.text) {
				t.Errorf("Text = %q, want what was written", got.Text)
			}
		})
	}
}

func TestLookupSaysWhatIsAmbiguous(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"three countries", "San Jose", []string{"San Jose, CR", "San Jose, PH", "San Jose, US"}},
		{"two states and a country", "Portland", []string{"Portland, AU", "Portland, US-ME", "Portland, US-OR"}},
		{"the states that are left in a country", "Portland, US", []string{"Portland, US-ME", "Portland, US-OR"}},
		{"small cities in three countries", "Hamilton", []string{"Hamilton, BM", "Hamilton, CA", "Hamilton, NZ"}},
		{"a word that is also a code", "Leh", []string{"Leh, IN", "Octeville (LEH), Le Havre, FR"}},
		{"Goa, where GOA is Genoa", "goa", []string{"Cristoforo Colombo (GOA), Genoa, IT", "Goa, IN"}},
		{"a small city and a part of a large one", "Manhattan", []string{"John F Kennedy (JFK), New York, US",
			"La Guardia (LGA), New York, US", "Liberty (EWR), Newark, US", "Manhattan, US-KS"}},
		{"a keyword of several airports", "South Florida", []string{"Hollywood (FLL), Fort Lauderdale, US",
			"Miami (MIA), Miami, US", "Palm Beach (PBI), West Palm Beach, US"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Lookup(tc.text)
			var ambiguous *AmbiguousError
			if !errors.As(err, &ambiguous) {
				t.Fatalf("Lookup(%q) = %v, %v, want an *AmbiguousError", tc.text, got, err)
			}
			if diff := cmp.Diff(tc.want, ambiguous.Candidates); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLookupRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"two letters swapped", "Lodnon", []string{"London"}},
		{"a letter left out", "Londn", []string{"London"}},
		{"a wrong letter in a long name", "San Fransisco", []string{"San Francisco"}},
		{"no code of small letters", "qqq", nil},
		{"a city with a state that has none", "Paris, TX", nil},
		{"a city with a country that has none", "Mumbai, GB", []string{"Mumbai"}},
		{"a country", "Germany", nil},
		{"a country of three capitals", "UAE", nil},
		{"two cities", "Mumbai London", nil},
		{"nothing", "", nil},
		{"white space", " \t\n ", nil},
		{"one letter", "X", nil},
		{"punctuation", "!?--,,''", nil},
		{"an emoji", "✈️🛫", nil},
		{"direction marks only", "\u200f\u202e", nil},
		{"control characters", "\x00\x1b[31m", nil},
		{"invalid UTF-8", "\xff\xfe\xfd", nil},
		{"the word airport", "International Airport", nil},
		{"a hundred characters", strings.Repeat("ä", 100), nil},
		{"a hundred words", strings.Repeat("a ", 50), nil},
		{"ligatures that decompose into many letters", strings.Repeat("\ufdfa", 100), nil},
		{"more than a hundred characters", strings.Repeat("London ", 20), nil},
		{"a megabyte", strings.Repeat("x", 1<<20), nil},
		{"a path", "../../etc/passwd", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Lookup(tc.text)
			var unknown *UnknownError
			if !errors.As(err, &unknown) {
				t.Fatalf("Lookup = %v, %v, want an *UnknownError", got, err)
			}
			if diff := cmp.Diff(tc.want, unknown.Suggestions); diff != "" {
				t.Errorf("suggestions (-want +got):\n%s", diff)
			}
			if n := len(err.Error()); n > 500 {
				t.Errorf("the message has %d bytes", n)
			}
		})
	}
}

func TestSuggestionsAreFiveAtMost(t *testing.T) {
	_, err := Lookup("Santa")
	var unknown *UnknownError
	if !errors.As(err, &unknown) {
		t.Fatalf("error %v, want an *UnknownError", err)
	}
	if len(unknown.Suggestions) != maxSuggestions {
		t.Fatalf("suggestions %q, want %d", unknown.Suggestions, maxSuggestions)
	}
	for _, text := range unknown.Suggestions {
		if _, err := Lookup(text); err != nil {
			t.Errorf("suggestion %q: %v", text, err)
		}
	}
}

func TestThePlaceIsTheCallersOwn(t *testing.T) {
	first, err := Lookup("London")
	if err != nil {
		t.Fatal(err)
	}
	first.Airports[0] = "XXX"
	second, err := Lookup("London")
	if err != nil {
		t.Fatal(err)
	}
	if second.Airports[0] != "LCY" {
		t.Errorf("a caller changed the table: %v", second.Airports)
	}
}
