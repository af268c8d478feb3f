package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/trust"
)

// writePair writes a certificate that signs itself, and its key.
func writePair(t *testing.T, o trust.Options, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{o.CertFile: {Type: "CERTIFICATE", Bytes: cert}, o.KeyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// serialOf returns the serial number of the API's current certificate.
func serialOf(t *testing.T, a *App) int64 {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	resp, err := (&http.Client{Transport: transport}).Get("https://" + a.Addrs().HTTP.String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		t.Errorf("%s %s", resp.Proto, resp.Status)
	}
	return resp.TLS.PeerCertificates[0].SerialNumber.Int64()
}

// A renewed certificate is used within two seconds, without a signal.
func TestRenewal(t *testing.T) {
	if lookEvery > time.Second {
		t.Errorf("certificates are looked at every %s; two seconds are promised", lookEvery)
	}
	dir := t.TempDir()
	pair := trust.Options{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	writePair(t, pair, 1)
	o, _ := prepared(t, Options{TLS: pair}, perUser)
	a := started(t, o)
	writePair(t, pair, 2)
	start := time.Now()
	for serialOf(t, a) != 2 {
		if time.Since(start) > 2*time.Minute {
			t.Fatal("the new certificate was never used")
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("in use after %s", time.Since(start))
}

// The API speaks TLS with the certificate that is there now, and a bad one changes
// nothing.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	pair := trust.Options{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	writePair(t, pair, 1)
	o, _ := prepared(t, Options{TLS: pair}, perUser)
	a := started(t, o)
	serial := func() int64 { return serialOf(t, a) }
	if got := serial(); got != 1 {
		t.Errorf("the certificate is %d, want 1", got)
	}
	writePair(t, pair, 2)
	if err := a.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != 2 {
		t.Errorf("after a reload the certificate is %d, want 2", got)
	}
	if err := os.WriteFile(pair.KeyFile, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(t.Context()); err == nil {
		t.Error("a bad key went unnoticed")
	}
	if got := serial(); got != 2 {
		t.Errorf("after a bad reload the certificate is %d, want 2", got)
	}
	if status, _ := ask(t, nil, "GET", "http://"+a.Addrs().HTTP.String()+"/healthz", ""); status != http.StatusBadRequest {
		t.Errorf("plain HTTP is answered %d", status)
	}
}
