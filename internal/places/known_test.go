package places

import "testing"

func TestHasCityKnowsEveryCityByTheNameThatPlacesHave(t *testing.T) {
	for code, r := range shared().codes {
		p := r.place(code)
		if !HasCity(p.City, p.Country) {
			t.Errorf("%s is in %s, %s, which isn't known", code, p.City, p.Country)
		}
	}
	for _, other := range [][2]string{{"Bombay", "IN"}, {"Mumbai", "GB"}, {"Heathrow", "GB"}, {"", ""}} {
		if HasCity(other[0], other[1]) {
			t.Errorf("%v is no name that a place has", other)
		}
	}
}

func TestCountryKnowsCodesAndNames(t *testing.T) {
	for text, want := range map[string]string{"GB": "GB", "UK": "GB", "United Kingdom": "GB", "IN": "IN", "XX": "", "": ""} {
		if got, known := Country(text); got != want || known != (want != "") {
			t.Errorf("%q is %q (%t), want %q", text, got, known, want)
		}
	}
}
