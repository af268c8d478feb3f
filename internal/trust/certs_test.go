package trust

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// serve answers every request with the name of the client's certificate, and returns
// the address.
func serve(t *testing.T, c *Certs) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{TLSConfig: c.TLS(), ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		io.WriteString(w, name)
	})}
	done := make(chan error, 1)
	go func() { done <- s.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return listener.Addr().String()
}

// dial shakes hands, and returns the name of the server's certificate.
func dial(t *testing.T, addr string, a *authority, o *tls.Config) (*tls.Conn, string) {
	t.Helper()
	conn, name, err := tryDial(addr, a, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, name
}

func tryDial(addr string, a *authority, o *tls.Config) (*tls.Conn, string, error) {
	config := o.Clone()
	config.RootCAs = x509.NewCertPool()
	config.RootCAs.AddCert(a.cert)
	conn, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return nil, "", err
	}
	return conn, conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

// ask sends a request on a connection and returns the answer.
func ask(conn net.Conn) (string, error) {
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return "", err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

func TestReloadUnderConnections(t *testing.T) {
	a, f := newAuthority(t), newFiles(t)
	f.pair(a, "first")
	c := f.open()
	addr := serve(t, c)
	old, name := dial(t, addr, a, &tls.Config{})
	if name != "first" {
		t.Fatalf("the server is %q", name)
	}
	if changed, err := c.Reload(); changed || err != nil {
		t.Fatalf("Reload of the same files = %v, %v", changed, err)
	}
	f.pair(a, "second")
	if changed, err := c.Reload(); !changed || err != nil {
		t.Fatalf("Reload = %v, %v", changed, err)
	}
	if _, name := dial(t, addr, a, &tls.Config{}); name != "second" {
		t.Errorf("a new connection has the certificate %q", name)
	}
	if got, err := ask(old); err != nil || got != "nobody" {
		t.Errorf("the old connection answers %q, %v", got, err)
	}
}

func TestBadFilesKeepTheOldPair(t *testing.T) {
	a, f := newAuthority(t), newFiles(t)
	f.ClientCAFile = filepath.Join(t.TempDir(), "clients.pem")
	f.pair(a, "good")
	f.write(f.ClientCAFile, a.pem)
	c := f.open()
	addr := serve(t, c)
	expires := c.current.Load().pair.Leaf.NotAfter
	for _, change := range []func(){
		func() { f.write(f.CertFile, nil) },
		func() { f.pair(a, "half"); f.tear(a) },
		func() { f.pair(a, "other"); f.write(f.ClientCAFile, []byte("nonsense")) },
	} {
		change()
		if changed, err := c.Reload(); changed || err == nil {
			t.Fatalf("Reload = %v, %v", changed, err)
		}
		if _, name := dial(t, addr, a, &tls.Config{Certificates: []tls.Certificate{a.client("x")}}); name != "good" {
			t.Errorf("the server is %q", name)
		}
	}
	if !c.current.Load().pair.Leaf.NotAfter.Equal(expires) {
		t.Error("the certificate was replaced")
	}
}

// tear replaces the certificate and leaves the key.
func (f files) tear(a *authority) {
	cert, _ := a.issue("torn", x509.ExtKeyUsageServerAuth)
	f.write(f.CertFile, cert)
}

func TestMutualTLS(t *testing.T) {
	a, stranger, f := newAuthority(t), newAuthority(t), newFiles(t)
	f.ClientCAFile = filepath.Join(t.TempDir(), "clients.pem")
	f.pair(a, "server")
	f.write(f.ClientCAFile, a.pem)
	c := f.open()
	addr := serve(t, c)
	// A client with a cache of sessions would come back without its certificate.
	config := &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	as := func(certificates ...tls.Certificate) (string, error) {
		config := config.Clone()
		config.Certificates = certificates
		conn, _, err := tryDial(addr, a, config)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return ask(conn)
	}
	alice := a.client("alice")
	for range 2 {
		if got, err := as(alice); err != nil || got != "alice" {
			t.Fatalf("alice gets %q, %v", got, err)
		}
	}
	if got, err := as(); err == nil {
		t.Errorf("a client without a certificate gets %q", got)
	}
	if got, err := as(stranger.client("alice")); err == nil {
		t.Errorf("a client of another authority gets %q", got)
	}
	serverPair, err := tls.X509KeyPair(a.issue("server", x509.ExtKeyUsageServerAuth))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := as(serverPair); err == nil {
		t.Errorf("a client with a server's certificate gets %q", got)
	}

	f.write(f.ClientCAFile, stranger.pem)
	if changed, err := c.Reload(); !changed || err != nil {
		t.Fatalf("Reload = %v, %v", changed, err)
	}
	if got, err := as(alice); err == nil {
		t.Errorf("a client whose authority was removed gets %q", got)
	}
	if got, err := as(stranger.client("bob")); err != nil || got != "bob" {
		t.Errorf("a client of the new authority gets %q, %v", got, err)
	}
}

func TestVersionsAndProtocols(t *testing.T) {
	a, f := newAuthority(t), newFiles(t)
	f.pair(a, "server")
	addr := serve(t, f.open())
	if _, _, err := tryDial(addr, a, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is taken")
	}
	conn, _ := dial(t, addr, a, &tls.Config{MaxVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	if got := conn.ConnectionState(); got.Version != tls.VersionTLS12 || got.NegotiatedProtocol != "http/1.1" {
		t.Errorf("version %x, protocol %q", got.Version, got.NegotiatedProtocol)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get("https://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.ProtoMajor != 2 || answer.TLS.Version != tls.VersionTLS13 {
		t.Errorf("version %x, protocol %s", answer.TLS.Version, answer.Proto)
	}
}

// Connections come while the files change; none fails, and each sees a whole pair.
func TestReloadWhileClientsCome(t *testing.T) {
	a, f := newAuthority(t), newFiles(t)
	f.pair(a, "server")
	c := f.open()
	addr := serve(t, c)
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 10 {
				conn, name, err := tryDial(addr, a, &tls.Config{})
				if err != nil || name != "server" {
					t.Errorf("%q, %v", name, err)
					return
				}
				conn.Close()
			}
		})
	}
	for range 10 {
		f.pair(a, "server")
		if changed, err := c.Reload(); !changed || err != nil {
			t.Errorf("Reload = %v, %v", changed, err)
		}
	}
	clients.Wait()
}
