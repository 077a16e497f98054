package main

import (
	"strings"
	"testing"
)

func TestOptionsNameTheFlagOfEveryProblem(t *testing.T) {
	o := defaultOptions()
	o.TLSDir = t.TempDir()
	o.installation, o.credentialsSecret, o.workers, o.poll, o.requestLife = "a/b", "Not A Name", 0, 0, 0
	err := o.validate()
	if err == nil {
		t.Fatal("wrong options were accepted")
	}
	for _, flag := range []string{
		"--tls-dir", "--installation", "--credentials-secret", "--max-concurrent-reconciles", "--poll-interval", "--request-life",
	} {
		if !strings.Contains(err.Error(), flag+":") {
			t.Errorf("the error does not name %s: %v", flag, err)
		}
	}
}

func TestUnknownArgumentsAreRefused(t *testing.T) {
	if err := start([]string{"--log-level=info", "surplus"}); err == nil || !strings.Contains(err.Error(), "surplus") {
		t.Errorf("got %v, want an error that names the argument", err)
	}
}
