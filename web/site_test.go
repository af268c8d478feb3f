package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// maxPacked is how much the whole dashboard may be on the wire, in bytes: every page, both
// languages, and the charts.
const maxPacked = 136_500

var script = strings.Repeat("console.log('weir');\n", 100)

var built = fstest.MapFS{
	"index.html":       {Data: []byte(strings.Repeat("<p>weir</p>", 50))},
	"weir.svg":         {Data: []byte("<svg/>")},
	"assets/index.js":  {Data: []byte(script)},
	"assets/index.css": {Data: []byte("p{}")},
}

func get(t *testing.T, h http.Handler, what string, headers ...string) *http.Response {
	t.Helper()
	method, target, _ := strings.Cut(what, " ")
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestSite(t *testing.T) {
	s := newSite(built)
	for _, c := range []struct {
		what, kind, cache string
		status            int
	}{
		{"GET /", "text/html; charset=utf-8", revised, 200},
		{"HEAD /", "text/html; charset=utf-8", revised, 200},
		{"GET /weir.svg", "image/svg+xml", revised, 200},
		{"GET /assets/index.js", "text/javascript; charset=utf-8", revised, 200},
		{"GET /assets/index.css", "text/css; charset=utf-8", revised, 200},
		{"GET /index.html", "text/plain; charset=utf-8", "no-store", 404},
		{"GET /assets/", "text/plain; charset=utf-8", "no-store", 404},
		{"GET /assets/../web.go", "text/plain; charset=utf-8", "no-store", 404},
		{"POST /", "text/plain; charset=utf-8", "", 405},
	} {
		r := get(t, s, c.what)
		if r.StatusCode != c.status || r.Header.Get("Content-Type") != c.kind || r.Header.Get("Cache-Control") != c.cache {
			t.Errorf("%s: %d %v", c.what, r.StatusCode, r.Header)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", c.what, name, got)
			}
		}
		if body := text(t, r); strings.HasPrefix(c.what, "HEAD") && (body != "" || r.Header.Get("Content-Length") != "550") {
			t.Errorf("%s: %q %v", c.what, body, r.Header)
		}
	}
}

// No script and no style may stand in the page itself.
func TestPolicyIsStrict(t *testing.T) {
	for _, word := range []string{"unsafe", "http", "*", "data:", "blob:"} {
		if strings.Contains(policy, word) {
			t.Errorf("the policy has %q in it", word)
		}
	}
}

func TestCompression(t *testing.T) {
	s := newSite(built)
	for accepts, want := range map[string]bool{
		"gzip": true, "br, gzip": true, "deflate, GZIP;q=0.5": true, "gzip; q=1.0": true,
		"": false, "identity": false, "gzip;q=0": false, "gzip; q=0.0": false, "x-gzip-not": false,
	} {
		r := get(t, s, "GET /assets/index.js", "Accept-Encoding", accepts)
		body := text(t, r)
		if packed := r.Header.Get("Content-Encoding") == "gzip"; packed != want {
			t.Errorf("%q: %v", accepts, r.Header)
		} else if packed {
			z, err := gzip.NewReader(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			body = string(plain)
		}
		if body != script || r.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %d bytes, %v", accepts, len(body), r.Header)
		}
	}
	if r := get(t, s, "GET /weir.svg", "Accept-Encoding", "gzip"); r.Header.Get("Content-Encoding") != "" || text(t, r) != "<svg/>" {
		t.Errorf("what would be longer is compressed: %v", r.Header)
	}
}

func TestRevalidation(t *testing.T) {
	s := newSite(built)
	plain := get(t, s, "GET /").Header.Get("ETag")
	packed := get(t, s, "GET /", "Accept-Encoding", "gzip").Header.Get("ETag")
	if plain == packed || plain == "" {
		t.Fatalf("%q and %q", plain, packed)
	}
	for _, c := range []struct {
		tag, encoding string
		status        int
	}{
		{plain, "", 304}, {"W/" + plain, "", 304}, {`"x", ` + plain, "", 304}, {"*", "", 304}, {packed, "gzip", 304},
		{packed, "", 200}, {plain, "gzip", 200}, {`"x"`, "", 200},
	} {
		r := get(t, s, "GET /", "If-None-Match", c.tag, "Accept-Encoding", c.encoding)
		if r.StatusCode != c.status || c.status == 304 && (text(t, r) != "" || r.Header.Get("ETag") == "") {
			t.Errorf("%+v: %d", c, r.StatusCode)
		}
	}
}

var elsewhere = regexp.MustCompile(`(?i)(src|href)=["']?(https?:)?//|<script(?:[^>]*)>[^<]|<style|style=|\son[a-z]+=`)

// What is in this binary: it is small, the page asks no other host for
// anything, and the policy lets everything in it through.
func TestEmbedded(t *testing.T) {
	s, ok := Handler().(*site)
	if !ok {
		t.Fatal("it is no site")
	}
	total := 0
	for name, f := range s.files {
		packed := f.packed()
		if packed == nil {
			packed = f.content
		}
		total += len(packed)
		if name == "/" {
			if found := elsewhere.Find(f.content); found != nil {
				t.Errorf("the page has %s", found)
			}
			for _, part := range regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllSubmatch(f.content, -1) {
				known := s.files[string(part[1])] != nil || bytes.HasPrefix(part[1], []byte("/v1/")) || string(part[1]) == "/metrics"
				if !known {
					t.Errorf("the page asks for %s, which is not there", part[1])
				}
			}
		}
	}
	if total > maxPacked {
		t.Errorf("the dashboard has %d bytes compressed, at most %d are to be", total, maxPacked)
	}
	t.Logf("%d files, %d bytes compressed", len(s.files), total)
}
