package instruction

import (
	"testing"
	"time"
)

func TestAResolutionIsReadAsItIsWritten(t *testing.T) {
	for _, r := range []Resolution{
		{Operation: "op-1"}, {Operation: "op-1", Done: true}, {Operation: "op-1", Done: true, Booking: "bk_7"},
	} {
		got, err := ParseResolution(r.String())
		if err != nil || got != r {
			t.Errorf("%q is read as %+v, %v", r, got, err)
		}
	}
}

func TestWhatIsNoResolutionIsRefused(t *testing.T) {
	for _, text := range []string{"", "op-1", "op-1 maybe", "not-done", "op-1 not-done bk_7", "op-1 done bk_7 bk_8", "done op-1"} {
		if r, err := ParseResolution(text); err == nil {
			t.Errorf("%q is read as %+v", text, r)
		}
	}
}

func TestAPollIntervalHasAFloor(t *testing.T) {
	if d, err := ParsePollInterval("90s"); err != nil || d != 90*time.Second {
		t.Errorf("90s is read as %s, %v", d, err)
	}
	for _, text := range []string{"", "often", "59s", "-2h", "0"} {
		if d, err := ParsePollInterval(text); err == nil {
			t.Errorf("%q is read as %s", text, d)
		}
	}
}
