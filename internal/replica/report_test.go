package replica

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestAReportIsReadAsItWasWritten(t *testing.T) {
	report := Report{
		"uid-1": {Generation: 3, Digest: "0123456789ab"},
		"uid-2": {Generation: 1, Digest: "ba9876543210", FailedGeneration: 2, Error: "spec.rego:4:2: no"},
		"uid-3": {FailedGeneration: 1, Error: "no"},
	}
	text, err := Encode(report)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report, again); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if second, err := Encode(report); err != nil || second != text {
		t.Errorf("an equal report is written as %q and %q (%v)", text, second, err)
	}
}

// many makes a report of n policies, all of which fail with a long text when failing is set.
func many(n int, failing bool) Report {
	r := Report{}
	for i := range n {
		p := Policy{Generation: 1 << 40, Digest: strings.Repeat("a", 64)}
		if failing {
			p.FailedGeneration, p.Error = 1<<41, strings.Repeat("\"é\n", 4000)
		}
		r[KeyOf(types.UID(fmt.Sprintf("%08x-%04x-0000-0000-000000000000", i, i)))] = p
	}
	return r
}

func TestThousandsOfPoliciesFitAnAnnotation(t *testing.T) {
	for name, r := range map[string]Report{
		"that serve": many(2500, false), "that all fail": many(1000, true), "that are very many": many(6000, false),
	} {
		text, err := Encode(r)
		if err != nil {
			t.Errorf("%d policies %s: %v", len(r), name, err)
		}
		again, err := Decode(text)
		if err != nil || len(again) != len(r) {
			t.Errorf("%d of %d policies %s are told (%v)", len(again), len(r), name, err)
		}
		for key, p := range again {
			if p.Generation != r[key].Generation || p.FailedGeneration != r[key].FailedGeneration {
				t.Fatalf("policy %s %s is told as %+v", key, name, p)
			}
		}
	}
	if _, err := Encode(many(50000, false)); err == nil || !strings.Contains(err.Error(), "delete policies") {
		t.Errorf("50000 policies: %v", err)
	}
}

func TestThePoliciesOfAnOrdinaryClusterKeepTheirDigests(t *testing.T) {
	text, err := Encode(Report{"k": {Generation: 1, Digest: strings.Repeat("a", 64)}})
	if want := `{"k":{"g":1,"d":"aaaaaaaaaaaa"}}`; err != nil || text != want {
		t.Errorf("got %s (%v), want %s", text, err, want)
	}
}
