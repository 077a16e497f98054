package webhooks

import (
	"net/netip"
	"net/url"
	"strings"
)

// badEndpoint says why an endpoint must not be called, as far as its text tells, or nothing. What a name resolves to is
// checked by the controller at each call.
func badEndpoint(endpoint string, allowPrivate bool) string {
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" {
		return "is no URL with a host"
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "metadata" || host == "metadata.google.internal" {
		return "is a cloud's metadata service, which must never be sent a credential"
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return badAddress(address, allowPrivate)
	}
	if endsInNumber(host) {
		return "is neither a name nor an IP address in its usual form"
	}
	if !allowPrivate && (host == "localhost" || strings.HasSuffix(host, ".localhost")) {
		return "is this machine; set spec.allowPrivate if that is meant"
	}
	return ""
}

// endsInNumber says whether a resolver might read a host as an IPv4 address in an unusual form, as in 127.1 or
// 0x7f000001. No top-level domain is a number.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last != "" && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"))
}

func badAddress(a netip.Addr, allowPrivate bool) string {
	a = embedded(a.WithZone("").Unmap())
	switch {
	case isMetadata(a):
		return "is a cloud's metadata service, which must never be sent a credential"
	case a.IsUnspecified() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "is not the address of one host"
	case allowPrivate:
		return ""
	case a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsPrivate() || carrierGrade().Contains(a):
		return "is a loopback, link-local or private address; set spec.allowPrivate if that is meant"
	}
	return ""
}

// isMetadata knows the addresses at which clouds hand out credentials: AWS, Azure, GCP and others; AWS over IPv6;
// Alibaba; Oracle.
func isMetadata(a netip.Addr) bool {
	switch a.String() {
	case "169.254.169.254", "fd00:ec2::254", "100.100.100.200", "192.0.0.192":
		return true
	}
	return false
}

// embedded is the IPv4 address inside an IPv6 address of NAT64 (RFC 6052, 64:ff9b::/96), or the address itself.
func embedded(a netip.Addr) netip.Addr {
	if !netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
		return a
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// carrierGrade is the shared address space of RFC 6598.
func carrierGrade() netip.Prefix { return netip.MustParsePrefix("100.64.0.0/10") }
