package rest

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// maxDetail is how many runes of a provider's words are shown.
const maxDetail = 200

// What changes between two answers to one question, and what could be a secret. A text that holds trace ids or
// timestamps would be a new one on every repeat, and each would be a write of a status.
var (
	markup     = regexp.MustCompile(`<[^<>]*>`)
	links      = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S+`)
	bearer     = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s"',;]+`)
	mail       = regexp.MustCompile(`[^\s@<>"',;]+@[^\s@<>"',;]+`)
	moments    = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*`)
	clockTimes = regexp.MustCompile(`\b\d{1,2}:\d\d(:\d\d)?([.,]\d+)?\b`)
	words      = regexp.MustCompile(`[A-Za-z0-9_~+/=.-]+`)
	dates      = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	flight     = regexp.MustCompile(`^[A-Z0-9]{2}\d{1,4}$`)
	shortNum   = regexp.MustCompile(`^\d{1,4}([.,]\d{1,3})?$`)
	codes      = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	// Identifiers that happen to hold no digit: many capitals (base32), or capitals strewn among small letters (base64).
	capitals = regexp.MustCompile(`^[A-Z]{16,}$`)
	strewn   = regexp.MustCompile(`^\S*?[a-z][A-Z]\S*?[a-z][A-Z]\S*?[a-z][A-Z]\S*$`)
)

// normalise makes a provider's words fit to be shown: one line, at most maxDetail runes, without the given secrets,
// links, mail addresses, tokens, identifiers and times. It is the same for two answers that differ in those alone.
func normalise(text string, secrets []string) string {
	text = strings.Map(printable, strings.ToValidUTF8(text, " "))
	for _, s := range secrets {
		text = replaceFold(text, s, "…")
	}
	// Bounded before the rest of the work, and after the secrets are out: a cut through one would show its half.
	if len(text) > 8<<10 {
		text = strings.ToValidUTF8(text[:8<<10], "")
	}
	text = markup.ReplaceAllString(text, " ")
	text = links.ReplaceAllString(text, "(link)")
	text = bearer.ReplaceAllString(text, "…")
	text = mail.ReplaceAllString(text, "…")
	text = moments.ReplaceAllString(text, "#")
	text = clockTimes.ReplaceAllString(text, "#")
	text = words.ReplaceAllStringFunc(text, plainWord)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxDetail {
		text = string(runes[:maxDetail-1]) + "…"
	}
	return text
}

// printable turns what steers a terminal or hides text (controls, direction marks, zero widths) into spaces.
func printable(r rune) rune {
	if unicode.IsSpace(r) || unicode.Is(unicode.C, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
		return ' '
	}
	return r
}

// plainWord keeps words, small numbers, dates and flight numbers, and replaces what looks like an identifier or key.
func plainWord(word string) string {
	core := strings.TrimRight(word, ".")
	rest := word[len(core):]
	digits := strings.ContainsFunc(core, unicode.IsDigit)
	letters := strings.ContainsFunc(core, unicode.IsLetter)
	switch {
	case dates.MatchString(core), flight.MatchString(core), shortNum.MatchString(core):
		return word
	case digits && !letters:
		return "#" + rest
	case digits && len(core) >= 6, len(core) > 32, capitals.MatchString(core), strewn.MatchString(core):
		return "#" + rest
	}
	return word
}

// replaceFold replaces every occurrence of s in any case. Case folding of ASCII keeps byte offsets.
func replaceFold(text, s, by string) string {
	if s == "" {
		return text
	}
	pattern, err := regexp.Compile("(?i)" + regexp.QuoteMeta(s))
	if err != nil {
		// QuoteMeta of any string compiles; if that ever changes, nothing is shown.
		return by
	}
	return pattern.ReplaceAllString(text, by)
}

// secrets lists what must not come back in a provider's words: the token in the forms that servers echo, and what the
// order says about passengers, the longest first so that no part hides a whole.
func (p *Provider) secrets(order *flightsv1.Order) []string {
	secrets := []string{
		p.token, url.QueryEscape(p.token), base64.StdEncoding.EncodeToString([]byte(p.token)),
		base64.RawURLEncoding.EncodeToString([]byte(p.token)),
	}
	if order != nil {
		for _, t := range order.Passengers {
			secrets = append(secrets, t.GivenName, t.FamilyName, string(t.BirthDate), t.Email, t.Phone)
		}
	}
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return s == "" })
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(secrets)
}

// code returns a provider's code if it is one word of the contract's form that survives normalise, else the fallback.
func (p *Provider) code(code, fallback string) string {
	if !codes.MatchString(code) || replaceFold(code, p.token, "") != code || plainWord(code) != code {
		return fallback
	}
	return code
}
