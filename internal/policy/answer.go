package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/flight-operator/flight-operator/internal/quota"
)

const (
	// maxMessageBytes bounds one message, and one value of details.
	maxMessageBytes = 1024
	// maxMessages bounds the denials, and the warnings, of one policy for one ticket.
	maxMessages = 20
)

// answer is what one policy said, within bounds.
type answer struct {
	denials  []Denial
	warnings []Warning
	holds    []string
	// claims are sorted by bucket; oldClaims are those of the old ticket.
	claims, oldClaims []quota.Claim
}

// read takes the contract rules out of a result. Anything but what the contract says is an error.
func (rev *revision) read(r topdown.QueryResult) (answer, error) {
	var a answer
	if denials, ok := r["deny"]; ok {
		err := each(denials, func(t *ast.Term) error {
			d, err := readDenial(t)
			d.Policy = rev.name
			a.denials = append(a.denials, d)
			return err
		})
		if err != nil {
			return answer{}, fmt.Errorf("deny: %w", err)
		}
	}
	warnings, err := readTexts(r, "warn")
	if err != nil {
		return answer{}, err
	}
	for _, message := range warnings {
		a.warnings = append(a.warnings, Warning{rev.name, message})
	}
	if a.holds, err = readTexts(r, string(RuleHold)); err != nil {
		return answer{}, err
	}
	if quotas, ok := r[ast.Var(RuleQuota)]; ok {
		if a.claims, err = rev.readClaims(quotas); err != nil {
			return answer{}, fmt.Errorf("%s: %w", RuleQuota, err)
		}
	}
	a.cap(rev.name)
	return a, nil
}

// cap bounds the number of messages. The text about the others sorts after them.
func (a *answer) cap(policy string) {
	if more := len(a.denials) - maxMessages; more > 0 {
		a.denials = append(a.denials[:maxMessages:maxMessages], Denial{Policy: policy, Message: fmt.Sprintf("…and %d more reasons", more)})
	}
	if more := len(a.holds) - maxMessages; more > 0 {
		a.holds = append(a.holds[:maxMessages:maxMessages], fmt.Sprintf("…and %d more reasons", more))
	}
	if more := len(a.warnings) - maxMessages; more > 0 {
		a.warnings = append(a.warnings[:maxMessages:maxMessages], Warning{policy, fmt.Sprintf("…and %d more warnings", more)})
	}
}

// readTexts reads a set of texts, in order; none when the policy has no such rule.
func readTexts(r topdown.QueryResult, rule string) ([]string, error) {
	set, ok := r[ast.Var(rule)]
	if !ok {
		return nil, nil
	}
	var texts []string
	err := each(set, func(t *ast.Term) error {
		text, err := readText(t)
		texts = append(texts, text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rule, err)
	}
	return texts, nil
}

// each visits the elements of a set in order.
func each(t *ast.Term, visit func(*ast.Term) error) error {
	set, ok := t.Value.(ast.Set)
	if !ok {
		return fmt.Errorf("it is no set but of type %s", ast.ValueName(t.Value))
	}
	return set.Iter(visit)
}

// readDenial reads an element of deny: a text, or an object of msg, code and details.
func readDenial(t *ast.Term) (Denial, error) {
	obj, ok := t.Value.(ast.Object)
	if !ok {
		message, err := readText(t)
		return Denial{Message: message}, err
	}
	var d Denial
	err := obj.Iter(func(k, v *ast.Term) (err error) {
		switch k.Value {
		case ast.String("msg"):
			d.Message, err = readText(v)
		case ast.String("code"):
			d.Code, err = readText(v)
		case ast.String("details"):
			d.Details, err = readDetails(v)
		default:
			err = fmt.Errorf("an element has the unknown field %v: there are msg, code and details", k)
		}
		return err
	})
	if err == nil && d.Message == "" {
		err = errors.New("an element has no msg")
	}
	return d, err
}

func readText(t *ast.Term) (string, error) {
	s, ok := t.Value.(ast.String)
	switch {
	case !ok:
		return "", fmt.Errorf("an element is of type %s where a text is due", ast.ValueName(t.Value))
	case strings.TrimSpace(string(s)) == "":
		return "", errors.New("an element is an empty text")
	}
	return shorten(string(s)), nil
}

// readDetails is the JSON of a value. One that is too long is left out: half of it would be none.
func readDetails(t *ast.Term) (string, error) {
	v, err := ast.JSON(t.Value)
	if err != nil {
		return "", fmt.Errorf("details: %w", err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("details: %w", err)
	}
	if len(raw) > maxMessageBytes {
		return "", nil
	}
	return string(raw), nil
}

// shorten cuts a text that is too long between two characters.
func shorten(s string) string {
	if len(s) <= maxMessageBytes {
		return s
	}
	const dots = "…"
	cut := maxMessageBytes - len(dots)
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + dots
}
