package program

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func TestOptionsNameTheFlagOfEveryProblem(t *testing.T) {
	o := Options{TLSDir: t.TempDir(), MetricsBindAddress: "8443", HealthProbeBindAddress: "", Namespace: " ", LogLevel: "loud"}
	err := o.Validate()
	if err == nil {
		t.Fatal("bad options were accepted")
	}
	for _, flag := range []string{"--tls-dir", "--metrics-bind-address", "--health-probe-bind-address", "--namespace", "--log-level"} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("the error does not name %s: %v", flag, err)
		}
	}
}

func TestDefaultOptionsAreValidOnceTheCertificateIsThere(t *testing.T) {
	o := DefaultOptions()
	o.TLSDir = t.TempDir()
	writeCertificate(t, o.TLSDir, 1, time.Now().Add(time.Hour))
	if err := o.Validate(); err != nil {
		t.Errorf("default options: %v", err)
	}
}

func TestACertificateIsReloadedWhenItsFilesChange(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, 1, time.Now().Add(time.Hour))
	c, err := OpenCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.WithWatchInterval(50 * time.Millisecond).Start(ctx) }()
	renewed := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	writeCertificate(t, dir, 2, renewed)
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		return c.NotAfter().Equal(renewed), nil
	})
	if err != nil {
		t.Errorf("the renewed certificate was not taken up: %v", err)
	}
	config := &tls.Config{}
	c.ServeWith(config)
	if served, err := config.GetCertificate(nil); err != nil || served.Leaf.SerialNumber.Int64() != 2 {
		t.Errorf("served certificate %v, error %v; want serial number 2", served, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAnExpiredCertificateMakesTheProcessUnready(t *testing.T) {
	for name, want := range map[string]struct {
		end time.Time
		ok  bool
	}{
		"valid":   {time.Now().Add(time.Hour), true},
		"expired": {time.Now().Add(-time.Minute), false},
	} {
		dir := t.TempDir()
		writeCertificate(t, dir, 1, want.end)
		c, err := OpenCertificate(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Check(nil) == nil; got != want.ok {
			t.Errorf("%s: ready is %v, want %v", name, got, want.ok)
		}
	}
}

func TestLogsAreOneJSONObjectALine(t *testing.T) {
	var out bytes.Buffer
	o := Options{LogLevel: "info"}
	log, err := o.Logger(&out)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("started", "uid", "4711")
	log.V(1).Info("not at this level")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("log output %q: %v", out.String(), err)
	}
	if line["msg"] != "started" || line["uid"] != "4711" {
		t.Errorf("log line %v", line)
	}
}

func TestVersionNamesNumberAndPlatform(t *testing.T) {
	if got := Version("v1.2.3"); !strings.HasPrefix(got, "v1.2.3 (go") {
		t.Errorf("version %q", got)
	}
}

func writeCertificate(t *testing.T, dir string, serial int64, end time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"},
		NotBefore: end.Add(-24 * time.Hour), NotAfter: end, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(dir, keyFile), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	replace(t, filepath.Join(dir, certFile), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
