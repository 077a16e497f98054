package loader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoWaitsForANewerPolicyIsToldOfNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(store)
		want   error
	}{
		"the policy changes":           {change: func(s store) { s.put("a", "uid-a", 2) }},
		"it goes":                      {change: func(s store) { delete(s, "a") }},
		"it goes and is made anew":     {change: func(s store) { s.put("a", "uid-b", 1) }},
		"another one changes":          {change: func(s store) { s.put("b", "uid-b", 2) }, want: context.DeadlineExceeded},
		"it is looked at and the same": {change: func(store) {}, want: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policies := store{}
				policies.put("a", "uid-a", 1)
				policies.put("b", "uid-b", 1)
				l := New(policies, &recorder{})
				look := func() {
					for _, name := range []string{"a", "b"} {
						if err := reconciled(t, l, name); err != nil {
							t.Fatal(err)
						}
					}
				}
				look()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				told := make(chan error, 1)
				go func() { told <- l.Superseded(ctx, "a", "uid-a", 1) }()
				synctest.Wait()
				select {
				case err := <-told:
					t.Fatalf("told of nothing: %v", err)
				default:
				}
				c.change(policies)
				look()
				if err := <-told; !errors.Is(err, c.want) {
					t.Errorf("told %v, want %v", err, c.want)
				}
			})
		})
	}
}

func TestWhoKnowsAnOlderPolicyDoesNotWait(t *testing.T) {
	policies := store{}
	policies.put("a", "uid-a", 2)
	l := New(policies, &recorder{})
	if err := reconciled(t, l, "a"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Superseded(ctx, "a", "uid-a", 1); err != nil {
		t.Error(err)
	}
}
