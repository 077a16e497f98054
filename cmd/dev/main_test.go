package main

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestWhatCtrlCCutOffIsAnInterruptionAndNoFailure(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, test := range []struct {
		name string
		ctx  context.Context
		err  error
		code int
		says string
	}{
		{"a command that did its work", t.Context(), nil, 0, ""},
		{"one that failed", t.Context(), errors.New("no such folder"), 1, "dev: no such folder\n"},
		{"one that runs until Ctrl-C", interrupted, nil, 0, ""},
		{"one that was cut off", interrupted, errors.New("wait for x: context canceled; the log ends: y"), 130, "dev: interrupted\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			if code := end(test.ctx, test.err, &out); code != test.code || out.String() != test.says {
				t.Errorf("code %d and %q, want %d and %q", code, out.String(), test.code, test.says)
			}
		})
	}
}
