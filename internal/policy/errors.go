package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a policy.
type Problem struct {
	// Field is the path in the FlightPolicy: "spec.rego", "spec.library", "spec.parameters.airports".
	Field string
	// Row and Col are the place in the module, from 1; 0 when the problem has none.
	Row, Col int
	// Message says what is wrong and what to do.
	Message string
}

// String is the problem as compilers write it: "spec.rego:4:12: message".
func (p Problem) String() string {
	if p.Row == 0 {
		return p.Field + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.Field, p.Row, p.Col, p.Message)
}

// CompileError lists everything that is wrong with a policy, sorted by place and free of repeats.
type CompileError struct{ Problems []Problem }

// Error has one problem a line.
func (e *CompileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// maxProblems bounds what one CompileError tells: it ends up in an admission answer and in a status.
const maxProblems = 20

// compileError makes the error of a list of problems, or nil of none.
func compileError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Col, b.Col),
			cmp.Compare(a.Message, b.Message))
	})
	problems = slices.Compact(problems)
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems:maxProblems], Problem{
			Field:   problems[maxProblems].Field,
			Message: fmt.Sprintf("and %d more; mend these first", more),
		})
	}
	return &CompileError{Problems: problems}
}

// specRego and specLibrary are where a module comes from, as problems name it.
const (
	specRego    = "spec.rego"
	specLibrary = "spec.library"
)
