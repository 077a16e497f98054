package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/util/validation"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// When says when a patch sets its value.
type When string

// The moments of a patch.
const (
	// WhenAbsent sets what the ticket doesn't have.
	WhenAbsent When = "absent"
	// WhenAlways sets it whatever the ticket has.
	WhenAlways When = "always"
)

// Patch is one field that a policy sets in a ticket.
type Patch struct {
	Policy string
	// Path is a JSON pointer that a policy may set: a field of /spec other than from, to and number, or a label that isn't
	// ours.
	Path string
	// Value is JSON.
	Value string
	When  When
}

const (
	specPath   = "/spec/"
	labelsPath = "/metadata/labels/"
	// ourLabels are those that the webhook sets.
	ourLabels = "flights.com/"
	// maxPatches bounds what one policy may set in one ticket.
	maxPatches = 20
)

// patchable are the fields of a spec that policies may set. What a user can't leave out is the user's.
var patchable = []string{"cabin", "costCenter", "deletionPolicy", "departureDate", "maxPrice", "passengers", "providerRef", "returnDate", "suspend"}

// defaultedFields have a default, and so are never absent.
var defaultedFields = []string{"deletionPolicy", "suspend"}

// readPatches reads the set mutate.
func (rev *revision) readPatches(t *ast.Term) ([]Patch, error) {
	var patches []Patch
	err := each(t, func(t *ast.Term) error {
		p, err := readPatch(t)
		if err != nil {
			return err
		}
		if len(patches) == maxPatches {
			return fmt.Errorf("it sets more than %d fields", maxPatches)
		}
		p.Policy = rev.name
		patches = append(patches, p)
		return nil
	})
	return patches, err
}

func readPatch(t *ast.Term) (Patch, error) {
	obj, ok := t.Value.(ast.Object)
	rule, _ := contractRuleOf(string(RuleMutate))
	if !ok {
		return Patch{}, fmt.Errorf("an element is of type %s where %s is due", ast.ValueName(t.Value), rule.shape())
	}
	var p Patch
	err := obj.Iter(func(k, v *ast.Term) (err error) {
		switch k.Value {
		case ast.String("path"):
			p.Path, err = readString(v)
		case ast.String("value"):
			p.Value, err = readJSON(v)
		case ast.String("when"):
			var when string
			when, err = readString(v)
			p.When = When(when)
		default:
			err = fmt.Errorf("is a field that an element doesn't have: there are %s", listed(rule.fieldNames()))
		}
		if err != nil {
			return fmt.Errorf("%s %w", keyText(k), err)
		}
		return nil
	})
	if err == nil {
		err = rule.complete(obj)
	}
	if err == nil {
		err = p.check()
	}
	return p, err
}

func readJSON(t *ast.Term) (string, error) {
	v, err := ast.JSON(t.Value)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return string(raw), nil
}

// check says what is wrong with a patch by itself.
func (p Patch) check() error {
	if p.When != WhenAbsent && p.When != WhenAlways {
		return fmt.Errorf("when is %q: it is %s or %s", shorten(string(p.When)), WhenAbsent, WhenAlways)
	}
	if p.Value == "null" {
		return fmt.Errorf("value of %s is null: a field can be set, not removed", shorten(p.Path))
	}
	if key, isLabel := p.label(); isLabel {
		return p.checkLabel(key)
	}
	name, isSpec := strings.CutPrefix(p.Path, specPath)
	switch {
	case !isSpec:
		return fmt.Errorf("path %q may not be set: it is /spec/ and a field, or /metadata/labels/ and a label", shorten(p.Path))
	case !slices.Contains(patchable, name):
		return fmt.Errorf("path %q may not be set%s: of spec, there are %s", shorten(p.Path), didYouMean(name, patchable), listed(patchable))
	}
	return decodeStrictly(map[string]json.RawMessage{name: json.RawMessage(p.Value)}, &flightsv1.FlightTicketSpec{})
}

func (p Patch) checkLabel(key string) error {
	if strings.HasPrefix(key, ourLabels) {
		return fmt.Errorf("label %q may not be set: those of %s are the webhook's", key, ourLabels)
	}
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return fmt.Errorf("%q is no name of a label: %s", shorten(key), strings.Join(wrong, ", "))
	}
	value, err := p.text()
	if err != nil {
		return err
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		return fmt.Errorf("%q is no value of label %s: %s", shorten(value), key, strings.Join(wrong, ", "))
	}
	return nil
}

