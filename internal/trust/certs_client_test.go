package trust

import (
	"crypto/x509"
	"path/filepath"
	"strings"
	"testing"
)

// What a client shows and whom it trusts is as the files say.
func TestClientCert(t *testing.T) {
	a, f := newAuthority(t), newFiles(t)
	f.ClientCAFile = filepath.Join(t.TempDir(), "ca.pem")
	f.write(f.ClientCAFile, a.pem)
	f.pair(a, "server")
	cert, key := a.issue("client", x509.ExtKeyUsageClientAuth)
	c := ClientCert{CAFile: f.ClientCAFile, CertFile: f.CertFile + ".client", KeyFile: f.KeyFile + ".client"}
	f.write(c.CertFile, cert)
	f.write(c.KeyFile, key)
	config, err := c.TLS()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil || leaf.Subject.CommonName != "client" || config.RootCAs == nil {
		t.Errorf("%v: %v", err, leaf.Subject)
	}
	if c.IsZero() || !(ClientCert{}).IsZero() {
		t.Error("IsZero is wrong")
	}
	if config, err := (ClientCert{ServerName: "x"}).TLS(); err != nil || config.ServerName != "x" || config.RootCAs != nil || config.Certificates != nil {
		t.Errorf("%+v, %v", config, err)
	}
	large := f.KeyFile + ".large"
	f.write(large, make([]byte, maxFile+1))
	for want, c := range map[string]ClientCert{
		"set both files":          {CertFile: f.CertFile},
		"cannot be used together": {CertFile: f.CertFile, KeyFile: c.KeyFile},
		"has no certificate":      {CAFile: f.KeyFile},
		"larger than 1 MiB":       {CAFile: large},
		"no such file":            {CertFile: f.CertFile, KeyFile: "nowhere"},
	} {
		if _, err := c.TLS(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}
