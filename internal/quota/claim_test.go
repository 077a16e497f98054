package quota_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flight-operator/flight-operator/internal/quota"
)

// seats is a claim on a limit of 10.
func seats(amount int64) quota.Claim {
	return quota.Claim{
		Policy: "seats", PolicyUID: "p", PolicyGeneration: 1, Key: "2027-03", Scope: quota.Namespace, Amount: amount, Limit: 10,
	}
}

// with is a claim with something else in it.
func with(c quota.Claim, change func(*quota.Claim)) quota.Claim {
	change(&c)
	return c
}

func TestClaimsOfOneBucketAreSummed(t *testing.T) {
	wide := with(seats(3), func(c *quota.Claim) { c.Scope = quota.Cluster })
	april := with(seats(4), func(c *quota.Claim) { c.Key = "2027-04" })
	got, err := quota.Sum([]quota.Claim{seats(1), april, seats(2), wide})
	if err != nil {
		t.Fatal(err)
	}
	amounts := map[string]int64{}
	for _, c := range got {
		amounts[string(c.Scope)+" "+c.Key] = c.Amount
	}
	if len(got) != 3 || amounts["Namespace 2027-03"] != 3 || amounts["Namespace 2027-04"] != 4 || amounts["Cluster 2027-03"] != 3 {
		t.Errorf("the sums are %v", amounts)
	}
	if !slices.IsSortedFunc(got, func(a, b quota.Claim) int { return strings.Compare(a.Bucket(), b.Bucket()) }) {
		t.Error("the sums are not in the order of their buckets")
	}
}

func TestWrongClaimsAreErrorsOfTheirPolicy(t *testing.T) {
	for _, test := range []struct {
		name   string
		claims []quota.Claim
		want   string
	}{
		{"two limits", []quota.Claim{seats(1), with(seats(1), func(c *quota.Claim) { c.Limit = 9 })}, "has two limits, 9 and 10"},
		{"two windows", []quota.Claim{seats(1), with(seats(1), func(c *quota.Claim) { c.Resets = time.Unix(1, 0) })}, "two values of resets"},
		{"two values of retain", []quota.Claim{seats(1), with(seats(1), func(c *quota.Claim) { c.Retain = true })}, "two values of retain"},
		{"two warnings", []quota.Claim{seats(1), with(seats(1), func(c *quota.Claim) { c.WarnAt = 1 })}, "two values of warn_at"},
		{"two generations", []quota.Claim{seats(1), with(seats(1), func(c *quota.Claim) { c.PolicyGeneration = 2 })}, "two generations"},
		{"a sum beyond 2^53", []quota.Claim{seats(quota.MaxAmount), seats(1)}, "add up to more than 2^53"},
		{"an amount beyond 2^53", []quota.Claim{seats(quota.MaxAmount + 1)}, "amount 9007199254740993 is not between 0 and 2^53"},
		{"an amount below 0", []quota.Claim{seats(-1)}, "amount -1 is not"},
		{"a limit below 0", []quota.Claim{with(seats(1), func(c *quota.Claim) { c.Limit = -1 })}, "limit -1 is not"},
		{"a warning below 0", []quota.Claim{with(seats(1), func(c *quota.Claim) { c.WarnAt = -1 })}, "warn_at -1 is not"},
		{"no key", []quota.Claim{with(seats(1), func(c *quota.Claim) { c.Key = "" })}, "the key is empty"},
		{"an endless key", []quota.Claim{with(seats(1), func(c *quota.Claim) { c.Key = strings.Repeat("x", 254) })}, "the key has 254 bytes"},
		{"a key of two lines", []quota.Claim{with(seats(1), func(c *quota.Claim) { c.Key = "a\nb" })}, "a control character"},
		{"a key that turns text around", []quota.Claim{with(seats(1), func(c *quota.Claim) { c.Key = "a\u202e" })}, "a control character"},
		{"a key that is no text", []quota.Claim{with(seats(1), func(c *quota.Claim) { c.Key = "\xff" })}, "a control character"},
		{"a scope that is none", []quota.Claim{with(seats(1), func(c *quota.Claim) { c.Scope = "Team" })}, `scope "Team" is none`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := quota.Sum(test.claims)
			var wrong *quota.ClaimError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestBucketsOfDifferentQuotasHaveDifferentNames(t *testing.T) {
	seen := map[string]string{}
	for _, parts := range [][3]string{
		{"p", "Namespace", "k"}, {"p", "Cluster", "k"}, {"q", "Namespace", "k"}, {"p", "Namespace", "K"},
		{"pN", "amespace", "k"}, {"p", "Namespac", "ek"}, {"p", "Namespacek", ""},
	} {
		name := quota.BucketName(types.UID(parts[0]), quota.Scope(parts[1]), parts[2])
		if other, taken := seen[name]; taken || len(name) != 32 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz234567") != "" {
			t.Errorf("%v has the name %s, like %s", parts, name, other)
		}
		seen[name] = strings.Join(parts[:], "/")
	}
	if got := seats(0).Place("team", "system").Namespace; got != "team" {
		t.Errorf("a bucket of scope Namespace is in %s", got)
	}
	if got := with(seats(0), func(c *quota.Claim) { c.Scope = quota.Cluster }).Place("team", "system").Namespace; got != "system" {
		t.Errorf("a bucket of scope Cluster is in %s", got)
	}
}

func TestOnlyRaisesAreReserved(t *testing.T) {
	april := with(seats(1), func(c *quota.Claim) { c.Key = "2027-04" })
	for _, test := range []struct {
		name        string
		claims, old []quota.Claim
		amount, was int64 // of the only reservation; amount 0: none
	}{
		{"a new ticket", []quota.Claim{seats(3)}, nil, 3, 0},
		{"a new ticket that takes nothing", []quota.Claim{seats(0)}, nil, 0, 0},
		{"more", []quota.Claim{seats(3)}, []quota.Claim{seats(2)}, 3, 2},
		{"as much", []quota.Claim{seats(3)}, []quota.Claim{seats(3)}, 0, 0},
		{"less", []quota.Claim{seats(1)}, []quota.Claim{seats(3)}, 0, 0},
		{"nothing any more", nil, []quota.Claim{seats(3)}, 0, 0},
		{"another month", []quota.Claim{april}, []quota.Claim{seats(3)}, 1, 0},
		{"as much in two elements", []quota.Claim{seats(1), seats(2)}, []quota.Claim{seats(2), seats(1)}, 0, 0},
		{"what was stored can't be summed", []quota.Claim{seats(1)}, []quota.Claim{seats(9), with(seats(9), func(c *quota.Claim) { c.Limit = 1 })}, 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := quota.Review{Claims: test.claims, Old: test.old}.Reservations("n")
			switch {
			case err != nil:
				t.Error(err)
			case test.amount == 0 && len(got) > 0:
				t.Errorf("reserves %v", got)
			case test.amount > 0 && (len(got) != 1 || got[0].Amount != test.amount || got[0].Old != test.was || got[0].Nonce != "n"):
				t.Errorf("reserves %v, want %d in place of %d", got, test.amount, test.was)
			}
		})
	}
	if _, err := (quota.Review{Claims: []quota.Claim{seats(-1)}}).Reservations("n"); err == nil {
		t.Error("a claim below 0 was reserved")
	}
}
