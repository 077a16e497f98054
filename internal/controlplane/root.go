package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// modulePath is the module that this package belongs to; its go.mod marks the root of the work tree.
const modulePath = "github.com/flight-operator/flight-operator"

// Root returns the root of the work tree, searched upwards from the working directory. `go test` runs a test in the
// folder of its package, so every test finds it. The error says where the search began.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	line := regexp.MustCompile(`(?m)^module ` + regexp.QuoteMeta(modulePath) + `\s*$`)
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && line.Match(text) {
			return dir, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("read the go.mod of %s: %w", dir, err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside the work tree of %s: run this from there", start, modulePath)
		}
	}
}
