package policy

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/flight-operator/flight-operator/policies"
)

// Library lists the names of the shipped policies, sorted.
func Library() []string {
	entries, err := fs.ReadDir(policies.FS, ".")
	if err != nil {
		panic(fmt.Sprintf("read the embedded policies: %v", err)) //nolint:forbidigo // an embed.FS always has its root
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// LibrarySource returns the Rego text of a shipped policy, and whether there is one of that name.
func LibrarySource(name string) (string, bool) {
	if name == "" || strings.ContainsAny(name, "/.") {
		return "", false
	}
	source, err := fs.ReadFile(policies.FS, name+"/"+name+".rego")
	return string(source), err == nil
}

func librarySource(name string) (string, *Problem) {
	source, ok := LibrarySource(name)
	if ok {
		return source, nil
	}
	shipped := Library()
	message := fmt.Sprintf("no policy named %q is shipped%s; there are: %s", name, didYouMean(name, shipped),
		strings.Join(shipped, ", "))
	return "", &Problem{Field: specLibrary, Message: message}
}
