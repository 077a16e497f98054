package ledger

import (
	"regexp"
	"strings"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// barWidth is how many characters a bar has between its brackets.
const barWidth = 20

// segment is one part of a bar. The characters tell the parts apart without colour.
type segment struct {
	mark   string
	colour string // an ANSI sequence
}

// legend heads the bars and says what their characters mean.
const legend = "# used + reserved = retained . free"

// segments are the parts of a bar, in their order.
func segments() []segment {
	return []segment{{"#", "\x1b[34m"}, {"+", "\x1b[33m"}, {"=", "\x1b[35m"}, {".", "\x1b[2m"}}
}

// bar draws a bucket: used, reserved, retained and free, in parts of the limit, or of what is taken if that is more. What
// isn't zero is at least one character, so that a bar without "." has no room.
func bar(b *flightsv1.QuotaBucket) string {
	amounts := []int64{b.Used, b.Reserved, b.Retained, max(0, b.Limit-Taken(b))}
	var drawn strings.Builder
	for i, cells := range shares(amounts, barWidth) {
		drawn.WriteString(strings.Repeat(segments()[i].mark, cells))
	}
	return "[" + drawn.String() + strings.Repeat(" ", barWidth-drawn.Len()) + "]"
}

// shares divides cells among amounts, in proportion, with one at least for each amount that isn't zero. There must be as
// many cells as amounts. All are 0 if all amounts are.
func shares(amounts []int64, cells int) []int {
	var whole float64
	for _, a := range amounts {
		whole += float64(a)
	}
	given := make([]int, len(amounts))
	if whole == 0 {
		return given
	}
	exact := make([]float64, len(amounts))
	left := cells
	for i, a := range amounts {
		exact[i] = float64(a) / whole * float64(cells)
		if a > 0 {
			given[i] = max(1, int(exact[i]))
		}
		left -= given[i]
	}
	for ; left > 0; left-- {
		given[neediest(exact, given, 1)]++
	}
	for ; left < 0; left++ {
		given[neediest(exact, given, -1)]--
	}
	return given
}

// neediest is the part that is the farthest below its exact share, or with sign -1 above it. A part of one cell or none
// isn't made smaller.
func neediest(exact []float64, given []int, sign float64) int {
	best := -1
	for i := range exact {
		if sign < 0 && given[i] <= 1 {
			continue
		}
		if best < 0 || sign*(exact[i]-float64(given[i])) > sign*(exact[best]-float64(given[best])) {
			best = i
		}
	}
	return best
}

// drawnBar finds bars in a text.
var drawnBar = regexp.MustCompile(`\[[#+=. ]{20}\]`)

// Colour colours the bars of a text for a terminal.
func Colour(text string) string {
	return drawnBar.ReplaceAllStringFunc(text, func(bar string) string {
		for _, s := range segments() {
			if first, last := strings.Index(bar, s.mark), strings.LastIndex(bar, s.mark); first >= 0 {
				bar = bar[:first] + s.colour + bar[first:last+1] + "\x1b[0m" + bar[last+1:]
			}
		}
		return bar
	})
}
