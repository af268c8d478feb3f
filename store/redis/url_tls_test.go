package redis

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// fileOf writes text into a new file and returns its path.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustParseURL(t *testing.T, url string) Config {
	t.Helper()
	c, err := ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestURLOfServer(t *testing.T) {
	server := testredis.Start(t)
	admin := clientOf(t, server)
	if err := admin.Do(t.Context(), admin.B().Arbitrary("CONFIG", "SET", "requirepass", "p/a@s").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{
		"redis://:p%2Fa%40s@" + server.Addr + "/3",
		"redis://default:p%2Fa%40s@" + server.Addr + "/3",
		"redis://" + server.Addr + "/3?password_file=" + fileOf(t, "p/a@s\r\n"),
		"redis://default@" + server.Addr + "/3?password_file=" + fileOf(t, "p/a@s"),
	} {
		client, err := rueidis.NewClient(mustParseURL(t, url).Client)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		info, err := client.Do(t.Context(), client.B().ClientInfo().Build()).ToString()
		client.Close()
		if err != nil || !strings.Contains(info, " name=weir ") || !strings.Contains(info, " db=3 ") {
			t.Errorf("%s is connected as %q, %v; want the name weir and database 3", url, info, err)
		}
	}

	// What Redis says to a wrong password is in the first error, and in the cause of the outage.
	for user, want := range map[string]string{":hunter2@": "WRONGPASS", "": "NOAUTH"} {
		s, err := Open("redis://" + user + server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		_, taken := s.Take(t.Context(), nil, weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1})
		since, cause := s.Outage()
		for _, err := range []error{s.Ping(t.Context()), taken, cause} {
			if !errors.Is(err, weir.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), want) || strings.Contains(fmt.Sprint(err), "hunter2") || since.IsZero() {
				t.Errorf("%s: %v, want %s", user, err, want)
			}
		}
		s.Close()
	}
}

func TestURLOfUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a@b.sock")
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	c := mustParseURL(t, "redis+unix://u:hunter2@"+strings.ReplaceAll(path, "@", "%40")+"?db=2").Client
	if !c.ForceSingleClient || c.SelectDB != 2 || c.Username != "u" || c.Password != "hunter2" {
		t.Errorf("got %+v", c)
	}
	conn, err := c.DialCtxFn(t.Context(), c.InitAddress[0], &c.Dialer, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// pemOf returns a server's certificate and key in PEM.
func pemOf(t *testing.T, server *httptest.Server) (cert, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	key = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return cert, key
}

func TestURLTLS(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	cert, key := pemOf(t, server)
	certFile, keyFile := fileOf(t, cert), fileOf(t, key)
	url := "rediss://" + server.Listener.Addr().String()
	for options, want := range map[string]string{
		"":                        "certificate",
		"?tls_insecure=true":      "",
		"?tls_ca=" + certFile:     "",
		"?tls_server_name=a.test": "certificate",
		"?tls_ca=" + certFile + "&tls_server_name=example.com": "",
		"?tls_ca=" + certFile + "&tls_server_name=a.test":      "a.test",
	} {
		conn, err := tls.Dial("tcp", server.Listener.Addr().String(), mustParseURL(t, url+options).Client.TLSConfig)
		if err == nil {
			conn.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", options, err, want)
		}
	}

	c := mustParseURL(t, url+"?tls_cert="+certFile+"&tls_key="+keyFile).Client.TLSConfig
	if len(c.Certificates) != 1 || string(c.Certificates[0].Certificate[0]) != string(server.Certificate().Raw) {
		t.Errorf("the certificates are %v", c.Certificates)
	}
	for options, want := range map[string]string{
		"?tls_cert=" + certFile + "&tls_key=" + certFile: "redis: the files of the URL's options tls_cert and tls_key are not a PEM certificate and its key: tls: found a certificate rather than a key in the PEM for the private key",
		"?tls_cert=" + certFile + "&tls_key=none":        "redis: the file of the URL's option tls_key cannot be read (no such file or directory); write its whole path",
		"?tls_cert=none&tls_key=" + keyFile:              "redis: the file of the URL's option tls_cert cannot be read (no such file or directory); write its whole path",
		"?tls_ca=" + keyFile:                             "redis: the file of the URL's option tls_ca has no certificate; it must begin with -----BEGIN CERTIFICATE-----",
	} {
		if _, err := ParseURL(url + options); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", options, err, want)
		}
	}
}

func TestURLSentinelPasswordFile(t *testing.T) {
	c := mustParseURL(t, "redis+sentinel://a/main?sentinel_user=s&sentinel_password_file="+fileOf(t, "hunter2\n")).Client
	if c.Sentinel.Username != "s" || c.Sentinel.Password != "hunter2" || c.Password != "" {
		t.Errorf("the sentinels get %q and %q", c.Sentinel.Username, c.Sentinel.Password)
	}
}
