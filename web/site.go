// Package web is the dashboard: a web page that shows the traffic, changes rules and
// looks up clients.
//
// It is written in Svelte and TypeScript, in src. "make web" builds it into dist, which
// is embedded, and is in the repository, so that a build of weir needs Go alone.
//
// The page uses only the HTTP API, with the token of its user, as any other client does.
// It loads nothing from other hosts.
package web

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/weirhq/weir/internal/budget"
)

// policy is what a browser may do on behalf of the page: load its own parts and call
// its own server. There is no inline script or style, so that markup which finds its
// way into the page does nothing.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// revised lets a browser keep a file, and has it ask each time whether it is still the same. The
// names do not change with the content: while two versions run behind one address, each has what
// the page of the other asks for.
const revised = "no-cache"

// site is files that never change, ready to be sent.
type site struct {
	files map[string]*file // by path, with a slash before it
}

// file is one of them.
type file struct {
	kind    string
	tag     string
	content []byte
	packed  func() []byte // compressed, at the first request; nil if it would be no shorter
}

// newSite reads a built dashboard.
func newSite(files fs.FS) *site {
	s := &site{files: map[string]*file{}}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		s.files["/"+name] = newFile(name, content)
		return nil
	})
	if err != nil {
		panic(err) // they are in the binary
	}
	s.files["/"] = s.files["/index.html"]
	delete(s.files, "/index.html") // a page has one address
	return s
}

func newFile(name string, content []byte) *file {
	sum := sha256.Sum256(content)
	f := &file{
		kind:    kinds[path.Ext(name)],
		tag:     `"` + hex.EncodeToString(sum[:8]) + `"`,
		content: content,
		packed:  sync.OnceValue(func() []byte { return budget.GzipSmall(content) }),
	}
	if f.kind == "" {
		f.kind = cmp.Or(mime.TypeByExtension(path.Ext(name)), "application/octet-stream")
	}
	return f
}

// kinds are what the machine is not asked for, whose table of types may be odd.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "The dashboard can only be read; GET it.", http.StatusMethodNotAllowed)
		return
	}
	f := s.files[r.URL.Path]
	if f == nil {
		header.Set("Cache-Control", "no-store")
		http.Error(w, "There is nothing here; the dashboard is at /.", http.StatusNotFound)
		return
	}
	f.serve(w, r)
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", revised)
	header.Set("Vary", "Accept-Encoding")
	tag, body := f.tag, f.content
	if budget.AcceptsGzip(r.Header.Values("Accept-Encoding")) {
		if packed := f.packed(); packed != nil {
			body, tag = packed, strings.TrimSuffix(tag, `"`)+`-gzip"`
			header.Set("Content-Encoding", "gzip")
		}
	}
	header.Set("ETag", tag)
	if hasTag(r.Header.Values("If-None-Match"), tag) {
		header.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", f.kind)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

// hasTag is whether the client has what it asks for already.
func hasTag(lines []string, tag string) bool {
	for given := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		given = strings.TrimPrefix(strings.TrimSpace(given), "W/")
		if given == tag || given == "*" {
			return true
		}
	}
	return false
}

//go:embed dist
var dist embed.FS

// Handler serves the dashboard at "/", and its parts beside it.
func Handler() http.Handler {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is right
	}
	return newSite(files)
}
