// Command states writes docs/ticket-states.md: the states of a ticket as a picture, and what each reason means. All of it
// comes from the transition table of the package lifecycle and from the comments of the constants in api/v1, so that it
// can't say anything else than the code. Usage: go run ./hack/states DEST, where DEST is the root to write below.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: states DEST")
		os.Exit(2)
	}
	if err := write("api/v1", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "states:", err)
		os.Exit(1)
	}
}

// write makes the page from the constants in the folder api, and puts it below dest.
func write(api, dest string) error {
	meanings, err := readMeanings(api)
	if err != nil {
		return err
	}
	page, err := render(lifecycle.Transitions(), meanings)
	if err != nil {
		return err
	}
	file := filepath.Join(dest, "docs", "ticket-states.md")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
