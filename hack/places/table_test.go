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
		{"a district in parentheses", "CN", "Shanghai (Pudong)", "Shanghai", []string{"Pudong"}},
		{"two cities", "US", "Raleigh/Durham", "Raleigh", []string{"Durham"}},
		{"a district first, in China", "CN", "Ganjingzi, Dalian", "Dalian", []string{"Ganjingzi"}},
		{"a county last, elsewhere", "GB", "Paisley, Renfrewshire", "Paisley", []string{"Renfrewshire"}},
		{"the word city, in Mexico", "MX", "Ciudad de Cancún", "Cancún", []string{"Ciudad de Cancún"}},
		{"spaces", "CN", "Kaili  (Huangping)", "Kaili", []string{"Huangping"}},
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
	got := keywords("Bombay, LON,WIIH,http://example.com/x, Java, Kenya , x, A|B", map[string]bool{"kenya": true})
	if want := []string{"Bombay", "A B"}; !slices.Equal(got, want) {
		t.Errorf("keywords = %q, want %q", got, want)
	}
}
