package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// claims are what a client may write in order to be somebody else, or to ask for
// something else. The address is a victim's.
var claims = [][]string{
	{"X-Forwarded-For", "198.51.100.1"},
	{"X-Forwarded-For", "198.51.100.1, 127.0.0.1"},
	{"Forwarded", "for=198.51.100.1"},
	{"Forwarded", `for=198.51.100.1;by=127.0.0.1, for="unknown`},
	{"X-Forwarded-For", "198.51.100.1", "Forwarded", "for=198.51.100.1"},
	{"X-Real-Ip", "198.51.100.1"},
	{"X-Client-Ip", "198.51.100.1", "True-Client-Ip", "198.51.100.1", "Cf-Connecting-Ip", "198.51.100.1"},
	{"X_Forwarded_For", "198.51.100.1", "X_Original_Uri", "/free"},
	{"X-Original-Uri", "/free"},
	{"X-Forwarded-Uri", "/free"},
	{"X-Original-Uri", "/free", "X-Forwarded-Uri", "/free"},
	{"X-Original-Url", "/free", "X-Rewrite-Url", "/free"},
	{"X-Original-Method", "GET"},
	{"X-Forwarded-Method", "GET"},
	{"X-Original-Method", "GET", "X-Forwarded-Method", "GET", "X-Http-Method-Override", "GET"},
	{"X-Original-Host", "free.example.com", "X-Forwarded-Host", "free.example.com"},
	{"X-User", "mallory"},
	{"X-Weir-Answer", "yes"},
	{"Weir-Token", "forged"},
	// A proxy that takes this at its word removes what it has written itself.
	{"Connection", "close, X-Forwarded-For, X-Original-Uri, X-Original-Method, X-Forwarded-Uri, X-Forwarded-Method, X-Forwarded-Host"},
	{"Connection", "close, X-Forwarded-For", "X-Forwarded-For", "198.51.100.1"},
}

// forgedHeaders: whatever a client sends, its real address and its real request count.
func forgedHeaders(t *testing.T, f *fleet) {
	const mallory = "127.0.0.5"
	for range 3 {
		if a := f.login(t, mallory); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Text)
		}
	}
	for _, headers := range claims {
		var a answer
		passed := f.passed(func() { a = f.login(t, mallory, headers...) })
		if a.Status != http.StatusTooManyRequests || passed != 0 {
			t.Errorf("with %q a denied client gets %d %s", headers, a.Status, a.Text)
		}
	}
	// Nor does it harm anybody, by using up what is theirs.
	for i, headers := range claims {
		from := fmt.Sprintf("127.0.1.%d", i+1)
		if a := f.login(t, from, headers...); a.Status != http.StatusOK {
			t.Errorf("with %q a new client gets %d %s", headers, a.Status, a.Text)
		}
		if left := f.left(t, "login", "ip:"+from); left != 2 {
			t.Errorf("with %q a client has %d left, want 2", headers, left)
		}
	}
	for _, victim := range []string{"ip:198.51.100.1", "ip:127.0.0.1"} {
		if left := f.left(t, "login", victim); left != 3 {
			t.Errorf("%s has %d left, want 3", victim, left)
		}
	}
	for range 3 {
		if a := f.ask(t, mallory, "GET", "/mine", "", "X-User", "victim"); a.Status != http.StatusOK {
			t.Errorf("%d %s", a.Status, a.Text)
		}
	}
	if left := f.left(t, "mine", "user:victim"); left != 2 {
		t.Errorf("the victim has %d left, want 2", left)
	}
}

// dodgedPaths: however a denied client writes the path, it does not come through.
func dodgedPaths(t *testing.T, f *fleet) {
	for _, target := range []string{
		"/api/login", "//api/login", "/api//login", "/api/login/", "/api/./login", "/x/../api/login", "/api/%6Cogin", "/api/%2e/login",
		"/api/login?", "/api/login?x=%zz", "/api/login?deny_status=200", "/api/login?deny_status=503", "/api/login?/../../free", "/api/login#x", "/api/login#?/../free",
		"http://" + f.public + "/api/login", "http://elsewhere.example.com/api/login",
	} {
		var status string
		passed := f.passed(func() {
			status = sendRaw(t, "127.0.0.5", f.public, "POST "+target+" HTTP/1.1\r\nHost: "+f.public+"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		})
		if f.name != "nginx" && strings.Contains(target, "#") && passed == 1 && strings.Contains(f.application.last.Load().(string), "login%23") {
			continue // another path, for the application, too
		}
		if passed != 0 || !strings.Contains(status, " 429 ") && !strings.Contains(status, " 400 ") {
			t.Errorf("%s: %s, and %d came through", target, status, passed)
		}
	}
	// Lines that are there twice.
	for _, lines := range []string{
		"X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: 198.51.100.2\r\n",
		"X-Original-URI: /free\r\nX-Original-URI: /free\r\n",
		"x-original-method: GET\r\nX-Original-Method: GET\r\n",
		"X-User: a\r\nX-User: b\r\n",
		"Transfer-Encoding: chunked\r\nX-Forwarded-Uri: /free\r\n",
		"Expect: 100-continue\r\nX-Forwarded-For: 198.51.100.1\r\n",
	} {
		var status string
		body := "Content-Length: 0\r\n\r\n"
		if strings.Contains(lines, "chunked") {
			body = "\r\n0\r\n\r\n"
		}
		passed := f.passed(func() {
			status = sendRaw(t, "127.0.0.5", f.public, "POST /api/login HTTP/1.1\r\nHost: "+f.public+"\r\nConnection: close\r\n"+lines+body)
		})
		if passed != 0 || !strings.Contains(status, " 429 ") {
			t.Errorf("%q: %s, and %d came through", lines, status, passed)
		}
	}
}

// largeHeads: a request that is too large to be asked about does not pass for that.
func largeHeads(t *testing.T, f *fleet) {
	long := func(bytes int) string { return "X-Long: " + strings.Repeat("x", bytes) + "\r\n" }
	many := func(lines int) string { return strings.Repeat("X-Many: 1\r\n", lines) }
	for name, head := range map[string]string{
		"one of 7 KiB": long(7 << 10), "two of 7 KiB": long(7<<10) + long(7<<10), "three": strings.Repeat(long(7<<10), 3), "six": strings.Repeat(long(7<<10), 6),
		"one of 15 KiB": long(15 << 10), "40 KiB": long(40 << 10), "200 KiB": strings.Repeat(long(4<<10), 50),
		"60 lines": many(60), "70 lines": many(70), "98 lines": many(98), "120 lines": many(120), "2000 lines": many(2000),
	} {
		for _, query := range []string{"", "?" + strings.Repeat("q", 7<<10), "?" + strings.Repeat("q", 14<<10)} {
			passed := f.passed(func() {
				sendRaw(t, "127.0.0.5", f.public, "POST /api/login"+query+" HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n"+head+"\r\n")
			})
			if passed != 0 {
				t.Errorf("%s and a query of %d bytes came through", name, len(query))
			}
		}
	}
	if a := f.ask(t, "127.0.0.6", "GET", "/free", ""); a.Status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.Status, a.Text)
	}
}
