package money

import (
	"errors"
	"strings"
	"testing"

	"github.com/bojanz/currency"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name, amount, currency string
		want                   Amount
		decimal                string
	}{
		{"whole euros get cents", "120", "EUR", Amount{12000, "EUR"}, "120.00"},
		{"one decimal is tens of cents", "99.5", "EUR", Amount{9950, "EUR"}, "99.50"},
		{"trailing zeros beyond the cents are fine", "99.5000", "EUR", Amount{9950, "EUR"}, "99.50"},
		{"leading zeros are fine", "00001.10", "EUR", Amount{110, "EUR"}, "1.10"},
		{"a cent is not lost as in binary floats", "1.15", "USD", Amount{115, "USD"}, "1.15"},
		{"the smallest amount", "0.01", "EUR", Amount{1, "EUR"}, "0.01"},
		{"zero is an amount", "0", "EUR", Amount{0, "EUR"}, "0.00"},
		{"yen have no minor unit", "120", "JPY", Amount{120, "JPY"}, "120"},
		{"yen with zero decimals", "120.00", "JPY", Amount{120, "JPY"}, "120"},
		{"dinars have a thousand fils", "1.005", "KWD", Amount{1005, "KWD"}, "1.005"},
		{"rupiah have two decimals in ISO 4217 though nobody writes them", "1.05", "IDR", Amount{105, "IDR"}, "1.05"},
		{"2^53 minor units", "90071992547409.92", "EUR", Amount{1 << 53, "EUR"}, "90071992547409.92"},
		{"many leading zeros", strings.Repeat("0", 31) + "1", "JPY", Amount{1, "JPY"}, "1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Parse(tc.amount, tc.currency)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Parse (-want +got):\n%s", diff)
			}
			if got.Decimal() != tc.decimal {
				t.Errorf("Decimal() = %q, want %q", got.Decimal(), tc.decimal)
			}
			if want := tc.decimal + " " + tc.currency; got.String() != want {
				t.Errorf("String() = %q, want %q", got, want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const notPlain = "is not a plain decimal number"
	for _, tc := range []struct{ name, amount, currency, want string }{
		{"nothing", "", "EUR", notPlain},
		{"an exponent", "1e9", "EUR", notPlain},
		{"a minus", "-1", "EUR", notPlain},
		{"a plus", "+1", "EUR", notPlain},
		{"a point without decimals", "1.", "EUR", notPlain},
		{"a point without a whole part", ".5", "EUR", notPlain},
		{"a point alone", ".", "EUR", notPlain},
		{"two points", "1.2.3", "EUR", notPlain},
		{"a comma", "1,50", "EUR", notPlain},
		{"an underscore", "1_000", "EUR", notPlain},
		{"white space", " 1", "EUR", notPlain},
		{"a line end", "1\n", "EUR", notPlain},
		{"NaN", "NaN", "EUR", notPlain},
		{"infinity", "Infinity", "EUR", notPlain},
		{"hexadecimal", "0x10", "EUR", notPlain},
		{"Arabic digits", "١٢", "EUR", notPlain},
		{"full-width digits", "\uff11\uff12", "EUR", notPlain},
		{"a null byte", "1\x00", "EUR", notPlain},
		{"invalid UTF-8", "1\xff", "EUR", notPlain},
		{"a megabyte of digits", strings.Repeat("9", 1<<20), "EUR", notPlain},
		{"half a cent", "1.005", "EUR", "more decimals than EUR has: use at most 2"},
		{"a tenth of a yen", "1.5", "JPY", "more decimals than JPY has: use at most 0"},
		{"a tenth of a fils", "1.0005", "KWD", "more decimals than KWD has: use at most 3"},
		{"decimals that rounding would carry", "0.99999999999999999999999999", "EUR", "more decimals"},
		{"one more than 2^53", "90071992547409.93", "EUR", "above the largest that can be held, 90071992547409.92 EUR"},
		{"10^16 minor units", "10000000000000000", "JPY", "above the largest"},
		{"more than an int64", "99999999999999999999999999999999", "JPY", "above the largest"},
		{"no currency", "1", "", "is not in ISO 4217"},
		{"small letters", "1", "eur", "is not in ISO 4217"},
		{"a currency that does not exist", "1", "ABC", "is not in ISO 4217"},
		{"a currency that is gone", "1", "DEM", "is not in ISO 4217"},
		{"the code for no currency", "1", "XXX", "is not in ISO 4217"},
		{"a currency as long as a book", "1", strings.Repeat("E", 1<<20), "is not in ISO 4217"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Parse(tc.amount, tc.currency)
			if err == nil {
				t.Fatalf("Parse = %v, want an error", got)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q lacks %q", err, tc.want)
			}
			if len(err.Error()) > 300 {
				t.Errorf("error has %d bytes", len(err.Error()))
			}
			if !got.IsZero() {
				t.Errorf("amount %v beside an error", got)
			}
		})
	}
}

