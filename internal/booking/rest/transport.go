package rest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// newTransport returns a transport that uses no proxy (one from the environment would receive the calls that the
// address check is for), speaks HTTP/1.1 alone (its rules on when a request may be sent again are few enough to be sure
// of), and never reuses a connection. A reused one may have been closed by the server: a request that meets this is
// neither sent nor not sent. On a fresh one, what happened before the connection stood was certainly not sent. Resumed
// TLS sessions keep the price of that low.
func newTransport(roots *x509.CertPool, allowPrivate bool) *http.Transport {
	dialer := &net.Dialer{
		Timeout: 10 * time.Second,
		// Control sees each address after the name was resolved, so a name that turns inward is caught here.
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return checkAddress(address, allowPrivate)
		},
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:       nil,
		DialContext: dialer.DialContext,
		// TLS 1.3 is agreed on with every server that knows it.
		TLSClientConfig: &tls.Config{
			RootCAs: roots, MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(8),
		},
		TLSHandshakeTimeout:    10 * time.Second,
		Protocols:              protocols,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// neverReplay makes a request that Go's transport can't send twice. By itself it sends a request again whose reused
// connection broke, if the method or an Idempotency-Key seems to allow it and the body can be had again (GetBody) or
// there is none. A provider that ignores keys would then book twice. Fresh connections prevent that already; this does
// not rest on them.
func neverReplay(_ context.Context, r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody {
		r.Body = io.NopCloser(strings.NewReader(""))
	}
	r.GetBody = nil
	return nil
}
