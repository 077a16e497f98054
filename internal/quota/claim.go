package quota

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

const (
	// MaxAmount is the largest amount and limit: the largest integer up to which a float64, and so any JSON reader and
	// Rego, holds every integer without loss.
	MaxAmount = 1 << 53
	// MaxKey is the longest key, in bytes.
	MaxKey = 253
)

// Scope says how far the buckets of a claim reach.
type Scope = flightsv1.QuotaScope

// The scopes of a claim.
const (
	// Namespace is one bucket a key and namespace, in the ticket's namespace.
	Namespace = flightsv1.QuotaScopeNamespace
	// Cluster is one bucket a key, in the operator's namespace.
	Cluster = flightsv1.QuotaScopeCluster
)

// Claim is what one ticket charges to one bucket under one quota policy.
type Claim struct {
	// Policy is the name of the FlightPolicy, for people.
	Policy string
	// PolicyUID tells the policy from a later one of the same name, whose buckets are others.
	PolicyUID types.UID
	// PolicyGeneration is the generation of the policy that the claim was computed with.
	PolicyGeneration int64
	// Key is the policy's name for what is counted, as in "2027-03" or "cost-center/4711".
	Key string
	// Scope is Namespace or Cluster.
	Scope Scope
	// Amount is what the ticket takes, from 0 to MaxAmount, in the policy's unit.
	Amount int64
	// Limit is what all tickets together may take, from 0 to MaxAmount.
	Limit int64
	// Resets is when the quota's window ends; zero: never.
	Resets time.Time
	// Retain says that the amount outlives its ticket if that had a booking.
	Retain bool
	// WarnAt is the held amount from which a ticket is admitted with a warning; 0: never.
	WarnAt int64
}

// ClaimError says what is wrong with the claims of a policy. It is an error of the policy's author, not of the user.
type ClaimError struct {
	// Policy is the policy's name.
	Policy string
	// Key is the claim's key, as the policy gave it.
	Key string
	// Problem says what is wrong and what to do.
	Problem string
}

func (e *ClaimError) Error() string {
	return fmt.Sprintf("policy %s, quota key %q: %s", e.Policy, e.Key, e.Problem)
}

// Check says what is wrong with a claim by itself, as a *ClaimError.
func (c Claim) Check() error {
	problem := ""
	switch {
	case c.Key == "":
		problem = "the key is empty: name what is counted, as in \"2027-03\""
	case len(c.Key) > MaxKey:
		problem = fmt.Sprintf("the key has %d bytes: use at most %d", len(c.Key), MaxKey)
	case !utf8.ValidString(c.Key) || strings.ContainsFunc(c.Key, func(r rune) bool { return !unicode.IsPrint(r) }):
		problem = "the key holds a control character or a line break: use printable text"
	case c.Scope != Namespace && c.Scope != Cluster:
		problem = fmt.Sprintf("scope %q is none: use %q or %q", c.Scope, Namespace, Cluster)
	case !holdable(c.Amount):
		problem = fmt.Sprintf("amount %d is not between 0 and 2^53", c.Amount)
	case !holdable(c.Limit):
		problem = fmt.Sprintf("limit %d is not between 0 and 2^53", c.Limit)
	case !holdable(c.WarnAt):
		problem = fmt.Sprintf("warn_at %d is not between 0 and 2^53", c.WarnAt)
	default:
		return nil
	}
	return &ClaimError{Policy: c.Policy, Key: c.Key, Problem: problem}
}

// Bucket is the name of the claim's bucket.
func (c Claim) Bucket() string { return BucketName(c.PolicyUID, c.Scope, c.Key) }

// Place is the claim's bucket, for a ticket in a namespace and an operator that lives in another.
func (c Claim) Place(ticketNamespace, operatorNamespace string) types.NamespacedName {
	place := types.NamespacedName{Namespace: ticketNamespace, Name: c.Bucket()}
	if c.Scope == Cluster {
		place.Namespace = operatorNamespace
	}
	return place
}

// BucketName is a hash of what a bucket is for. Keys can be chosen by users, so the hash has 160 bits: nobody finds two
// keys that share a bucket.
func BucketName(policy types.UID, scope Scope, key string) string {
	hash := sha256.New()
	for _, part := range []string{string(policy), string(scope), key} {
		// Each part is led by its length, so that no two triples give the same bytes.
		_ = binary.Write(hash, binary.BigEndian, uint64(len(part))) // a hash never fails
		_, _ = hash.Write([]byte(part))
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(hash.Sum(nil)[:20]))
}

// Sum adds up the claims that share a bucket and returns one a bucket, in the order of the buckets' names, in which
// buckets are to be written (rule 6). Claims of one bucket that disagree in anything but the amount are an error of the
// policy (*ClaimError), and so is a sum above MaxAmount.
func Sum(claims []Claim) ([]Claim, error) {
	sums := map[string]Claim{}
	for _, c := range claims {
		if err := c.Check(); err != nil {
			return nil, err
		}
		name := c.Bucket()
		sum, found := sums[name]
		if !found {
			sums[name] = c
			continue
		}
		if problem := disagreement(sum, c); problem != "" {
			return nil, &ClaimError{Policy: c.Policy, Key: c.Key, Problem: problem}
		}
		if sum.Amount = plus(sum.Amount, c.Amount); !holdable(sum.Amount) {
			return nil, &ClaimError{Policy: c.Policy, Key: c.Key, Problem: "the amounts of one ticket add up to more than 2^53"}
		}
		sums[name] = sum
	}
	list := make([]Claim, 0, len(sums))
	for _, c := range sums {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Claim) int { return cmp.Compare(a.Bucket(), b.Bucket()) })
	return list, nil
}

// disagreement says in what two claims of one bucket differ that must not; empty if in nothing.
func disagreement(a, b Claim) string {
	switch {
	case a.Limit != b.Limit:
		return fmt.Sprintf("has two limits, %d and %d: give each key one limit", min(a.Limit, b.Limit), max(a.Limit, b.Limit))
	case !a.Resets.Equal(b.Resets):
		return "has two values of resets: give each key one"
	case a.Retain != b.Retain:
		return "has two values of retain: give each key one"
	case a.WarnAt != b.WarnAt:
		return "has two values of warn_at: give each key one"
	case a.PolicyGeneration != b.PolicyGeneration:
		return "was computed with two generations of the policy: try again"
	}
	return ""
}

// overfull is what a sum above MaxAmount becomes: more than any limit, however much is added.
const overfull = MaxAmount + 1

func holdable(n int64) bool { return 0 <= n && n <= MaxAmount }

// plus adds two amounts. What doesn't fit stays overfull, so that no sum wraps around into room.
func plus(a, b int64) int64 { return min(a+b, overfull) }
