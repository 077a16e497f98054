package policy

import (
	"fmt"

	"github.com/agnivade/levenshtein"
)

// didYouMean is a clause such as `, did you mean "deny"?` that names the candidate nearest to name, or "" when none is
// near enough to be a likely typing error.
func didYouMean(name string, candidates []string) string {
	nearest, best := "", len(name)/2+1
	for _, c := range candidates {
		if d := levenshtein.ComputeDistance(name, c); d < best {
			nearest, best = c, d
		}
	}
	if nearest == "" || best > 3 {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", nearest)
}
