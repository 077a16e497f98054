package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateLife is longer than anybody leaves a simulator running.
const certificateLife = 30 * 24 * time.Hour

// serverCertificate loads the certificate in the directory, or makes one and writes its authority.
func (o *options) serverCertificate(now time.Time) (tls.Certificate, error) {
	if o.tlsDir != "" {
		certificate, err := tls.LoadX509KeyPair(filepath.Join(o.tlsDir, "tls.crt"), filepath.Join(o.tlsDir, "tls.key"))
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("load certificate: %w", err)
		}
		return certificate, nil
	}
	certificate, authority, err := makeCertificate(append([]string{"localhost", "127.0.0.1", "::1"}, o.tlsSANs...), now)
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := writeWhole(o.writeCA, authority); err != nil {
		return tls.Certificate{}, fmt.Errorf("write authority: %w", err)
	}
	return certificate, nil
}

// makeCertificate returns a leaf for the names, signed by an authority whose key is thrown away.
func makeCertificate(names []string, now time.Time) (leaf tls.Certificate, authority []byte, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return leaf, nil, fmt.Errorf("make authority key: %w", err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "booking-simulator authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return leaf, nil, fmt.Errorf("sign authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return leaf, nil, fmt.Errorf("make server key: %w", err)
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano() + 1), Subject: pkix.Name{CommonName: "booking-simulator"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			server.IPAddresses = append(server.IPAddresses, ip)
			continue
		}
		server.DNSNames = append(server.DNSNames, name)
	}
	der, err := x509.CreateCertificate(rand.Reader, server, ca, &key.PublicKey, caKey)
	if err != nil {
		return leaf, nil, fmt.Errorf("sign server certificate: %w", err)
	}
	leaf = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return leaf, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}), nil
}

// writeWhole writes beside and renames, so that a reader never meets half a file.
func writeWhole(path string, content []byte) error {
	beside := path + ".new"
	if err := os.WriteFile(beside, content, 0o644); err != nil {
		return err
	}
	return os.Rename(beside, path)
}
