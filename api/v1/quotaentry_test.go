package v1_test

import (
	"encoding/json"
	"strings"
	"testing"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

func TestAnEntryIsReadAsItWasWritten(t *testing.T) {
	entry := flightsv1.QuotaEntry{
		Nonce: strings.Repeat("0a", 16), Namespace: "team-a", Name: "trip.to-london", UID: "9b1d-77", Generation: 3, PolicyGeneration: 2,
		Amount: 9007199254740992, Settled: 4,
	}
	raw, err := json.Marshal([]flightsv1.QuotaEntry{entry})
	if err != nil {
		t.Fatal(err)
	}
	want := `["team-a/trip.to-london uid=9b1d-77 generation=3 policyGeneration=2 amount=9007199254740992 settled=4 nonce=` + entry.Nonce + `"]`
	if string(raw) != want {
		t.Errorf("written as %s, want %s", raw, want)
	}
	var read []flightsv1.QuotaEntry
	if err := json.Unmarshal(raw, &read); err != nil || len(read) != 1 || read[0] != entry {
		t.Errorf("read as %+v, error %v", read, err)
	}
}

func TestWhatIsNoEntryIsNotRead(t *testing.T) {
	for _, text := range []string{
		`""`, `"trip"`, `{}`, `7`,
		`"a/b uid=u generation=1 policyGeneration=1 amount=1 settled=0"`,
		`"a/b uid=u generation=1 policyGeneration=1 amount=1 settled=0 nonce="`,
		`"a/b uid=u generation=1 policyGeneration=1 settled=0 amount=1 nonce=n"`,
		`"a/b uid=u generation=1 policyGeneration=1 amount=9223372036854775808 settled=0 nonce=n"`,
		`"a/b uid=u generation=1 policyGeneration=1 amount=1 settled=0 nonce=n more=1"`,
		`"a/b uid=u generation=1 policyGeneration=1 amount=9007199254740993 settled=0 nonce=n"`,
		`"a/b uid=u generation=1 policyGeneration=1 amount=1 settled=-1 nonce=n"`,
		`"ab uid=u generation=1 policyGeneration=1 amount=1 settled=0 nonce=n"`,
	} {
		before := flightsv1.QuotaEntry{Nonce: "before"}
		read := before
		if err := json.Unmarshal([]byte(text), &read); err == nil || read != before {
			t.Errorf("%s is read as %+v, error %v", text, read, err)
		}
	}
}
