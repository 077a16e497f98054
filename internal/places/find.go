package places

import (
	"slices"
	"strings"
)

// found is what a text may mean: refs after the ranking, and all the places that the ranking chose from.
type found struct{ refs, all []ref }

// find returns what a text may mean, in the steps that the package comment lists.
func (x *index) find(text string) found {
	key := fold(text)
	if key == "" {
		return found{}
	}
	if isWord, isUpper := isCode(text); isWord {
		if r, ok := x.codeOf(text); ok {
			return x.codeOrName(r, key, isUpper)
		}
	}
	if f := x.named(key); len(f.all) > 0 {
		return f
	}
	return x.qualified(key)
}

// codeOrName decides between a code and a city whose name is spelt alike.
func (x *index) codeOrName(code ref, key string, isUpper bool) found {
	refs := []ref{code}
	if !isUpper {
		for _, r := range best(x.names[levelCity][key]) {
			if r != code && (code.airport == nil || code.airport.serves != r.city) {
				refs = append(refs, r)
			}
		}
	}
	return found{refs: refs, all: refs}
}

// named looks a name up as it is, then without words such as "airport".
func (x *index) named(key string) found {
	for _, k := range []string{key, withoutGeneric(key)} {
		for level := range levels {
			refs := x.names[level][k]
			if len(refs) == 0 {
				continue
			}
			switch level {
			case levelCity:
				return x.orBetterKnown(refs, k)
			case levelAirport:
				return found{refs: best(refs), all: refs}
			default:
				return found{refs: refs, all: refs}
			}
		}
	}
	return found{}
}

// orBetterKnown adds the large airports that have the name of small cities for a keyword, so that "Manhattan" isn't
// taken for the one in Kansas without a question.
func (x *index) orBetterKnown(cities []ref, key string) found {
	top := best(cities)
	if top[0].rank() > 1 {
		return found{refs: top, all: cities}
	}
	better := filter(x.names[levelKeyword][key], func(r ref) bool {
		return r.rank() > 1 && !slices.Contains(cities, ref{city: r.airport.serves})
	})
	if len(better) == 0 {
		return found{refs: top, all: cities}
	}
	all := slices.Concat(cities, better)
	return found{refs: all, all: all}
}

// maxQualifierWords is the longest qualifier, as in "united states of america".
const maxQualifierWords = 5

// qualified takes words off the end of a name until the rest is a name and the words say which of its places is meant.
func (x *index) qualified(key string) found {
	words := strings.Fields(key)
	for n := len(words) - 1; n >= max(1, len(words)-maxQualifierWords); n-- {
		name, qualifier := strings.Join(words[:n], " "), strings.Join(words[n:], " ")
		refs := x.named(name).all
		if isWord, _ := isCode(name); isWord && len(refs) == 0 {
			if r, ok := x.codeOf(name); ok {
				refs = []ref{r}
			}
		}
		if refs = x.narrow(refs, qualifier); len(refs) > 0 {
			return found{refs: best(refs), all: refs}
		}
	}
	return found{}
}

// narrow returns the places that a qualifier fits, in the first sense of it that fits any: a country, a region, both,
// an airport of the city or the city of an airport.
func (x *index) narrow(refs []ref, qualifier string) []ref {
	if len(refs) == 0 {
		return nil
	}
	for _, sense := range []func([]ref, string) []ref{x.inCountry, x.inRegion, x.inRegionOfCountry, x.inCity} {
		if narrowed := sense(refs, qualifier); len(narrowed) > 0 {
			return narrowed
		}
	}
	return nil
}

func (x *index) inCountry(refs []ref, qualifier string) []ref {
	country, ok := x.countries[qualifier]
	if !ok {
		return nil
	}
	return filter(refs, func(r ref) bool { return r.country() == country })
}

// inRegion takes a whole region code ("us or"), then a state of the USA ("or"), then a code or name of any region.
func (x *index) inRegion(refs []ref, qualifier string) []ref {
	upper := strings.ToUpper(qualifier)
	for _, fits := range []func(region string) bool{
		func(region string) bool { return region == strings.Replace(upper, " ", "-", 1) },
		func(region string) bool { return region == "US-"+upper },
		func(region string) bool {
			_, local, _ := strings.Cut(region, "-")
			return local == upper || x.regions[region] == qualifier
		},
	} {
		narrowed := filter(refs, func(r ref) bool { return slices.ContainsFunc(r.regions(), fits) })
		if len(narrowed) > 0 {
			return narrowed
		}
	}
	return nil
}

// inRegionOfCountry takes a region and its country, as in "oregon usa".
func (x *index) inRegionOfCountry(refs []ref, qualifier string) []ref {
	words := strings.Fields(qualifier)
	for n := 1; n < len(words); n++ {
		if inside := x.inCountry(refs, strings.Join(words[n:], " ")); len(inside) > 0 {
			return x.inRegion(inside, strings.Join(words[:n], " "))
		}
	}
	return nil
}

// inCity takes an airport behind its city ("paris cdg") and a city behind its airport ("gatwick london").
func (x *index) inCity(refs []ref, qualifier string) []ref {
	var narrowed []ref
	named := x.named(qualifier).all
	code, _ := x.codeOf(qualifier)
	for _, r := range refs {
		switch {
		case r.airport != nil && (slices.Contains(named, ref{city: r.airport.serves}) || code == r):
			narrowed = append(narrowed, r)
		case r.city != nil:
			for _, a := range r.city.airports {
				if inside := (ref{airport: a}); code == inside || slices.Contains(named, inside) {
					narrowed = append(narrowed, inside)
				}
			}
		}
	}
	return narrowed
}

func filter(refs []ref, keep func(ref) bool) []ref {
	var kept []ref
	for _, r := range refs {
		if keep(r) {
			kept = append(kept, r)
		}
	}
	return kept
}
