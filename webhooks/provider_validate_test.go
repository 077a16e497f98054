package webhooks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

func provider(change ...func(*flightsv1.BookingProviderSpec)) *flightsv1.BookingProvider {
	p := &flightsv1.BookingProvider{
		ObjectMeta: metav1.ObjectMeta{Name: "second"},
		Spec: flightsv1.BookingProviderSpec{
			Endpoint:             "https://flights.example.com/v1",
			CredentialsSecretRef: flightsv1.SecretKeyReference{Name: "flight-operator-credentials", Key: "second"},
		},
	}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

func certificatePEM(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestProvidersAreCheckedBeforeTheyAreStored(t *testing.T) {
	good := certificatePEM(t)
	key := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("x")})
	bundle := func(text ...[]byte) func(*flightsv1.BookingProviderSpec) {
		return func(s *flightsv1.BookingProviderSpec) {
			for _, one := range text {
				s.CABundle = append(s.CABundle, one...)
			}
		}
	}
	isDefault := func(s *flightsv1.BookingProviderSpec) { s.Default = true }
	for name, c := range map[string]struct {
		change  func(*flightsv1.BookingProviderSpec)
		want    string // part of the message; empty means allowed
		warning string
	}{
		"a plain provider":            {change: func(*flightsv1.BookingProviderSpec) {}},
		"a second default":            {change: isDefault, want: "spec.default: main is the default BookingProvider already"},
		"a bundle of two authorities": {change: bundle(good, good, []byte("\n"))},
		"a bundle that is no PEM":     {change: bundle([]byte("hello")), want: "spec.caBundle: holds no PEM block"},
		"a bundle with a key in it":   {change: bundle(good, key), want: "block 2 is a EC PRIVATE KEY and must be a CERTIFICATE"},
		"a bundle with a tail":        {change: bundle(good, []byte("hello")), want: "has something after certificate 1"},
		"a bundle of garbage in PEM": {
			change: bundle(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), want: "block 1 is no certificate",
		},
		"an endpoint inside": {change: func(s *flightsv1.BookingProviderSpec) { s.Endpoint = "https://10.0.0.1" }, want: "spec.endpoint: is a loopback, link-local or private"},
		"another Secret": {
			change:  func(s *flightsv1.BookingProviderSpec) { s.CredentialsSecretRef.Name = "mine" },
			warning: "for mine add a Role",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := newWorld(t).review(t, PathValidateProvider, create(t, "BookingProvider", provider(c.change)))
			if got.Allowed != (c.want == "") || !strings.Contains(got.Result.Message, c.want) {
				t.Errorf("allowed = %v, message %q; want %q", got.Allowed, got.Result.Message, c.want)
			}
			if !strings.Contains(strings.Join(got.Warnings, "\n"), c.warning) {
				t.Errorf("warnings are %q, want %q", got.Warnings, c.warning)
			}
		})
	}
}

func TestTheDefaultProviderMayBeChangedItself(t *testing.T) {
	old := provider(func(s *flightsv1.BookingProviderSpec) { s.Default = true })
	old.Name = "main"
	now := old.DeepCopy()
	now.Spec.RateLimit.Burst = 3
	req := update(t, "BookingProvider", old, now)
	if got := newWorld(t).review(t, PathValidateProvider, req); !got.Allowed {
		t.Errorf("refused: %s", got.Result.Message)
	}
}

func TestADefaultThatIsBeingDeletedMakesRoomForAnother(t *testing.T) {
	w := newWorld(t)
	now := metav1.Unix(1800000000, 0)
	w.live.providers[0].DeletionTimestamp = &now
	next := provider(func(s *flightsv1.BookingProviderSpec) { s.Default = true })
	if got := w.review(t, PathValidateProvider, create(t, "BookingProvider", next)); !got.Allowed {
		t.Errorf("refused: %s", got.Result.Message)
	}
}

func TestADefaultIsRefusedWhenTheOthersCanNotBeRead(t *testing.T) {
	w := newWorld(t)
	w.live.err = errors.New("the API server is away")
	isDefault := provider(func(s *flightsv1.BookingProviderSpec) { s.Default = true })
	if got := w.review(t, PathValidateProvider, create(t, "BookingProvider", isDefault)); got.Allowed || !strings.Contains(got.Result.Message, "could not decide: ") {
		t.Errorf("allowed = %v, message %q", got.Allowed, got.Result.Message)
	}
}

func TestEndpointsThatMustNotBeCalledAreRefused(t *testing.T) {
	for endpoint, want := range map[string]struct{ public, private bool }{ // refused without, with allowPrivate
		"https://flights.example.com":                {false, false},
		"https://flights.example.com:8443/v1":        {false, false},
		"https://8.8.8.8":                            {false, false},
		"https://[2001:4860:4860::8888]":             {false, false},
		"https://127.0.0.1:9443":                     {true, false},
		"https://localhost":                          {true, false},
		"https://LOCALHOST.":                         {true, false},
		"https://a.localhost":                        {true, false},
		"https://[::1]":                              {true, false},
		"https://[::ffff:127.0.0.1]":                 {true, false},
		"https://[64:ff9b::7f00:1]":                  {true, false},
		"https://192.168.1.1":                        {true, false},
		"https://100.64.0.1":                         {true, false},
		"https://[fe80::1%25eth0]":                   {true, false},
		"https://[fd12::1]":                          {true, false},
		"https://169.254.1.1":                        {true, false},
		"https://169.254.169.254":                    {true, true},
		"https://[::ffff:169.254.169.254]":           {true, true},
		"https://[64:ff9b::a9fe:a9fe]":               {true, true},
		"https://[fd00:ec2::254]":                    {true, true},
		"https://metadata.google.internal":           {true, true},
		"https://0.0.0.0":                            {true, true},
		"https://[::]":                               {true, true},
		"https://224.0.0.1":                          {true, true},
		"https://2130706433":                         {true, true},
		"https://127.1":                              {true, true},
		"https://0x7f000001":                         {true, true},
		"https://0177.0.0.1":                         {true, true},
		"https://1.2.3.4.example.com":                {false, false},
		"https://flights.example.com./v1":            {false, false},
		"https://":                                   {true, true},
		"https://[not an address]":                   {true, true},
		"https://host-that-ends-in-1.example.com:44": {false, false},
	} {
		if got := badEndpoint(endpoint, false); (got != "") != want.public {
			t.Errorf("%s: %q", endpoint, got)
		}
		if got := badEndpoint(endpoint, true); (got != "") != want.private {
			t.Errorf("%s with allowPrivate: %q", endpoint, got)
		}
	}
}
