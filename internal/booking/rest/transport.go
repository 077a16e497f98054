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

// newTransports returns one transport for reads and one for writes. Neither uses a proxy: a proxy from the
// environment would receive the calls that the address check is for. Both speak HTTP/1.1, whose rules on when a request
// may be sent again are few enough to be sure of.
//
// Writes never reuse a connection. A reused one may have been closed by the server, and a request that met this is
// neither sent nor not sent; on a fresh one, what happened before the connection stood was certainly not sent.
func newTransports(roots *x509.CertPool, allowPrivate bool) (reads, writes *http.Transport) {
	reads = newTransport(roots, allowPrivate)
	writes = newTransport(roots, allowPrivate)
	writes.DisableKeepAlives = true
	return reads, writes
}

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
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		Protocols:              protocols,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// neverReplay makes a request that Go's transport can't send twice. By itself it sends a request again whose reused
// connection broke if it holds an Idempotency-Key and the body can be had again (GetBody), or has no body. A provider
// that ignores keys would then book twice.
func neverReplay(_ context.Context, r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody {
		r.Body = io.NopCloser(strings.NewReader(""))
	}
	r.GetBody = nil
	return nil
}
