package v1

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// QuotaEntry is the claim of one admission review whose ticket is not counted yet. It is stored as one line of text, as in
//
//	team-a/trip uid=9b1d generation=1 policyGeneration=2 amount=5 settled=0 nonce=0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a
//
// since a write of a bucket costs the API server most by the number of its values: with 40 entries as objects it takes
// twice as long, with 100 three times.
//
// +kubebuilder:validation:MaxLength=600
// +kubebuilder:validation:Pattern=`^[^ /]{1,63}/[^ /]{1,253} uid=[^ ]{1,64} generation=[1-9][0-9]{0,18} policyGeneration=[1-9][0-9]{0,18} amount=[0-9]{1,16} settled=[0-9]{1,16} nonce=[0-9a-f]{32}$`
type QuotaEntry struct {
	// Nonce tells this review's entry from all others: 128 random bits in hex, made for one run of the webhook.
	Nonce string
	// Namespace, Name and UID are the ticket's.
	Namespace string
	Name      string
	UID       types.UID
	// Generation that the ticket has once what was reviewed is stored.
	Generation int64
	// PolicyGeneration is the generation of the policy that the amount was computed with.
	PolicyGeneration int64
	// Amount that the ticket claims in all, not what it adds.
	Amount int64
	// Settled is the part of the amount that used contains already, of an earlier generation of the ticket.
	Settled int64
}

// MarshalText writes the line.
func (e QuotaEntry) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%s/%s uid=%s generation=%d policyGeneration=%d amount=%d settled=%d nonce=%s",
		e.Namespace, e.Name, e.UID, e.Generation, e.PolicyGeneration, e.Amount, e.Settled, e.Nonce), nil
}

// UnmarshalText reads the line. Anything else is an error: an entry that is read as less than it is would be room for sale.
func (e *QuotaEntry) UnmarshalText(text []byte) error {
	var read QuotaEntry
	words := strings.Split(string(text), " ")
	ticket, words := words[0], words[1:]
	fields := []struct {
		name string
		set  func(string) error
	}{
		{"uid", func(v string) error { read.UID = types.UID(v); return nil }},
		{"generation", number(&read.Generation, math.MaxInt64)},
		{"policyGeneration", number(&read.PolicyGeneration, math.MaxInt64)},
		{"amount", number(&read.Amount, maxAmount)},
		{"settled", number(&read.Settled, maxAmount)},
		{"nonce", func(v string) error { read.Nonce = v; return nil }},
	}
	var named bool
	if read.Namespace, read.Name, named = strings.Cut(ticket, "/"); !named || len(words) != len(fields) {
		return fmt.Errorf("read a quota entry: %q is none", text)
	}
	for i, field := range fields {
		name, value, given := strings.Cut(words[i], "=")
		if !given || name != field.name || value == "" {
			return fmt.Errorf("read a quota entry: %q has no %s where it should be", text, field.name)
		}
		if err := field.set(value); err != nil {
			return fmt.Errorf("read a quota entry: %s of %q: %w", field.name, text, err)
		}
	}
	*e = read
	return nil
}

// maxAmount is the largest amount, as in the other fields of a bucket: beyond 2^53 a sum of entries could overflow.
const maxAmount = 1 << 53

func number(into *int64, most int64) func(string) error {
	return func(digits string) (err error) {
		if *into, err = strconv.ParseInt(digits, 10, 64); err == nil && (*into < 0 || *into > most) {
			err = fmt.Errorf("%d is not between 0 and %d", *into, most)
		}
		return err
	}
}
