package policy

import (
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/flight-operator/flight-operator/internal/quota"
)

const (
	// maxBuckets bounds the keys that one policy charges one ticket to: each is a write.
	maxBuckets = 20
	// maxElements bounds what one policy may sum up for one ticket.
	maxElements = 1000
	// maxDigits bounds the text of a number before it is read.
	maxDigits = 100
)

// readClaims reads the set quota: each element by itself, then those of one key as one. They are sorted by bucket.
func (rev *revision) readClaims(t *ast.Term) ([]quota.Claim, error) {
	var claims []quota.Claim
	err := each(t, func(t *ast.Term) error {
		c, err := readClaim(t)
		if err != nil {
			return err
		}
		if len(claims) == maxElements {
			return fmt.Errorf("it has more than %d elements", maxElements)
		}
		c.Policy, c.PolicyUID, c.PolicyGeneration = rev.name, rev.uid, rev.generation
		claims = append(claims, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	sums, err := quota.Sum(claims)
	var wrong *quota.ClaimError
	switch {
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("key %q: %s", shorten(wrong.Key), wrong.Problem)
	case err != nil:
		return nil, err
	case len(sums) > maxBuckets:
		return nil, fmt.Errorf("it has more than %d keys for one ticket", maxBuckets)
	}
	return sums, nil
}

func readClaim(t *ast.Term) (quota.Claim, error) {
	obj, ok := t.Value.(ast.Object)
	rule, _ := contractRuleOf(string(RuleQuota))
	if !ok {
		return quota.Claim{}, fmt.Errorf("an element is of type %s where %s is due", ast.ValueName(t.Value), rule.shape())
	}
	var c quota.Claim
	err := obj.Iter(func(k, v *ast.Term) error {
		if err := readClaimField(&c, k, v); err != nil {
			return fmt.Errorf("%s %w", keyText(k), err)
		}
		return nil
	})
	if err != nil {
		return quota.Claim{}, err
	}
	return c, rule.complete(obj)
}

func readClaimField(c *quota.Claim, k, v *ast.Term) (err error) {
	switch k.Value {
	case ast.String("key"):
		c.Key, err = readString(v)
	case ast.String("scope"):
		var scope string
		scope, err = readString(v)
		c.Scope = quota.Scope(scope)
	case ast.String("amount"):
		c.Amount, err = readAmount(v)
	case ast.String("limit"):
		c.Limit, err = readAmount(v)
	case ast.String("resets"):
		c.Resets, err = readTime(v)
	case ast.String("retain"):
		c.Retain, err = readBoolean(v)
	case ast.String("warn_at"):
		c.WarnAt, err = readAmount(v)
	default:
		rule, _ := contractRuleOf(string(RuleQuota))
		return fmt.Errorf("is a field that an element doesn't have: there are %s", listed(rule.fieldNames()))
	}
	return err
}

// keyText is the name of a field as an author wrote it.
func keyText(k *ast.Term) string {
	if s, ok := k.Value.(ast.String); ok {
		return shorten(string(s))
	}
	return shorten(k.String())
}

// complete refuses an object that lacks a field.
func (c contractRule) complete(obj ast.Object) error {
	for _, f := range c.fields {
		if f.required && obj.Get(ast.InternedTerm(f.name)) == nil {
			return fmt.Errorf("an element has no %s", f.name)
		}
	}
	return nil
}

// readAmount reads an integer from 0 to 2^53. Rego computes in big floats and may write one in any form.
func readAmount(t *ast.Term) (int64, error) {
	n, ok := t.Value.(ast.Number)
	if !ok {
		return 0, fmt.Errorf("is of type %s where a number is due", ast.ValueName(t.Value))
	}
	if len(n) > maxDigits {
		return 0, fmt.Errorf("has more than %d digits: it must be an integer from 0 to 2^53", maxDigits)
	}
	exact, _, err := big.ParseFloat(string(n), 10, 4*maxDigits, big.ToNearestEven)
	if err != nil || !exact.IsInt() || exact.Sign() < 0 || exact.Cmp(big.NewFloat(quota.MaxAmount)) > 0 {
		return 0, fmt.Errorf("is %s: it must be an integer from 0 to 2^53", n)
	}
	amount, _ := exact.Int64()
	return amount, nil
}

func readString(t *ast.Term) (string, error) {
	s, ok := t.Value.(ast.String)
	if !ok {
		return "", fmt.Errorf("is of type %s where a text is due", ast.ValueName(t.Value))
	}
	return string(s), nil
}

func readTime(t *ast.Term) (time.Time, error) {
	s, err := readString(t)
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("is %q: it must be a time in the form of RFC 3339, as in \"2027-04-01T00:00:00Z\"", shorten(s))
	}
	return at.UTC(), nil
}

func readBoolean(t *ast.Term) (bool, error) {
	b, ok := t.Value.(ast.Boolean)
	if !ok {
		return false, fmt.Errorf("is of type %s where a boolean is due", ast.ValueName(t.Value))
	}
	return bool(b), nil
}
