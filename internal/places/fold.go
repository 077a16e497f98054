package places

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// letters are those that decompose into nothing, but that people write without their strokes and ligatures.
var letters = map[rune]string{
	'ß': "ss", 'ẞ': "ss", 'ø': "o", 'ł': "l", 'đ': "d", 'ð': "d", 'þ': "th", 'æ': "ae", 'œ': "oe", 'ı': "i", 'ħ': "h", 'ŧ': "t",
	'ς': "σ",
}

// saints are the short forms that only stand at the start of a name; elsewhere they may be the code of a region, as in
// "Billings, MT".
var saints = map[string]string{"st": "saint", "ft": "fort", "mt": "mount"}

// fold returns the form of a name that names are compared in: small letters and digits, without accents and apostrophes,
// words parted by one space. Folding a folded text changes nothing.
func fold(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	gap := false
	for _, r := range norm.NFKD.String(text) {
		r = unicode.ToLower(r)
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if gap && b.Len() > 0 {
				b.WriteByte(' ')
			}
			gap = false
			if plain, ok := letters[r]; ok {
				b.WriteString(plain)
			} else {
				b.WriteRune(r)
			}
		case unicode.In(r, unicode.M, unicode.Cf) || isApostrophe(r):
			// Accents, joiners, direction marks and apostrophes are inside words.
		default:
			gap = true
		}
	}
	return expandSaint(b.String())
}

func isApostrophe(r rune) bool {
	return strings.ContainsRune("'’‘ʻʼ`´", r)
}

func expandSaint(folded string) string {
	first, rest, ok := strings.Cut(folded, " ")
	if long, short := saints[first]; ok && short {
		return long + " " + rest
	}
	return folded
}
