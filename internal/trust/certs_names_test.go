package trust

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// Of the clients that the authority vouches for, only those with one of the names come
// in, whichever kind of name it is.
func TestClientNames(t *testing.T) {
	a, stranger, f := newAuthority(t), newAuthority(t), newFiles(t)
	f.ClientCAFile = filepath.Join(t.TempDir(), "clients.pem")
	f.ClientSANs = []string{"envoy.example.com", "192.0.2.7", "spiffe://mesh/ns/edge", "ops@example.com"}
	f.pair(a, "server")
	f.write(f.ClientCAFile, a.pem)
	addr := serve(t, f.open())
	as := func(certificates ...tls.Certificate) (string, error) {
		conn, _, err := tryDial(addr, a, &tls.Config{Certificates: certificates})
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return ask(conn)
	}
	dns := func(names ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, names }
	}
	uri := func(text string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "mesh", Path: text}} }
	}
	for name, c := range map[string]struct {
		cert tls.Certificate
		in   bool
	}{
		"dns":              {a.client("x", dns("other.example.com", "envoy.example.com")), true},
		"wildcard":         {a.client("x", dns("*.example.com")), true},
		"ip":               {a.client("x", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 7)} }), true},
		"uri":              {a.client("x", uri("/ns/edge")), true},
		"e-mail":           {a.client("x", func(c *x509.Certificate) { c.EmailAddresses = []string{"ops@example.com"} }), true},
		"another dns":      {a.client("x", dns("other.example.com")), false},
		"another uri":      {a.client("x", uri("/ns/edge2")), false},
		"common name only": {a.client("envoy.example.com"), false},
		"no name":          {a.client("x", dns()), false},
		"stranger":         {stranger.client("x", dns("envoy.example.com")), false},
	} {
		if got, err := as(c.cert); (err == nil) != c.in {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := as(); err == nil {
		t.Errorf("a client without a certificate gets %q", got)
	}
}

func TestNamesNeedAnAuthority(t *testing.T) {
	a, f := newAuthority(t), newFiles(t)
	f.ClientSANs = []string{"envoy.example.com"}
	f.pair(a, "server")
	if _, err := OpenCerts(f.Options); err == nil || !strings.Contains(err.Error(), "set the client CA file") {
		t.Error(err)
	}
	if (&Options{ClientSANs: f.ClientSANs}).IsZero() || !(&Options{}).IsZero() {
		t.Error("IsZero")
	}
}
