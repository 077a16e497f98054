package store

import (
	"testing"
	"time"
)

func TestABucketThatOthersWriteIsWrittenInTurns(t *testing.T) {
	began := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	p := pace{began: began}
	waits := func(when string, want time.Duration, shared bool) {
		t.Helper()
		if got := p.next().Sub(began); got != want || p.shared() != shared {
			t.Errorf("%s: the next write after %s, shared %v, want %s and %v", when, got, p.shared(), want, shared)
		}
	}
	p.kept()
	waits("alone", quickPace, false)
	p.lost()
	for range doubt {
		waits("overtaken lately", slowPace, true)
		p.kept()
	}
	waits("not overtaken for long", quickPace, false)
	if new(pace).next().After(began) {
		t.Error("a bucket that was never written has to wait")
	}
}
