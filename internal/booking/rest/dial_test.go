package rest_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/booking/rest"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

func passenger() flightsv1.Passenger {
	return flightsv1.Passenger{GivenName: "Ada", FamilyName: "Lovelace", Email: "ada@example.com"}
}

func TestWhatWasCertainlyNotSentIsRejected(t *testing.T) {
	_, server := start(t, simulator.Options{})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	if err := closed.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	silent := listenAndHangUp(t)
	cases := map[string]struct {
		edit func(*rest.Options)
		code string
	}{
		"nothing listens":             {func(o *rest.Options) { o.Endpoint = "https://" + closed.Addr().String() }, booking.CodeConnectionRefused},
		"the authority isn't trusted": {func(o *rest.Options) { o.CABundle = otherAuthority(t) }, booking.CodeTLSFailed},
		"the certificate is another host's": {func(o *rest.Options) {
			o.Endpoint = strings.Replace(o.Endpoint, "127.0.0.1", "localhost", 1)
		}, booking.CodeTLSFailed},
		"the server hangs up before TLS stands": {func(o *rest.Options) { o.Endpoint = "https://" + silent }, booking.CodeConnectionReset},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := dial(t, server, c.edit)
			outcome := p.Book(t.Context(), cannedBook())
			if outcome.Kind != booking.Rejected || outcome.Failure.Class != booking.ClassUnavailable || outcome.Failure.Code != c.code {
				t.Errorf("outcome = %+v (%v), want Rejected %s", outcome, outcome.Failure, c.code)
			}
			_, err := p.Account(t.Context())
			if e := callError(t, err); e.Class != booking.ClassUnavailable || e.Code != c.code {
				t.Errorf("read = %v, want Unavailable %s", e, c.code)
			}
		})
	}
}

// otherAuthority makes an authority that signed nothing.
func otherAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("make key: %v", err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "other"}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// listenAndHangUp accepts connections and closes them at once.
func listenAndHangUp(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			// Reading first makes the close an end of file; closing with unread bytes would reset.
			buffer := make([]byte, 4096)
			_, _ = c.Read(buffer)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	return l.Addr().String()
}

func TestOptionsThatCannotWorkAreRefusedWithoutTheToken(t *testing.T) {
	cases := map[string]struct {
		edit func(*rest.Options)
		want string
	}{
		"http":                  {func(o *rest.Options) { o.Endpoint = "http://flights.example.com" }, "https"},
		"no host":               {func(o *rest.Options) { o.Endpoint = "https:///v1" }, "host"},
		"a user in the URL":     {func(o *rest.Options) { o.Endpoint = "https://me:" + testToken + "@flights.example.com" }, "user"},
		"a query":               {func(o *rest.Options) { o.Endpoint = "https://flights.example.com/?key=" + testToken }, "query"},
		"not a URL":             {func(o *rest.Options) { o.Endpoint = "https://flights example\x7f" + testToken }, "URL"},
		"no token":              {func(o *rest.Options) { o.Token = " \n" }, "empty"},
		"a token of two lines":  {func(o *rest.Options) { o.Token = testToken + "\r\nX-Evil: 1" }, "line breaks"},
		"a bundle without PEM":  {func(o *rest.Options) { o.CABundle = []byte("MII...") }, "PEM"},
		"a token in fancy text": {func(o *rest.Options) { o.Token = testToken + "é" }, "ASCII"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := rest.Options{Endpoint: "https://flights.example.com/v1", Token: testToken}
			c.edit(&o)
			_, err := rest.New(o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), testToken) {
				t.Errorf("error = %v, want one about %q without the token", err, c.want)
			}
		})
	}
}

func TestATokenMayEndWithANewline(t *testing.T) {
	_, server := start(t, simulator.Options{})
	p := dial(t, server, func(o *rest.Options) { o.Token = testToken + "\n" })
	if account, err := p.Account(t.Context()); err != nil || account.ID != testAccount {
		t.Errorf("account = %v, %v", account, err)
	}
}

func TestRequestsThatCannotBeRightAreNotSent(t *testing.T) {
	sim, server := start(t, simulator.Options{})
	p := dial(t, server, nil)
	ctx := t.Context()
	for _, id := range []string{"", ".", "..", "../account", "bk/1", "bk 1", strings.Repeat("x", 129)} {
		_, err := p.Get(ctx, id)
		if e := callError(t, err); e.Code != booking.CodeInvalidRequest {
			t.Errorf("get %q = %v, want it refused", id, e)
		}
		cancel := p.Cancel(ctx, booking.CancelRequest{BookingID: id})
		change := p.Change(ctx, booking.ChangeRequest{BookingID: id, IfVersion: `"1"`})
		for _, o := range []booking.Outcome{cancel, change} {
			if o.Kind != booking.Rejected || o.Failure.Code != booking.CodeInvalidRequest {
				t.Errorf("write to %q = %+v, want it refused", id, o)
			}
		}
	}
	if o := p.Change(ctx, booking.ChangeRequest{BookingID: "bk-1"}); o.Failure == nil || o.Failure.Code != booking.CodeInvalidRequest {
		t.Errorf("change without a version = %+v, want it refused", o)
	}
	_, byReference := p.FindByClientReference(ctx, "")
	_, byOwner := p.FindByOwner(ctx, "")
	for _, err := range []error{byReference, byOwner} {
		if e := callError(t, err); e.Code != booking.CodeInvalidRequest {
			t.Errorf("find nothing = %v, want it refused", e)
		}
	}
	if n := sim.Count(""); n != 0 {
		t.Errorf("calls that arrived = %d, want none", n)
	}
}
