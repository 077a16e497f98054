package places

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestEveryAirportCodeIsItself(t *testing.T) {
	for code, r := range shared().codes {
		got, err := Lookup(code)
		if err != nil || got.IATA != code || got.Name != r.display() {
			t.Errorf("Lookup(%q) = %v, %v", code, got, err)
		}
	}
}

// everyRef returns all places of the table.
func everyRef() []ref {
	var refs []ref
	for _, named := range shared().names[levelCity] {
		refs = append(refs, named...)
	}
	return refs
}

func TestEveryDisplayNameIsItself(t *testing.T) {
	for _, r := range everyRef() {
		got, err := Lookup(r.display())
		if err != nil || got.Name != r.display() {
			t.Errorf("Lookup(%q) = %q, %v", r.display(), got.Name, err)
		}
	}
}

func TestEveryCandidateIsOnePlace(t *testing.T) {
	ambiguous := 0
	for _, level := range shared().names {
		for name := range level {
			_, err := Lookup(name)
			var several *AmbiguousError
			if !errors.As(err, &several) {
				continue
			}
			ambiguous++
			if len(several.Candidates) < 2 || !slices.IsSorted(several.Candidates) {
				t.Errorf("candidates of %q: %q", name, several.Candidates)
			}
			for _, candidate := range several.Candidates {
				if _, err := Lookup(candidate); err != nil {
					t.Errorf("candidate %q of %q: %v", candidate, name, err)
				}
			}
		}
	}
	if ambiguous < 40 {
		t.Errorf("%d ambiguous names, want the ones that the table is known to have", ambiguous)
	}
}

func TestNoOtherCityHasTheNameOfAMetropolitanArea(t *testing.T) {
	for name, refs := range shared().names[levelCity] {
		for _, r := range refs {
			for _, other := range refs {
				if r != other && r.city != nil && r.city.metro && other.city != nil && other.city.country == r.city.country &&
					other.city.region == r.city.region {
					t.Errorf("%q is %s and %s", name, r.display(), other.display())
				}
			}
		}
	}
}

func TestFoldingTwiceChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		once := fold(text)
		if twice := fold(once); twice != once {
			t.Fatalf("fold(%q) = %q, then %q", text, once, twice)
		}
	})
}

func TestCaseAccentsAndPunctuationDoNotMatter(t *testing.T) {
	names := []string{"Mumbai", "London", "São Paulo", "Zürich", "Charles de Gaulle", "San Jose, CR", "Portland, US-OR"}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		want, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		written := rapid.SampledFrom([]func(string) string{strings.ToUpper, strings.ToLower, fold}).Draw(t, "as")(name)
		gap := rapid.StringMatching(`[ .,;_-]{1,3}`).Draw(t, "gap")
		written = strings.ReplaceAll(written, " ", gap)
		got, err := Lookup(written)
		if err != nil {
			t.Fatalf("Lookup(%q): %v", written, err)
		}
		if got.Name != want.Name {
			t.Fatalf("Lookup(%q) = %s, want %s", written, got.Name, want.Name)
		}
	})
}

func TestARouteAndItsWayBackAgree(t *testing.T) {
	codes := make([]string, 0, len(shared().codes))
	for code := range shared().codes {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(codes).Draw(t, "a")
		b := rapid.SampledFrom(codes).Draw(t, "b")
		there, err := Resolve(a, b)
		back, backErr := Resolve(b, a)
		if (err == nil) != (backErr == nil) {
			t.Fatalf("%s to %s: %v, back: %v", a, b, err, backErr)
		}
		if there.DistanceKm != back.DistanceKm || there.International != back.International {
			t.Fatalf("%s to %s: %+v, back: %+v", a, b, there, back)
		}
		if there.DistanceKm < 0 || there.DistanceKm > 20038 {
			t.Fatalf("%s to %s: %d km", a, b, there.DistanceKm)
		}
	})
}

func FuzzLookup(f *testing.F) {
	for _, seed := range []string{"Mumbai", "London, CA", "San Jose", "LHR", "QQQ", "Leh", "", "\xff", "a\u202eb", "Xi'an", "Portland, Oregon, USA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Lookup(text)
		var unknown *UnknownError
		var ambiguous *AmbiguousError
		switch {
		case err == nil:
			if len(got.IATA) != 3 || len(got.Airports) == 0 || !slices.IsSorted(got.Airports) {
				t.Errorf("Lookup(%q) = %+v", text, got)
			}
			if again, err := Lookup(got.Name); err != nil || again.Name != got.Name {
				t.Errorf("display name %q is %q, %v", got.Name, again.Name, err)
			}
		case errors.As(err, &unknown):
			if len(unknown.Suggestions) > maxSuggestions {
				t.Errorf("suggestions of %q: %q", text, unknown.Suggestions)
			}
		case errors.As(err, &ambiguous):
			for _, candidate := range ambiguous.Candidates {
				if _, err := Lookup(candidate); err != nil {
					t.Errorf("candidate %q of %q: %v", candidate, text, err)
				}
			}
		default:
			t.Errorf("Lookup(%q): %v of unknown type", text, err)
		}
		if err != nil && !utf8.ValidString(err.Error()) {
			t.Errorf("message of %q is no UTF-8", text)
		}
	})
}
