// Package exit says how a run of kubectl flights ends: the exit codes, and the errors that lead to them. Every command
// knows it, also those that work offline, so it must know no client and no cluster.
package exit

import (
	"errors"
	"fmt"
)

// The exit codes. They are a contract with scripts.
const (
	// OK: everything that was asked for was done.
	OK = 0
	// Failed: something was refused, or could not be done.
	Failed = 1
	// Usage: the command line makes no sense. Nothing was done.
	Usage = 2
)

// UsageError says what is wrong with a command line.
type UsageError struct{ text string }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Error says what is wrong.
func (e *UsageError) Error() string { return e.text }

// Code is the exit code for what a run ended with; nil is OK.
func Code(err error) int {
	var usage *UsageError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &usage):
		return Usage
	default:
		return Failed
	}
}
