package gateway

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// telling is an upstream that answers with the protocol by which a request came.
func telling(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }

// secure starts an upstream with TLS, and returns how to trust it.
func secure(t *testing.T, h2 bool, serve http.HandlerFunc) (string, *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(serve)
	s.EnableHTTP2 = h2
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.URL, &tls.Config{RootCAs: roots}
}

// Only a WebSocket can be upgraded: over HTTP/2, for example, any number of unchecked
// requests could follow.
func TestOtherUpgrades(t *testing.T) {
	url, last := seen(t)
	b := newStand(t, setup{}, url)
	for _, protocol := range []string{"h2c", "TLS/1.0", "websocket, h2c", "h2c, websocket", "websocket/13", "x"} {
		answer := b.raw("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: " + protocol + "\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
			t.Errorf("%s: answered %.60q", protocol, answer)
		}
		if h := last().Header; h["Upgrade"] != nil || h["Connection"] != nil || h["Http2-Settings"] != nil {
			t.Errorf("%s: the upstream saw %v", protocol, h)
		}
	}
	if answer := b.raw("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: \xff\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
		t.Errorf("an upgrade to rubbish: answered %.60q", answer)
	}
}

// An upstream that switches protocols by itself would open a way past the limits.
func TestUnaskedSwitch(t *testing.T) {
	const ask = "Connection: Upgrade\r\nUpgrade: "
	for _, c := range []struct{ asked, answered string }{
		{"", ""}, {"", ask + "websocket\r\n"}, {ask + "websocket\r\n", ask + "h2c\r\n"}, {ask + "websocket\r\n", ""},
		{ask + "websocket\r\n", "Upgrade: websocket\r\n"},
	} {
		closed := make(chan struct{})
		b := newStand(t, setup{}, rude(t, func(conn net.Conn, in *bufio.Reader, _ *http.Request) {
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n"+c.answered+"\r\n")
			io.Copy(io.Discard, in)
			close(closed)
		}))
		answer := b.raw("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + c.asked + "\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 502 ") {
			t.Errorf("%q: answered %.60q", c, answer)
		}
		select {
		case <-closed:
		case <-time.After(patience):
			t.Errorf("%q: the connection to the upstream stays open", c)
		}
	}
}

// The client's protocol and the upstream's have nothing to do with each other.
func TestProtocols(t *testing.T) {
	h2c := httptest.NewUnstartedServer(http.HandlerFunc(telling))
	h2c.Config.Protocols = new(http.Protocols)
	h2c.Config.Protocols.SetUnencryptedHTTP2(true)
	h2c.Start()
	t.Cleanup(h2c.Close)
	both, config := secure(t, true, telling)
	old, oldConfig := secure(t, false, telling)
	for _, up := range []struct {
		url    string
		config *tls.Config
		want   string
	}{
		{upstream(t, telling), nil, "HTTP/1.1"},
		{both, config, "HTTP/2.0"},
		{old, oldConfig, "HTTP/1.1"},
		{"h2c://" + strings.TrimPrefix(h2c.URL, "http://"), nil, "HTTP/2.0"},
	} {
		for client, arrange := range map[string]func(*httptest.Server){
			"HTTP/1.1": func(*httptest.Server) {},
			"HTTP/2.0": func(s *httptest.Server) { s.EnableHTTP2, s.TLS = true, new(tls.Config) },
		} {
			b := newStand(t, setup{options: Options{TLS: up.config}, server: arrange}, up.url)
			for range 3 {
				got := b.get("/")
				if got.body != up.want || got.Proto != client {
					t.Errorf("%s to %s: %q by %s (%d), want %s", client, up.url, got.body, got.Proto, got.StatusCode, up.want)
				}
			}
			b.client.CloseIdleConnections()
		}
	}
}

// An upstream with an untrusted certificate is not used.
func TestUntrustedUpstream(t *testing.T) {
	url, _ := secure(t, true, telling)
	b := newStand(t, setup{}, url)
	if got := b.get("/"); got.StatusCode != 502 || got.Header.Get("Retry-After") == "" {
		t.Errorf("answered %d", got.StatusCode)
	}
}

// What is unclear to net/http about where a request ends never reaches an upstream, and
// what is clear reaches it in one unmistakable form.
func TestSmuggling(t *testing.T) {
	url, last := seen(t)
	b := newStand(t, setup{}, url)
	const head = "POST / HTTP/1.1\r\nHost: x\r\n"
	smuggled := "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, text := range map[string]string{
		"two lengths":                  head + "Content-Length: 0\r\nContent-Length: 40\r\n\r\n" + smuggled,
		"a list of lengths":            head + "Content-Length: 0, 40\r\n\r\n" + smuggled,
		"a signed length":              head + "Content-Length: +0\r\n\r\n" + smuggled,
		"a length with a space":        head + "Content-Length : 40\r\n\r\n" + smuggled,
		"an unknown coding":            head + "Transfer-Encoding: xchunked\r\n\r\n" + smuggled,
		"two codings":                  head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled,
		"a list of codings":            head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"a space before the colon":     head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"a name with a tab":            head + "Transfer\tEncoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"a carriage return in a value": head + "X: a\rTransfer-Encoding: chunked\r\n\r\n" + smuggled,
		"a zero byte in a value":       head + "X: a\x00b\r\n\r\n" + smuggled,
		"no host":                      "POST / HTTP/1.1\r\n\r\n" + smuggled,
		"two hosts":                    head + "Host: y\r\n\r\n" + smuggled,
		"a host with a slash":          "POST / HTTP/1.1\r\nHost: a/b\r\n\r\n" + smuggled,
	} {
		answer := b.raw(text)
		if status := answer[:min(12, len(answer))]; status != "HTTP/1.1 400" && status != "HTTP/1.1 501" || strings.Count(answer, "HTTP/1.1 ") != 1 {
			t.Errorf("%s: answered %.200q", name, answer)
		}
	}
	// The length is ignored, as it must be, and not passed on.
	b.raw(head + "Connection: close\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled)
	if r := last(); r.Header.Get("Content-Length") != "" || r.URL.Path != "/" || r.ContentLength > 0 {
		t.Errorf("the upstream saw %v, length %d", r.Header, r.ContentLength)
	}
	// A folded line is one value, in one line.
	b.raw("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n")
	if r := last(); r.Header.Get("X") != "a Transfer-Encoding: chunked" || len(r.TransferEncoding) > 0 {
		t.Errorf("the upstream saw %v", r.Header)
	}
	// Two requests on one connection are two, each with its own body.
	answer := b.raw(head + "Content-Length: 5\r\n\r\nhello" + "GET /second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if first, second := last(), last(); first.URL.Path != "/" || second.URL.Path != "/second" || strings.Count(answer, "HTTP/1.1 200") != 2 {
		t.Errorf("%s, %s, %q", first.URL, second.URL, answer)
	}
}
