package apiproxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/client-go/rest"
)

// Window is what a controller behind a proxy sees of a cluster: the tickets of one namespace and one provider. Several
// controllers can so share a control plane, each as if it were alone.
type Window struct{ Namespace, Provider string }

// ToCluster returns the options of a proxy to the API server that a configuration leads to. Of the configuration only the
// address and the authority are used: whoever calls must bring a credential. Numbered are the writes of tickets and
// providers.
func ToCluster(config *rest.Config, w Window) (Options, error) {
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return Options{}, fmt.Errorf("make a way to the API server: %w", err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return Options{}, fmt.Errorf("parse the API server's address: %w", err)
	}
	return Options{Server: server, Transport: transport, Name: NameOfWrite, Rewrite: w.narrow}, nil
}

// narrow turns a list or watch of the whole cluster into one of the window.
func (w Window) narrow(u *url.URL) {
	switch u.Path {
	case "/apis/flights.com/v1/flighttickets":
		u.Path = "/apis/flights.com/v1/namespaces/" + w.Namespace + "/flighttickets"
	case "/apis/flights.com/v1/bookingproviders":
		query := u.Query()
		query.Set("fieldSelector", "metadata.name="+w.Provider)
		u.RawQuery = query.Encode()
	}
}

// written is the path of a ticket or a provider.
var written = regexp.MustCompile(`^/apis/flights\.com/v1/(?:namespaces/[^/]+/)?(flightticket|bookingprovider)s/[^/]+(/status)?$`)

// NameOfWrite names the writes of tickets and providers, as in "PUT ticket status".
func NameOfWrite(r *http.Request) string {
	parts := written.FindStringSubmatch(r.URL.Path)
	if parts == nil || r.Method == http.MethodGet {
		return ""
	}
	kind := strings.TrimPrefix(strings.TrimPrefix(parts[1], "flight"), "booking")
	return r.Method + " " + kind + strings.ReplaceAll(parts[2], "/", " ")
}

// ToBooking returns the options of a proxy to a booking API. All calls are numbered.
func ToBooking(endpoint string, authority []byte) (Options, error) {
	server, err := url.Parse(endpoint)
	if err != nil {
		return Options{}, fmt.Errorf("parse the booking API's address: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return Options{}, errors.New("the booking API's authority holds no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return Options{Server: server, Transport: transport, Name: nameOfCall}, nil
}

// nameOfCall names a call of the booking API as the contract does.
func nameOfCall(r *http.Request) string {
	one := strings.HasPrefix(r.URL.Path, "/bookings/")
	switch {
	case r.URL.Path == "/account":
		return "Account"
	case r.URL.Path == "/quotes":
		return "Quote"
	case r.URL.Path == "/bookings" && r.Method == http.MethodPost:
		return "Book"
	case r.URL.Path == "/bookings":
		return "Find"
	case one && r.Method == http.MethodPut:
		return "Change"
	case one && r.Method == http.MethodDelete:
		return "Cancel"
	default:
		return "Get"
	}
}
