package app

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/trust"
)

// The gateway reaches an upstream whose certificate is of an authority that no system knows, and
// only if it was told of that one.
func TestUpstreamCA(t *testing.T) {
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(r.Proto)) }))
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	defer upstream.Close()
	file := func(name string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		testkit.OK(t, os.WriteFile(path, content, 0o600))
		return path
	}
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: upstream.Certificate().Raw})
	dir := t.TempDir()
	another := trust.Options{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	writePair(t, another, 1)
	for name, c := range map[string]struct {
		ca     string
		status int
		body   string
	}{
		"its own": {file("ca.pem", own), http.StatusOK, "HTTP/2.0"},
		"both":    {file("ca.pem", append(testkit.Must(os.ReadFile(another.CertFile))(t), own...)), http.StatusOK, "HTTP/2.0"},
		"another": {another.CertFile, http.StatusBadGateway, "No upstream is available"},
		"none":    {"", http.StatusBadGateway, "No upstream is available"},
	} {
		o, log := prepared(t, Options{Gateway: &Gateway{Listen: "127.0.0.1:0", UpstreamCA: c.ca}}, perUser)
		o.Gateway.Routes = routes(t, "/plain=http://127.0.0.1:1", upstream.URL)
		a := started(t, o)
		status, body := ask(t, nil, "GET", "http://"+a.Addrs().Gateway.String()+"/", "")
		if status != c.status || !strings.Contains(body, c.body) || strings.Contains(log.String(), "certificate signed by unknown authority") != (status != http.StatusOK) {
			t.Errorf("%s: %d %s\n%s", name, status, body, log)
		}
	}
	for want, c := range map[string]struct{ ca, upstream string }{
		"--upstream-tls-ca: no upstream uses TLS": {file("ca.pem", own), "http://127.0.0.1:1"},
		"has no certificate; it must be":          {file("ca.pem", []byte("nothing")), upstream.URL},
		"--upstream-tls-ca: ":                     {filepath.Join(t.TempDir(), "nowhere"), upstream.URL},
	} {
		o, _ := prepared(t, Options{Gateway: &Gateway{Listen: "127.0.0.1:0", UpstreamCA: c.ca}}, perUser)
		o.Gateway.Routes = routes(t, c.upstream)
		a, err := New(o)
		if err == nil {
			err = a.Start(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
