package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestItServesUntilItsContextEnds(t *testing.T) {
	t.Setenv(tokensVariable, "s3cret acct-7\n")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	reader, writer := io.Pipe()
	c := command()
	c.SetArgs([]string{"--write-ca", ca, "--tls-san", "simulator.example.com"})
	c.SetOut(writer)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(ctx) }()
	var line ready
	if err := json.NewDecoder(bufio.NewReader(reader)).Decode(&line); err != nil {
		t.Fatalf("read the ready line: %v", err)
	}
	pemBytes, err := os.ReadFile(ca)
	if err != nil {
		t.Fatalf("read the authority: %v", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pemBytes) || line.CA != ca {
		t.Fatalf("authority in %q is no PEM, or not at %s", line.CA, ca)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	client := &http.Client{Transport: transport}
	status := func(url, token string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatalf("make request: %v", err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatalf("ask %s: %v", url, err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	byName := strings.Replace(line.API, "127.0.0.1", "localhost", 1)
	got := []int{status(line.API+"/account", "s3cret"), status(line.API+"/account", "wrong"),
		status(byName+"/account", "s3cret"), status(line.Admin+"/_simulator/ledger", ""), status(line.API+"/_simulator/ledger", "s3cret")}
	for i, want := range []int{200, 401, 200, 200, 404} {
		if got[i] != want {
			t.Errorf("answer %d = %d, want %d", i, got[i], want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("end = %v, want a clean one", err)
	}
}

func TestWrongFlagsAreNamed(t *testing.T) {
	cases := map[string]struct {
		args   []string
		tokens string
		want   string
	}{
		"no certificate":             {nil, "t", "--write-ca or --tls-dir"},
		"both kinds of certificate":  {[]string{"--tls-dir", "x", "--write-ca", "y"}, "t", "--tls-dir"},
		"switches open to all":       {[]string{"--write-ca", "y", "--admin-bind-address", "0.0.0.0:1"}, "t", "--admin-bind-address"},
		"switches on a name":         {[]string{"--write-ca", "y", "--admin-bind-address", "example.com:1"}, "t", "--admin-bind-address"},
		"an address without a port":  {[]string{"--write-ca", "y", "--bind-address", "127.0.0.1"}, "t", "--bind-address"},
		"no token":                   {[]string{"--write-ca", "y"}, " \n", tokensVariable},
		"too many words for a token": {[]string{"--write-ca", "y"}, "canary two three", "line 1"},
		"a token file that is gone":  {[]string{"--write-ca", "y", "--token-file", "/nonexistent"}, "t", "--token-file"},
		"a lag below nothing":        {[]string{"--write-ca", "y", "--read-lag", "-1s"}, "t", "--read-lag"},
		"an answer before its call":  {[]string{"--write-ca", "y", "--latency", "-1s"}, "t", "--latency"},
		"fewer calls than none":      {[]string{"--write-ca", "y", "--rate-limit", "-1"}, "t", "--rate-limit"},
		"a certificate that is gone": {[]string{"--tls-dir", "/nonexistent"}, "t", "load certificate"},
		"an argument":                {[]string{"token"}, "t", "unknown command"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(tokensVariable, c.tokens)
			cmd := command()
			cmd.SetArgs(c.args)
			cmd.SetOut(io.Discard)
			err := cmd.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("error = %v, want one about %s without the token", err, c.want)
			}
		})
	}
}

func TestTheHelpNamesEverySettingSwitchAndEffect(t *testing.T) {
	c := command()
	help := c.Long + c.Flags().FlagUsages()
	for _, effect := range simulator.Effects() {
		if effect.Does() == "" || !strings.Contains(help, "\n  "+string(effect)+" ") {
			t.Errorf("the help does not say what the effect %s does", effect)
		}
	}
	for field := range reflect.TypeFor[simulator.Settings]().Fields() {
		if name := field.Tag.Get("json"); !strings.Contains(help, name) {
			t.Errorf("the help does not name the setting %s", name)
		}
	}
	for field := range reflect.TypeFor[simulator.Fault]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "-" && !strings.Contains(help, `"`+name+`"`) {
			t.Errorf("the help does not name the field %s of a fault", name)
		}
	}
}

func TestTheFlagsAreTheSettings(t *testing.T) {
	o := defaultOptions()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse([]string{
		"--idempotency-key-ttl=1s", "--no-lookup", "--read-lag=2s", "--processing=3s", "--processing-fails", "--latency=4s",
		"--rate-limit=5.5", "--rate-burst=6", "--quote-ttl=7s", "--currency=USD",
	}); err != nil {
		t.Fatal(err)
	}
	settings := reflect.ValueOf(o.settings())
	for field, value := range settings.Fields() {
		if value.IsZero() {
			t.Errorf("no flag sets %s", field.Name)
		}
	}
}
