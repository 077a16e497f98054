package main

import (
	"slices"
	"testing"
)

func TestSplitCity(t *testing.T) {
	for _, tc := range []struct {
		name, country, municipality, want string
		others                            []string
	}{
		{"a plain name", "GB", "London", "London", nil},
		{"a district in parentheses", "CN", "Shanghai (Pudong)", "Shanghai", nil},
		{"another name in parentheses", "ZA", "Gqeberha (Port Elizabeth)", "Gqeberha", []string{"Port Elizabeth"}},
		{"two cities", "US", "Raleigh/Durham", "Raleigh", []string{"Durham"}},
		{"a district first, in China", "CN", "Ganjingzi, Dalian", "Dalian", []string{"Ganjingzi"}},
		{"a county last, elsewhere", "GB", "Paisley, Renfrewshire", "Paisley", []string{"Renfrewshire"}},
		{"the word city, in Mexico", "MX", "Ciudad de Cancún", "Cancún", []string{"Ciudad de Cancún"}},
		{"spaces", "CN", "Kaili  (Huangping)", "Kaili", nil},
		{"no municipality", "TH", "", "Mae Sot", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			city, others := splitCity(sourceAirport{Country: tc.country, Municipality: tc.municipality, Name: "Mae Sot Airport"})
			if city != tc.want || !slices.Equal(others, tc.others) {
				t.Errorf("splitCity = %q, %q, want %q, %q", city, others, tc.want, tc.others)
			}
		})
	}
}

func TestKeywordsAreNames(t *testing.T) {
	got := keywords("Bombay, LON,WIIH,http://example.com/x, Kenya , x, A|B")
	if want := []string{"Bombay", "Kenya", "A B"}; !slices.Equal(got, want) {
		t.Errorf("keywords = %q, want %q", got, want)
	}
}

func TestNamesOfOtherPlacesAreNoKeywords(t *testing.T) {
	none := names{areas: map[string]bool{"kenya": true}, elsewhere: map[string][]string{"cambridge": {"GB-ENG"}}}
	for _, tc := range []struct {
		name, keyword, region string
		want                  bool
	}{
		{"a country", "Kenya", "KE-110", true},
		{"a sight", "Disneyland", "US-CA", true},
		{"a city of another region", "Cambridge", "CA-ON", true},
		{"a city of this region", "Cambridge", "GB-ENG", false},
		{"an old name", "Bombay", "IN-MM", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := none.mislead(tc.keyword, tc.region); got != tc.want {
				t.Errorf("mislead = %v, want %v", got, tc.want)
			}
		})
	}
}
