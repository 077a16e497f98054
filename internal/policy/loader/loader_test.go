package loader

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
)

// store is a reader of policies, in place of a cache.
type store map[string]*flightsv1.FlightPolicy

func (s store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	p, found := s[key.Name]
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "flightpolicies"}, key.Name)
	}
	p.DeepCopyInto(into.(*flightsv1.FlightPolicy))
	return nil
}

func (s store) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	for _, p := range s {
		switch list := into.(type) {
		case *flightsv1.FlightPolicyList:
			list.Items = append(list.Items, *p)
		case *metav1.PartialObjectMetadataList:
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta})
		}
	}
	return nil
}

func (s store) put(name, uid string, generation int64) {
	s[name] = &flightsv1.FlightPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), Generation: generation}}
}

// recorder is an engine that writes down what it is told, and answers as told.
type recorder struct {
	calls []string
	err   error
}

func (r *recorder) Set(_ context.Context, p *flightsv1.FlightPolicy) error {
	r.calls = append(r.calls, "set "+p.Name+" "+string(p.UID)+" "+string(rune('0'+p.Generation)))
	return r.err
}

func (r *recorder) Delete(name string) { r.calls = append(r.calls, "delete "+name) }

func reconciled(t *testing.T, l *Loader, name string) error {
	t.Helper()
	_, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	return err
}

func TestTheEngineIsToldOfEveryRevisionOnce(t *testing.T) {
	policies, engine := store{}, &recorder{}
	l := New(policies, engine)
	for _, step := range []func(){
		func() { policies.put("a", "uid-1", 1) },
		func() {}, // a status write, or a resync
		func() { policies.put("a", "uid-1", 2) },
		func() { policies.put("a", "uid-2", 2) }, // deleted and created again between two looks
		func() { delete(policies, "a") },
		func() { policies.put("a", "uid-3", 1) },
	} {
		step()
		if err := reconciled(t, l, "a"); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"set a uid-1 1", "set a uid-1 2", "set a uid-2 2", "delete a", "set a uid-3 1"}
	if diff := cmp.Diff(want, engine.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestSyncedOnceEveryPolicyOfTheFirstListIsInTheEngine(t *testing.T) {
	policies, engine := store{}, &recorder{}
	for _, name := range []string{"early", "good", "broken", "deleted"} {
		policies.put(name, "uid-"+name, 1)
	}
	l := New(policies, engine)
	check := func(when string, want bool) {
		t.Helper()
		if l.Synced() != want || (l.ReadyCheck(nil) == nil) != want {
			t.Errorf("%s: synced = %v, ready check says %v", when, l.Synced(), l.ReadyCheck(nil))
		}
	}
	if err := reconciled(t, l, "early"); err != nil {
		t.Fatal(err)
	}
	check("before the first list", false)
	if err := l.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("after the first list", false)
	if err := reconciled(t, l, "good"); err != nil {
		t.Fatal(err)
	}
	engine.err = &policy.CompileError{}
	if err := reconciled(t, l, "broken"); err != nil {
		t.Errorf("a policy that doesn't compile is tried again: %v", err)
	}
	check("while one is missing", false)
	delete(policies, "deleted")
	if err := reconciled(t, l, "deleted"); err != nil {
		t.Fatal(err)
	}
	check("after the last", true)
	policies.put("late", "uid-late", 1)
	check("with a new policy on its way", true)
}

func TestAnEngineThatHadNoTimeIsAskedAgain(t *testing.T) {
	policies, engine := store{}, &recorder{err: context.DeadlineExceeded}
	policies.put("a", "uid-a", 1)
	l := New(policies, engine)
	if err := l.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := reconciled(t, l, "a"); !errors.Is(err, context.DeadlineExceeded) || l.Synced() {
		t.Errorf("error %v, synced = %v", err, l.Synced())
	}
	engine.err = nil
	if err := reconciled(t, l, "a"); err != nil || !l.Synced() {
		t.Errorf("error %v, synced = %v", err, l.Synced())
	}
	if !slices.Equal(engine.calls, []string{"set a uid-a 1", "set a uid-a 1"}) {
		t.Errorf("calls are %v", engine.calls)
	}
}

func TestChangesAreMergedForASlowReader(t *testing.T) {
	policies := store{}
	l := New(policies, &recorder{})
	changes := l.Changes()
	for _, name := range []string{"a", "b", "c"} {
		policies.put(name, "uid-"+name, 1)
		if err := reconciled(t, l, name); err != nil {
			t.Fatal(err)
		}
	}
	if len(changes) != 1 {
		t.Errorf("%d values wait, want 1", len(changes))
	}
	<-changes
	if err := reconciled(t, l, "a"); err != nil {
		t.Fatal(err)
	}
	if len(changes) != 0 {
		t.Error("a policy that stays the same is told as a change")
	}
}

func TestTheLoaderHasCaughtUpOnceItHoldsWhatIsStored(t *testing.T) {
	cached, stored := store{}, store{}
	l := New(cached, &recorder{})
	for _, step := range []struct {
		what   string
		change func()
		want   bool
	}{
		{"without policies", func() {}, true},
		{"a policy that the cache lacks", func() { stored.put("a", "uid-1", 1) }, false},
		{"the cache has it", func() { cached.put("a", "uid-1", 1) }, true},
		{"a generation that the cache lacks", func() { stored.put("a", "uid-1", 2) }, false},
		{"a generation that was stored after the list", func() { cached.put("a", "uid-1", 3) }, true},
		{"deleted and created again", func() { stored.put("a", "uid-2", 1) }, false},
		{"deleted", func() { delete(stored, "a") }, true},
	} {
		step.change()
		if _, known := cached["a"]; known {
			if err := reconciled(t, l, "a"); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.CaughtUp(t.Context(), stored); (err == nil) != step.want {
			t.Errorf("%s: %v", step.what, err)
		}
	}
}
