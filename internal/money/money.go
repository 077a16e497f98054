// Package money holds amounts of one currency in integer minor units, as Rego and the ledger need them: Rego computes
// in big floats and JSON has no decimals.
//
// It knows ISO 4217 and nothing of flights.
package money

// Amount is an amount of one currency. The zero value is "no amount".
type Amount struct {
	// Minor is the number of minor units (cents for EUR, yen for JPY, fils for KWD), never negative.
	Minor int64 `json:"minor"`
	// Currency is the ISO 4217 code.
	Currency string `json:"currency"`
}

// Parse reads a decimal string. It fails on a currency that ISO 4217 lacks, on more decimals than the currency has
// (trailing zeros are fine), on signs, exponents and amounts over 2^53 minor units.
func Parse(amount, currency string) (Amount, error) { panic("to be written") }

// Decimal returns the amount in major units with the currency's own number of decimals, as in "99.50".
func (a Amount) Decimal() string { panic("to be written") }

// String returns amount and currency, as in "99.50 EUR".
func (a Amount) String() string { panic("to be written") }
