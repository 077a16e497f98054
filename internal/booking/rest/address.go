package rest

import (
	"fmt"
	"net/netip"
	"slices"
)

// forbiddenAddress says that a name was resolved to an address that nothing may be sent to.
type forbiddenAddress struct {
	kind string
}

func (e *forbiddenAddress) Error() string { return "address is " + e.kind }

// Where clouds hand their credentials to whoever asks from inside.
var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), // AWS, Azure, Google and most others
	netip.MustParseAddr("169.254.170.2"),   // AWS ECS tasks
	netip.MustParseAddr("169.254.170.23"),  // AWS EKS pods
	netip.MustParseAddr("fd00:ec2::254"),   // AWS over IPv6
	netip.MustParseAddr("fd00:ec2::23"),    // AWS EKS pods over IPv6
	netip.MustParseAddr("fd20:ce::254"),    // Google over IPv6
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	netip.MustParseAddr("168.63.129.16"),   // Azure's host
}

// Ranges that reach nobody on the internet (IANA's special-purpose registries), beyond what netip can tell itself.
var privateRanges = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("64:ff9b:1::/48"), // local NAT64
	netip.MustParsePrefix("2001::/32"),      // Teredo
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("fec0::/10"),
}

// checkAddress refuses an address:port that a booking API must not have.
func checkAddress(address string, allowPrivate bool) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("read dialled address: %w", err)
	}
	for _, a := range reached(parsed.Addr()) {
		switch {
		case slices.Contains(metadataAddresses, a):
			return &forbiddenAddress{kind: "a cloud metadata address, which is always forbidden"}
		case a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
			return &forbiddenAddress{kind: "unspecified, multicast or broadcast, which is always forbidden"}
		case allowPrivate:
		case a.IsLoopback():
			return &forbiddenAddress{kind: "a loopback address, which needs allowPrivate: true"}
		case a.IsLinkLocalUnicast():
			return &forbiddenAddress{kind: "a link-local address, which needs allowPrivate: true"}
		case a.IsPrivate(), slices.ContainsFunc(privateRanges, func(p netip.Prefix) bool { return p.Contains(a) }):
			return &forbiddenAddress{kind: "a private or reserved address, which needs allowPrivate: true"}
		}
	}
	return nil
}

// reached returns the address and the IPv4 address that a translator would make of it, if it holds one.
func reached(a netip.Addr) []netip.Addr {
	a = a.Unmap().WithZone("")
	addrs := []netip.Addr{a}
	if !a.Is6() {
		return addrs
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a), // NAT64
		netip.MustParsePrefix("::/96").Contains(a) && !a.IsUnspecified() && !a.IsLoopback(): // IPv4-compatible
		addrs = append(addrs, netip.AddrFrom4([4]byte(b[12:16])))
	case netip.MustParsePrefix("2002::/16").Contains(a): // 6to4
		addrs = append(addrs, netip.AddrFrom4([4]byte(b[2:6])))
	}
	return addrs
}