func TestAmountsThatNobodyParsed(t *testing.T) {
	for _, tc := range []struct {
		name            string
		amount          Amount
		decimal, string string
	}{
		{"no amount", Amount{}, "", "no amount"},
		{"an unknown currency is not guessed at", Amount{9950, "ABC"}, "", `9950 minor units of the unknown currency "ABC"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.amount.Decimal(); got != tc.decimal {
				t.Errorf("Decimal() = %q, want %q", got, tc.decimal)
			}
			if got := tc.amount.String(); got != tc.string {
				t.Errorf("String() = %q, want %q", got, tc.string)
			}
		})
	}
	if (Amount{0, "EUR"}).IsZero() {
		t.Error("zero euros are taken for no amount")
	}
}

func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		name string
		a, b Amount
		want int
	}{
		{"less", Amount{1, "EUR"}, Amount{2, "EUR"}, -1},
		{"equal", Amount{2, "EUR"}, Amount{2, "EUR"}, 0},
		{"more", Amount{3, "EUR"}, Amount{2, "EUR"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Compare(tc.a, tc.b)
			if err != nil || got != tc.want {
				t.Errorf("Compare = %d, %v, want %d", got, err, tc.want)
			}
		})
	}
	for _, tc := range []struct {
		name string
		a, b Amount
	}{
		{"two currencies", Amount{1, "EUR"}, Amount{2, "USD"}},
		{"an amount and none", Amount{1, "EUR"}, Amount{}},
		{"none and none", Amount{}, Amount{}},
	} {
		t.Run(tc.name+" have no order", func(t *testing.T) {
			_, err := Compare(tc.a, tc.b)
			var mismatch *MismatchError
			if !errors.As(err, &mismatch) {
				t.Fatalf("error %v, want a *MismatchError", err)
			}
			if !strings.Contains(err.Error(), "give both amounts in one currency") {
				t.Errorf("error %q doesn't say what to do", err)
			}
		})
	}
}

func TestEveryAmountSurvivesItsDecimalText(t *testing.T) {
	codes := currency.GetCurrencyCodes()
	rapid.Check(t, func(t *rapid.T) {
		want := Amount{
			Minor:    rapid.Int64Range(0, 1<<53).Draw(t, "minor"),
			Currency: rapid.SampledFrom(codes).Draw(t, "currency"),
		}
		got, err := Parse(want.Decimal(), want.Currency)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("%v became %v", want, got)
		}
	})
}

func TestParseOfAnythingIsAnAmountOrAnError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9]{0,20}[.eE+,-]?[0-9]{0,20}`)).Draw(t, "amount")
		got, err := Parse(text, "EUR")
		if (err == nil) == got.IsZero() {
			t.Fatalf("Parse(%q) = %v, %v", text, got, err)
		}
		if got.Minor < 0 || got.Minor > 1<<53 {
			t.Fatalf("Parse(%q) = %v, out of range", text, got)
		}
	})
}
