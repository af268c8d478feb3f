package main

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/trust"
)

// meanwhile does something once, just before a request is answered.
type meanwhile struct {
	next   http.Handler
	method string
	do     func()
	once   sync.Once
}

func (m *meanwhile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == m.method {
		m.once.Do(m.do)
	}
	m.next.ServeHTTP(w, r)
}

// pemFile writes a certificate.
func pemFile(t *testing.T, der []byte) string {
	return file(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

func TestTLS(t *testing.T) {
	r := newRunning(t, loginAndAPI, "")
	r.Server = httptest.NewUnstartedServer(r.handler)
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.StartTLS()
	defer r.Close()
	ca := pemFile(t, r.Certificate().Raw)
	r.on(t, "rules", "list").want(t, 1, "", `^weir: the certificate of https://\S+ is not trusted; give its CA with --ca`)
	r.on(t, "rules", "list", "--ca", ca).want(t, 0, "login", "")
	r.on(t, "bench", "--ca", ca, "--count", "20", "--concurrency", "2").want(t, 0, `answered +20 `, "")
	r.on(t, "rules", "list", "--ca", file(t, "x.pem", "nothing")).want(t, 2, "", `--ca, .*x.pem has no certificate`)
	r.on(t, "rules", "list", "--ca", "nowhere.pem").want(t, 2, "", "no such file")
	r.on(t, "rules", "list", "--ca", ca, "--cert", ca, "--key", ca).want(t, 2, "", `--cert, --key: .* cannot be used together`)
	plain := serveRules(t, loginAndAPI, "")
	command(t, "", "rules", "list", "--server", "https"+plain.URL[len("http"):]).want(t, 1, "", `does not use TLS; write http:// in --server`)
}

func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key, ca := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")
	makeCertificate(t, cert, key, ca)
	c, err := trust.OpenCerts(trust.Options{CertFile: cert, KeyFile: key, ClientCAFile: ca})
	if err != nil {
		t.Fatal(err)
	}
	r := newRunning(t, loginAndAPI, "")
	r.Server = httptest.NewUnstartedServer(r.handler)
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.Listener = tls.NewListener(r.Listener, c.TLS())
	r.Start()
	defer r.Close()
	server := "https" + r.URL[len("http"):]
	command(t, "", "rules", "list", "--server", server, "--ca", ca).want(t, 1, "", `^weir: https://\S+ does not accept this client; give a client certificate with --cert and --key`)
	command(t, "", "rules", "list", "--server", server, "--ca", ca, "--cert", cert, "--key", key).want(t, 0, "login", "")
}
