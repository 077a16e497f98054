// Package money holds amounts of one currency in integer minor units, as Rego and the ledger need them: Rego computes
// in big floats and JSON has no decimals.
//
// It knows ISO 4217 and nothing of flights. It must not know exchange rates: amounts of two currencies have no order.
package money

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/bojanz/currency"
)

const (
	// maxMinor is the largest integer that a float64, and so any JSON reader, holds without loss.
	maxMinor = 1 << 53
	// maxDigits bounds the text of an amount. It is far above maxMinor in any currency and within the precision that
	// the decimal library computes with, so that nothing is rounded before the limit is checked.
	maxDigits = 32
)

// Amount is an amount of one currency. The zero value is "no amount".
type Amount struct {
	// Minor is the number of minor units (cents for EUR, yen for JPY, fils for KWD), never negative.
	Minor int64 `json:"minor"`
	// Currency is the ISO 4217 code.
	Currency string `json:"currency"`
}

// Parse reads a decimal string. It fails on a currency that ISO 4217 lacks, on more decimals than the currency has
// (trailing zeros are fine), on signs, exponents and amounts over 2^53 minor units.
func Parse(amount, currencyCode string) (Amount, error) {
	digits, ok := currency.GetDigits(currencyCode)
	if !ok {
		return Amount{}, fmt.Errorf("currency %s is not in ISO 4217: use a code of three capital letters, as in EUR",
			quote(currencyCode))
	}
	if !isPlainDecimal(amount) {
		return Amount{}, fmt.Errorf("amount %s is not a plain decimal number of at most %d characters: use digits with an optional point, as in 99.50",
			quote(amount), maxDigits)
	}
	exact, err := currency.NewAmount(amount, currencyCode)
	if err != nil {
		return Amount{}, fmt.Errorf("read amount: %w", err)
	}
	rounded := exact.Round()
	if !rounded.Equal(exact) {
		return Amount{}, fmt.Errorf("amount %s has more decimals than %s has: use at most %d", quote(amount), currencyCode, digits)
	}
	minor, err := rounded.Int64()
	if err != nil || minor > maxMinor {
		return Amount{}, fmt.Errorf("amount %s is above the largest that can be held, %s", quote(amount),
			Amount{Minor: maxMinor, Currency: currencyCode})
	}
	return Amount{Minor: minor, Currency: currencyCode}, nil
}

// IsZero reports whether a is the zero value, "no amount". Zero euros are an amount.
func (a Amount) IsZero() bool { return a == Amount{} }

// Decimal returns the amount in major units with the currency's own number of decimals, as in "99.50". It returns ""
// for "no amount" and for a currency that ISO 4217 lacks, whose minor unit nobody knows: a reader of decimals refuses
// that, where a guess could be wrong by a factor of a hundred.
func (a Amount) Decimal() string {
	decimal, err := currency.NewAmountFromInt64(a.Minor, a.Currency)
	if err != nil {
		return ""
	}
	return decimal.Number()
}

// String returns amount and currency, as in "99.50 EUR".
func (a Amount) String() string {
	if a.IsZero() {
		return "no amount"
	}
	decimal := a.Decimal()
	if decimal == "" {
		return fmt.Sprintf("%d minor units of the unknown currency %s", a.Minor, quote(a.Currency))
	}
	return decimal + " " + a.Currency
}

// MismatchError says that two amounts can't be compared, since their currencies differ or one is no amount.
type MismatchError struct{ A, B Amount }

// Error says what is wrong and what to do.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s and %s can't be compared: give both amounts in one currency", e.A, e.B)
}

// Compare returns -1, 0 or 1 as a is less than, equal to or more than b. It fails with *MismatchError unless both are
// amounts of one currency.
func Compare(a, b Amount) (int, error) {
	if a.Currency != b.Currency || a.Currency == "" {
		return 0, &MismatchError{A: a, B: b}
	}
	return cmp.Compare(a.Minor, b.Minor), nil
}

// isPlainDecimal reports whether text is ASCII digits with at most one point that has digits on both sides. The
// decimal library reads exponents, signs and NaN too, which have no place in a price.
func isPlainDecimal(text string) bool {
	if text == "" || len(text) > maxDigits {
		return false
	}
	points := 0
	for i, c := range []byte(text) {
		switch {
		case c >= '0' && c <= '9':
		case c == '.' && points == 0 && i > 0 && i < len(text)-1:
			points++
		default:
			return false
		}
	}
	return true
}

// quote quotes foreign text for a message and cuts it, so that a message stays short and has no control characters.
func quote(text string) string {
	if len(text) > maxDigits {
		text = text[:maxDigits] + "..."
	}
	return strconv.QuoteToASCII(text)
}
