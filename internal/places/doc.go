// Package places resolves what people write (a city, an airport, an IATA code) to IATA codes, from an embedded table.
//
// It does no I/O, and knows no Kubernetes and no policy.
//
// # How a text is resolved
//
// Texts are compared without case, accents, apostrophes and punctuation: "são paulo" is "Sao Paulo". The first of these
// steps that finds something decides:
//
//  1. the code of an airport in the table ("LHR", "lhr");
//  2. the code of a metropolitan area ("LON", "nyc");
//  3. a city or metropolitan area by its name, another name of it, or its display name ("London", "Bombay");
//  4. an airport by its name, with or without its city and the words "airport" and "international" ("Heathrow",
//     "London Heathrow", "Charles de Gaulle");
//  5. a keyword of an airport, which is a lesser name such as that of its district ("Dulles");
//  6. one of the above with a country, a region or the city behind it ("London, CA", "Portland, OR", "Paris CDG");
//  7. three capital letters that mean nothing to us: KindCode.
//
// Where one name means several places, a metropolitan area goes before a city with a large airport, and that before
// all others; keywords have no such order. If two or more remain, in whatever countries, the text is ambiguous: a wrong
// guess here is money spent on the wrong journey. So "London" is the metropolitan area, and not the city in Ontario;
// "Sydney" is in Australia, since the airport in Nova Scotia isn't large; "San Jose" is ambiguous.
//
// A three-letter word that is the code of one place and the name of another ("Leh", where LEH is Le Havre) is ambiguous
// unless it is written in capitals, which makes it a code.
//
// In "London, CA" two letters are a country first (Canada), then a state of the USA, then a region elsewhere: "San
// Jose, CA" is in California because Canada has no San Jose. "US-CA" means one thing only.
//
// # What a place is
//
// A city without a code of its own has the code of its main airport: BOM is both an airport and, as "Mumbai", a city.
// Airports of one name, one country and at most 75 km apart serve one city. Airports of a metropolitan area belong to
// its city, wherever they stand: Narita is in Tokyo. Newark isn't in New York, as IATA sees it.
package places
