package testredis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
)

// StartTLS starts a server that speaks TLS only, and returns also the file with the
// certificate of the authority that vouches for it. It asks clients for none.
func StartTLS(t testing.TB, args ...string) (server *Server, caFile string) {
	t.Helper()
	s := newServer(t, args...)
	caFile, certFile, keyFile := filepath.Join(s.dir, "ca.pem"), filepath.Join(s.dir, "cert.pem"), filepath.Join(s.dir, "key.pem")
	authority := Certify(t, caFile, certFile, keyFile)
	s.tls = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}
	s.tls.RootCAs.AddCert(authority)
	s.args = append(s.args, "--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-ca-cert-file", caFile, "--tls-auth-clients", "no")
	launch(t, s)
	return s, caFile
}

// TLS is how to talk to the server; nil means plainly.
func (s *Server) TLS() *tls.Config { return s.tls.Clone() }

// Certify writes an authority, and a certificate of it for the loopback, for servers and
// clients.
func Certify(t testing.TB, caFile, certFile, keyFile string) *x509.Certificate {
	t.Helper()
	caKey := testkit.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	key := testkit.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "testredis authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	caDER := testkit.Must(x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey))(t)
	authority := testkit.Must(x509.ParseCertificate(caDER))(t)
	leafDER := testkit.Must(x509.CreateCertificate(rand.Reader, leaf, authority, &key.PublicKey, caKey))(t)
	keyDER := testkit.Must(x509.MarshalPKCS8PrivateKey(key))(t)
	for _, f := range []struct {
		name, kind string
		der        []byte
	}{{caFile, "CERTIFICATE", caDER}, {certFile, "CERTIFICATE", leafDER}, {keyFile, "PRIVATE KEY", keyDER}} {
		testkit.OK(t, os.WriteFile(f.name, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der}), 0o600))
	}
	return authority
}
