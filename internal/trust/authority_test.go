package trust

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
)

// authority vouches for the certificates of a test.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue makes a certificate for the loopback, of a server or a client.
func (a *authority) issue(name string, usage x509.ExtKeyUsage, also ...func(*x509.Certificate)) (cert, key []byte) {
	a.t.Helper()
	private := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	for _, set := range also {
		set(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// client makes a certificate to show.
func (a *authority) client(name string, also ...func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	pair, err := tls.X509KeyPair(a.issue(name, x509.ExtKeyUsageClientAuth, also...))
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

// files are where a server finds its certificate.
type files struct {
	t *testing.T
	Options
}

func newFiles(t *testing.T) files {
	dir := t.TempDir()
	return files{t, Options{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}}
}

func (f files) write(name string, content []byte) {
	f.t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f files) pair(a *authority, name string) {
	f.t.Helper()
	cert, key := a.issue(name, x509.ExtKeyUsageServerAuth)
	f.write(f.CertFile, cert)
	f.write(f.KeyFile, key)
}

func (f files) open() *Certs {
	f.t.Helper()
	c, err := OpenCerts(f.Options)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}
