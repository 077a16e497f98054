package places

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

func TestTheEmbeddedTableIsWhole(t *testing.T) {
	if _, err := time.Parse(time.DateOnly, TableDate()); err != nil {
		t.Errorf("date of the table: %v", err)
	}
	tables, err := readTables(data)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tables.airports); n < 3200 {
		t.Errorf("%d airports, want 3200 or more", n)
	}
	if n := len(tables.metros); n != 41 {
		t.Errorf("%d metropolitan areas, want 41", n)
	}
	for code, a := range tables.airports {
		if isWord, isUpper := isCode(code); !isWord || !isUpper {
			t.Errorf("code %q", code)
		}
		if a.name == "" || a.city == "" || tables.countries[a.country] == "" || !strings.HasPrefix(a.region, a.country+"-") {
			t.Errorf("%s: name %q, city %q, country %q, region %q", code, a.name, a.city, a.country, a.region)
		}
		if math.Abs(a.lat) > 90 || math.Abs(a.lon) > 180 || (a.lat == 0 && a.lon == 0) {
			t.Errorf("%s is at %v, %v", code, a.lat, a.lon)
		}
	}
}

func TestTheEmbeddedTableHasNoNameAndTime(t *testing.T) {
	packed, err := data.ReadFile("data/airports.tsv.gz")
	if err != nil {
		t.Fatal(err)
	}
	if header := packed[3:8]; !bytes.Equal(header, make([]byte, 5)) {
		t.Errorf("flags and time of the gzip header are %v, so equal tables aren't equal files", header)
	}
}

func TestBrokenTablesAreRefused(t *testing.T) {
	const row = "QQQ\tQ Airport\tQ\tDE\tDE-BY\t48.0\t11.0\tL\t-"
	for _, tc := range []struct {
		name, text string
		add        func(*tables) func([]string) error
		want       string
	}{
		{"a record of an unknown kind", "Z\tx", func(t *tables) func([]string) error { return t.addRecord }, `line 1: record "Z"`},
		{"an airport with too few fields", "# c\n\nA\tQQQ", func(t *tables) func([]string) error { return t.addRecord }, "line 3: 1 fields, want 9"},
		{"an airport twice", row + "\n" + row, func(t *tables) func([]string) error { return t.addAirport }, "line 2: airport QQQ is there twice"},
		{"a latitude that is no number", strings.Replace(row, "48.0", "north", 1), func(t *tables) func([]string) error { return t.addAirport }, "read latitude"},
		{"a longitude that is no number", strings.Replace(row, "11.0", "east", 1), func(t *tables) func([]string) error { return t.addAirport }, "read longitude"},
		{"a fix with too few fields", "QQQ", func(t *tables) func([]string) error { return t.fixAirport }, "1 fields, want 4"},
		{"a fix of an unknown airport", "QQQ\t-\tL\t-", func(t *tables) func([]string) error { return t.fixAirport }, "airport QQQ is unknown"},
		{"a size that isn't one", "AAA\t-\tHUGE\t-", func(t *tables) func([]string) error { return t.fixAirport }, `size "HUGE" of AAA is unknown`},
		{"a metropolitan area with too few fields", "QQQ", func(t *tables) func([]string) error { return t.addMetro }, "1 fields, want 4"},
		{"a metropolitan area of unknown airports", "ZZZ\tZ\tDE\tAAA,QQQ", func(t *tables) func([]string) error { return t.addMetro }, "airport QQQ of ZZZ is unknown"},
		{"other names with too many fields", "AAA\tx\ty", func(t *tables) func([]string) error { return t.addOtherNames }, "3 fields, want 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := eachLine(tc.text, tc.add(&tables{airports: map[string]*airport{"AAA": {code: "AAA"}}}))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTheCentreOfACityIsRightAcrossTheDateLine(t *testing.T) {
	lat, lon := centre([]*airport{{lat: -17, lon: 179}, {lat: -17, lon: -179}})
	if math.Abs(lat+17) > 0.1 || math.Abs(math.Abs(lon)-180) > 0.1 {
		t.Errorf("centre %v, %v, want about -17, 180", lat, lon)
	}
}

func TestDistanceOfOppositePointsIsHalfTheEarth(t *testing.T) {
	if got := haversineKm(90, 0, -90, 0); math.Abs(got-20015) > 1 {
		t.Errorf("pole to pole is %v km, want 20015", got)
	}
	if got := haversineKm(12, 34, 12, 34); got != 0 {
		t.Errorf("nowhere far is %v km", got)
	}
}
