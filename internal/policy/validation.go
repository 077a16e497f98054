package policy

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// validationProblems words what is wrong with parameters. It flattens a tree of causes to its leaves, which are the ones
// that say something, and adds what the schema says of the place: a pattern alone tells nobody what to write.
func validationProblems(schema map[string]any, e *jsonschema.ValidationError) []Problem {
	var problems []Problem
	for _, leaf := range leaves(e) {
		at, about := located(schema, leaf.SchemaURL)
		text := localized(leaf)
		if extra, is := leaf.ErrorKind.(*kind.AdditionalProperties); is {
			text = unknownParameters(extra.Properties, inputFields{schema}.names(at))
		}
		if about != "" {
			text += " (" + about + ")"
		}
		problems = append(problems, Problem{Field: parameterPath(leaf.InstanceLocation), Message: text})
	}
	return problems
}

func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
	}
	return all
}

func localized(e *jsonschema.ValidationError) string {
	return e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
}

// unknownParameters says which names are unknown and which ones there are.
func unknownParameters(unknown, known []string) string {
	words := make([]string, len(unknown))
	for i, name := range unknown {
		words[i] = fmt.Sprintf("%q%s", name, didYouMean(name, known))
	}
	slices.Sort(words)
	return fmt.Sprintf("there is no %s; there are: %s", strings.Join(words, " and no "), strings.Join(known, ", "))
}

// located is the part of a schema at a place, and the nearest description on the way there.
func located(schema map[string]any, location string) (at map[string]any, about string) {
	_, fragment, _ := strings.Cut(location, "#")
	pointer, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, ""
	}
	var value any = schema
	for _, token := range strings.Split(pointer, "/")[1:] {
		switch v := value.(type) {
		case map[string]any:
			value = v[unescaped(token)]
		default:
			return nil, about
		}
		if m, isObject := value.(map[string]any); isObject {
			if text, ok := m["description"].(string); ok {
				about = strings.TrimSuffix(strings.TrimSpace(text), ".")
			}
		}
	}
	at, _ = value.(map[string]any)
	return at, about
}

// schemaError words what is wrong with a schema of parameters itself.
func schemaError(e *jsonschema.SchemaValidationError) error {
	var invalid *jsonschema.ValidationError
	if !errors.As(e.Err, &invalid) {
		return fmt.Errorf("is no JSON schema: %w", e.Err)
	}
	var texts []string
	for _, leaf := range leaves(invalid) {
		texts = append(texts, fmt.Sprintf("%s: %s", strings.Join(leaf.InstanceLocation, "."), localized(leaf)))
	}
	slices.Sort(texts)
	return fmt.Errorf("is no JSON schema: %s", strings.Join(slices.Compact(texts), "; "))
}