// label is the key of the label that a patch sets, if it sets one.
func (p Patch) label() (string, bool) {
	key, is := strings.CutPrefix(p.Path, labelsPath)
	return unescaped(key), is
}

// text is a value that is a text.
func (p Patch) text() (string, error) {
	var value string
	if err := json.Unmarshal([]byte(p.Value), &value); err != nil {
		return "", fmt.Errorf("value of %s is %s where a text is due", p.Path, shorten(p.Value))
	}
	return value, nil
}

// decodeStrictly puts a value into another form, which must have all its fields.
func decodeStrictly(from, into any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("value doesn't fit the ticket: %w", err)
	}
	return nil
}

// joinPatches sorts patches by path and drops repeats. Two values for one path are an error, also of two policies, and
// whether or not the ticket has the field: whose came first would decide otherwise.
func joinPatches(patches []Patch) ([]Patch, []patchConflict) {
	sorted := slices.SortedFunc(slices.Values(patches), func(a, b Patch) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(b.When, a.When), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Value, b.Value))
	})
	var joined []Patch
	var conflicts []patchConflict
	for _, p := range sorted {
		if len(joined) == 0 || joined[len(joined)-1].Path != p.Path {
			joined = append(joined, p)
			continue
		}
		if first := joined[len(joined)-1]; first.Value != p.Value {
			conflicts = append(conflicts, patchConflict{p.Path, [2]string{first.Policy, p.Policy}})
		}
	}
	return joined, conflicts
}

// patchConflict is a path that is given two values, by one policy or by two.
type patchConflict struct {
	Path     string
	Policies [2]string
}

// Error names the policies.
func (c patchConflict) Error() string {
	if c.Policies[0] == c.Policies[1] {
		return fmt.Sprintf("it gives %s two values", c.Path)
	}
	return fmt.Sprintf("the policies %s and %s give %s two values", c.Policies[0], c.Policies[1], c.Path)
}

// ApplyPatches returns a ticket with some fields set, and the patches that changed something. The patches must be those
// of one Decision. It never changes t.
func ApplyPatches(t *flightsv1.FlightTicket, patches []Patch) (*flightsv1.FlightTicket, []Patch, error) {
	out := t.DeepCopy()
	var changed []Patch
	for _, p := range patches {
		is, err := p.apply(out)
		if err != nil {
			return nil, nil, fmt.Errorf("set %s as policy %s wants it: %w", p.Path, p.Policy, err)
		}
		if is {
			changed = append(changed, p)
		}
	}
	return out, changed, nil
}

// apply sets the field and says whether that changed something.
func (p Patch) apply(t *flightsv1.FlightTicket) (bool, error) {
	if err := p.check(); err != nil {
		return false, err
	}
	if key, isLabel := p.label(); isLabel {
		value, err := p.text()
		before, has := t.Labels[key]
		if err != nil || has && (p.When == WhenAbsent || before == value) {
			return false, err
		}
		if t.Labels == nil {
			t.Labels = map[string]string{}
		}
		t.Labels[key] = value
		return true, nil
	}
	return p.applySpec(t)
}

func (p Patch) applySpec(t *flightsv1.FlightTicket) (bool, error) {
	name := strings.TrimPrefix(p.Path, specPath)
	before, err := specMembers(t.Spec)
	if err != nil {
		return false, err
	}
	if _, has := before[name]; p.When == WhenAbsent && (has || slices.Contains(defaultedFields, name)) {
		return false, nil
	}
	after, err := specMembers(t.Spec)
	if err != nil {
		return false, err
	}
	after[name] = json.RawMessage(p.Value)
	var spec flightsv1.FlightTicketSpec
	if err := decodeStrictly(after, &spec); err != nil {
		return false, err
	}
	t.Spec = spec
	normal, err := specMembers(spec)
	if err != nil {
		return false, err
	}
	return !bytes.Equal(normal[name], before[name]), nil
}

// specMembers are the fields that a spec has.
func specMembers(spec flightsv1.FlightTicketSpec) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	return members, nil
}

// errUnstable says that a second evaluation would set something else than the first.
var errUnstable = errors.New("it would change the ticket each time that it is asked: its value must not depend on what it sets")
