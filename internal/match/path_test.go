package match_test

import (
	"net/url"
	"path"
	"strings"
	"testing"
	"unsafe"

	"github.com/weirhq/weir/internal/match"
)

func TestCanonicalPath(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"/":                       "/",
		"/api/login":              "/api/login",
		"/api/login/":             "/api/login",
		"/api/login///":           "/api/login",
		"/api//login":             "/api/login",
		"///api/login":            "/api/login",
		"/api/./login":            "/api/login",
		"/api/x/../login":         "/api/login",
		"/../../api":              "/api",
		"/api/..":                 "/",
		"/api/login/.":            "/api/login",
		"/api/%6Cogin":            "/api/login",
		"/api/%2e/login":          "/api/login",
		"/api/x/%2E%2e/login":     "/api/login",
		"/api/.%2e/login":         "/login",
		"/API/login":              "/API/login",
		"/a%2fb":                  "/a%2Fb",
		"/a%2Fb":                  "/a%2Fb",
		"/a%5cb":                  "/a%5Cb",
		`/a\b`:                    "/a%5Cb",
		"/a b":                    "/a%20b",
		"/a%20b":                  "/a%20b",
		"/caf\u00e9":              "/caf%C3%A9",
		"/%zz":                    "/%25zz",
		"/%":                      "/%25",
		"/100%":                   "/100%25",
		"/%2541":                  "/%2541",
		"/a?b=/../c":              "/a",
		"?x":                      "/",
		"api/login":               "/api/login",
		"*":                       "/*",
		"/...":                    "/...",
		"/.a/..b/c.":              "/.a/..b/c.",
		"/a;v=1/b,2":              "/a;v=1/b,2",
		"/%3B%2C%3d%40%3a":        "/;,=@:",
		"/a\x00b":                 "/a%00b",
		"/" + string([]byte{200}): "/%C8",
	} {
		if got := match.CanonicalPath(in); got != want {
			t.Errorf("CanonicalPath(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCleanPathsAreLeftAlone(t *testing.T) {
	for _, clean := range []string{"/", "/api/login", "/api/login/", "/caf%C3%A9/%2F", "/a;b=c/~x/@y", "/api?q"} {
		allocs := testing.AllocsPerRun(100, func() {
			if got := match.CanonicalPath(clean); unsafe.StringData(got) != unsafe.StringData(clean) {
				t.Fatalf("%q is not a part of %q", got, clean)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", clean, allocs)
		}
	}
}

// The spelling is Go's own where that has an opinion: decoded, it is the cleaned
// path of net/url.
func FuzzCanonicalPath(f *testing.F) {
	for _, seed := range []string{"/", "", "/api//login", "/a/../b/./c", "/%6Cogin%2f%2E%2e", "/a;b\\c?d", "x", "/%", "/a%zz/\xff\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := match.CanonicalPath(in)
		if again := match.CanonicalPath(got); again != got {
			t.Fatalf("%q becomes %q becomes %q", in, got, again)
		}
		if in == "" {
			return
		}
		if got[0] != '/' || got != path.Clean(got) {
			t.Fatalf("%q becomes %q, which is not clean", in, got)
		}
		in, _, _ = strings.Cut(in, "?")
		if !strings.HasPrefix(in, "/") {
			in = "/" + in
		}
		// An escaped slash is no slash; keep it out of what Clean sees.
		in = strings.NewReplacer("%2f", "%252F", "%2F", "%252F").Replace(in)
		got = strings.ReplaceAll(got, "%2F", "%252F")
		decoded, err := url.PathUnescape(in)
		if err != nil {
			return // url denies what we take for a percent sign
		}
		if back, err := url.PathUnescape(got); err != nil || back != path.Clean(decoded) {
			t.Fatalf("%q becomes %q, which decodes to %q (%v), not %q", in, got, back, err, path.Clean(decoded))
		}
	})
}
