package rest

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAProvidersWordsAreMadeFitToBeShown(t *testing.T) {
	p := &Provider{token: "canary/3Zq8+vT"}
	cases := map[string]struct{ text, want string }{
		"plain words stay":                      {"No seats are left on flight BA138 on 2027-03-14.", "No seats are left on flight BA138 on 2027-03-14."},
		"small numbers and prices stay":         {"At most 9 seats; the price is 412.50 EUR.", "At most 9 seats; the price is 412.50 EUR."},
		"lines and tabs become spaces":          {" two\r\nlines\tand\u2028more ", "two lines and more"},
		"controls and bidi marks vanish":        {"a\x00b\x1b[31mc\u202ed\ufeffe", "a b [31mc d e"},
		"broken UTF-8 vanishes":                 {"a\xff\xfeb", "a b"},
		"markup vanishes":                       {"<b>no</b> <script>x</script>", "no x"},
		"links are named":                       {"see https://inside.example.com/a?b=c for more", "see (link) for more"},
		"mail addresses vanish":                 {"ask ada@example.com", "ask …"},
		"the token vanishes":                    {"token canary/3Zq8+vT is bad", "token … is bad"},
		"the token in any case vanishes":        {"token CANARY/3zq8+VT is bad", "token … is bad"},
		"the token in a URL vanishes":           {"canary%2F3Zq8%2BvT", "…"},
		"bearer headers vanish":                 {"got Authorization: Bearer abc.def", "got Authorization: …"},
		"UUIDs become a mark":                   {"trace 5d3c1f0e-7a43-4a57-8f0b-1d6f0a0c9a11 failed", "trace # failed"},
		"short trace ids become a mark":         {"(trace req-8f3a)", "(trace #)"},
		"hex becomes a mark":                    {"id deadbeef0123.", "id #."},
		"long numbers become a mark":            {"request 1764504000123", "request #"},
		"times become a mark":                   {"at 2026-11-30T12:00:01.5Z or 12:00:01", "at # or #"},
		"keys become a mark":                    {"key " + strings.Repeat("abcdefgh", 5), "key #"},
		"base32 without a digit becomes a mark": {"(trace MQVPOYOULLUVEBMUYNEUUBIKGT).", "(trace #)."},
		"base64 without a digit becomes a mark": {"trace dQwVgXcQrTa", "trace #"},
		"capitals and joined words stay":        {"NOT AVAILABLE: InvalidPassengerName, McDonald, UNACCOMPANIED", "NOT AVAILABLE: InvalidPassengerName, McDonald, UNACCOMPANIED"},
		"nothing stays nothing":                 {"", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := normalise(c.text, p.secrets(nil)); got != c.want {
				t.Errorf("normalise(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestAProvidersWordsAreShort(t *testing.T) {
	for _, text := range []string{strings.Repeat("né ", 1<<20), strings.Repeat("x", 1<<20), strings.Repeat("<", 1<<20)} {
		got := normalise(text, nil)
		if n := utf8.RuneCountInString(got); n > maxDetail || !utf8.ValidString(got) {
			t.Errorf("normalise of %d bytes has %d runes", len(text), n)
		}
	}
}

func FuzzAProvidersWordsNeverHoldTheToken(f *testing.F) {
	const token = "canary-3Zq8vTt0kE"
	f.Add("before ", " after")
	f.Add("<", ">")
	f.Add("canary-", "\x00")
	p := &Provider{token: token}
	f.Fuzz(func(t *testing.T, before, after string) {
		got := normalise(before+token+after, p.secrets(nil))
		if strings.Contains(got, token) || utf8.RuneCountInString(got) > maxDetail || strings.ContainsAny(got, "\r\n\x00\x1b") {
			t.Errorf("normalise = %q", got)
		}
	})
}
