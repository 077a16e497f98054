package main

import (
	"strings"
	"testing"
	"time"
)

func TestOptionsSayWhichFlagIsWrong(t *testing.T) {
	ca := newAuthority(t)
	dir := t.TempDir()
	ca.issue(t, dir)
	for name, c := range map[string]struct {
		change func(*options)
		want   []string // none means valid
	}{
		"the defaults of a pod":       {change: func(*options) {}},
		"no certificate":              {func(o *options) { o.TLSDir = "/nowhere" }, []string{"--tls-dir"}},
		"an address without a port":   {func(o *options) { o.webhookBindAddress = "localhost" }, []string{"--webhook-bind-address"}},
		"a port that doesn't exist":   {func(o *options) { o.webhookBindAddress = ":70000" }, []string{"--webhook-bind-address"}},
		"a name that no Lease takes":  {func(o *options) { o.replica = "A b" }, []string{"--replica"}},
		"a drain longer than the pod": {func(o *options) { o.drain = time.Hour }, []string{"--drain"}},
		"several at once":             {func(o *options) { o.replica, o.drain = "", -1 }, []string{"--replica", "--drain"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := defaultOptions()
			o.TLSDir, o.replica = dir, "flight-webhook-0"
			c.change(&o)
			err := o.validate()
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("validate: %v", err)
			}
			for _, flag := range c.want {
				if !strings.Contains(err.Error(), flag+": ") {
					t.Errorf("%v doesn't name %s", err, flag)
				}
			}
		})
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"--no-such-flag"}, {"stray"}, {"--drain=soon"}, {"--tls-dir=/nowhere"}} {
		if err := start(args); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
	if err := start([]string{"--version"}); err != nil {
		t.Errorf("--version: %v", err)
	}
}
