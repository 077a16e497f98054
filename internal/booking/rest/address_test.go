package rest

import (
	"errors"
	"net/netip"
	"testing"
)

func TestScenario16AddressesThatReachInwardAreForbidden(t *testing.T) {
	const (
		always  = "always forbidden"
		private = "needs allowPrivate"
		public  = "allowed"
	)
	cases := map[string]string{
		"127.0.0.1": private, "127.8.8.8": private, "::1": private, "::ffff:127.0.0.1": private,
		"10.0.0.1": private, "172.16.0.1": private, "172.31.255.255": private, "192.168.1.1": private,
		"169.254.1.1": private, "fe80::1": private, "fe80::1%lo": private, "fc00::1": private, "fd12::1": private,
		"100.64.0.1": private, "198.18.0.1": private, "192.0.2.1": private, "240.0.0.1": private, "0.1.2.3": private,
		"64:ff9b::a00:1": private, "2002:a00:1::": private, "::10.0.0.1": private, "2001:db8::1": private,
		"fec0::1": private, "2001::1": private, "64:ff9b:1::1": private,
		"169.254.169.254": always, "::ffff:169.254.169.254": always, "64:ff9b::a9fe:a9fe": always,
		"2002:a9fe:a9fe::": always, "169.254.170.2": always, "fd00:ec2::254": always, "fd00:ec2::254%eth0": always,
		"100.100.100.200": always, "168.63.129.16": always, "192.0.0.192": always, "fd20:ce::254": always,
		"0.0.0.0": always, "::": always, "224.0.0.1": always, "ff02::1": always, "255.255.255.255": always,
		"8.8.8.8": public, "172.32.0.1": public, "2606:4700::1111": public, "::ffff:8.8.8.8": public,
		"64:ff9b::808:808": public, "100.128.0.1": public,
	}
	for address, want := range cases {
		t.Run(address, func(t *testing.T) {
			hostPort := netip.AddrPortFrom(netip.MustParseAddr(address), 443).String()
			var forbidden *forbiddenAddress
			strict := errors.As(checkAddress(hostPort, false), &forbidden)
			lenient := errors.As(checkAddress(hostPort, true), &forbidden)
			if strict != (want != public) || lenient != (want == always) {
				t.Errorf("forbidden = %v, with allowPrivate %v, want it %s", strict, lenient, want)
			}
		})
	}
	if checkAddress("not an address", true) == nil {
		t.Error("what can't be read as an address is let through")
	}
}
