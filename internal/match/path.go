package match

import (
	"cmp"
	"slices"
	"strings"
)

// CanonicalPath returns the one spelling by which a path is matched, so that a
// client cannot dodge a rule for /api/login by writing /api//login, /api/./login,
// /api/%6Cogin or /api/login/.
//
// Every byte has one spelling: what RFC 3986 allows in a segment stands for itself,
// anything else is an escape in capitals. Dot segments are resolved, empty ones
// left out, and a slash at the end with them. A query is cut off. Capitals differ
// from small letters, unless [Compiler.IgnoreCase]. An escaped slash, %2F, is part
// of its segment. The path of an unknown request, "", stays as it is.
//
// Servers do not agree on how to read paths that need any of this, or that have
// parameters as in /login;v=1. [Index.Find] tries the other common readings, too,
// and a rule applies if it matches any of them: too many rules for a strange request
// are the better mistake.
//
// A path that is already canonical is returned as it is, without allocating.
func CanonicalPath(path string) string {
	return readPath(path, false).canonical()
}

// written is a path in which every byte has its one spelling, and what is odd
// about its structure.
type written struct {
	path string
	odd  oddity

	// undotted is the path after its dots were resolved before its escapes were read; "" if
	// that is the canonical path.
	undotted string
}

// oddity is a set of things that servers read in different ways.
type oddity uint8

const (
	misspelt oddity = 1 << iota // a byte that is not in its one spelling
	dots                        // a segment that is . or ..
	gaps                        // an empty segment
	loose                       // an escaped slash or backslash, or parameters
	tail                        // a dot or a space at the end
)

// readPath spells a path. It cuts off the query and slashes at the end, neither of
// which ever matters.
func readPath(path string, ignoreCase bool) written {
	if path == "" {
		return written{}
	}
	if i := strings.IndexByte(path, '?'); i >= 0 {
		path = path[:i]
	}
	path = trimSlashes(path)
	odd := scanPath(path, ignoreCase)
	if odd&misspelt == 0 {
		return written{path: path, odd: odd}
	}
	w := written{path: trimSlashes(spellPath(path, ignoreCase))}
	if w.odd = scanPath(w.path, ignoreCase); w.odd&dots != 0 {
		w.undotted = trimSlashes(spellPath(resolveDots("/"+path, true), ignoreCase))
	}
	return w
}

// trimSlashes removes slashes at the end.
func trimSlashes(path string) string {
	for len(path) > 1 && path[len(path)-1] == '/' {
		path = path[:len(path)-1]
	}
	return path
}

// What a byte of a path is.
const (
	foreign byte = iota // to be escaped
	plain
	capital
	slash
	percent
	semicolon
)

var pathClass = func() (table [256]byte) {
	for _, b := range []byte("abcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,=:@") {
		table[b] = plain
	}
	for b := 'A'; b <= 'Z'; b++ {
		table[b] = capital
	}
	table['/'], table['%'], table[';'] = slash, percent, semicolon
	return table
}()

// scanPath finds out what is odd about a path.
func scanPath(path string, ignoreCase bool) (odd oddity) {
	if path == "" || path[0] != '/' {
		return misspelt
	}
	for i := 0; i < len(path); i++ {
		switch pathClass[path[i]] {
		case plain:
		case slash:
			odd |= segmentOddity(path[i+1:])
		case capital:
			if ignoreCase {
				odd |= misspelt
			}
		case semicolon:
			odd |= loose
		case percent:
			b, ok := unescape(path[i:])
			if !ok || mayStand(b) || path[i+1] >= 'a' || path[i+2] >= 'a' {
				return misspelt
			}
			if b == '/' || b == '\\' {
				odd |= loose
			}
			i += 2
		default:
			return misspelt
		}
	}
	if trimTail(path) != path {
		odd |= tail
	}
	return odd
}

// trimTail removes dots and spaces at the end.
func trimTail(path string) string {
	for {
		before := path
		path = strings.TrimSuffix(strings.TrimRight(path, "."), "%20")
		if path == before {
			return path
		}
	}
}

// segmentOddity looks at the beginning of a segment.
func segmentOddity(rest string) oddity {
	if rest == "" || rest[0] != '.' && rest[0] != '/' {
		return 0
	}
	if rest[0] == '/' {
		return gaps
	}
	if segment, _, _ := strings.Cut(rest, "/"); segment == "." || segment == ".." {
		return dots
	}
	return 0
}

// mayStand is whether a byte of a segment stands for itself.
func mayStand(b byte) bool {
	k := pathClass[b]
	return k == plain || k == capital || k == semicolon
}

// spellPath gives every byte its one spelling, and the path a slash to begin with.
func spellPath(path string, ignoreCase bool) string {
	out := make([]byte, 0, len(path)+16)
	if path == "" || path[0] != '/' {
		out = append(out, '/')
	}
	for i := 0; i < len(path); i++ {
		b := path[i]
		if b == '/' {
			out = append(out, b)
			continue
		}
		if b == '%' {
			if decoded, ok := unescape(path[i:]); ok {
				b, i = decoded, i+2
			}
		}
		out = appendByte(out, b, ignoreCase)
	}
	return string(out)
}

func appendByte(out []byte, b byte, ignoreCase bool) []byte {
	const digits = "0123456789ABCDEF"
	switch {
	case !mayStand(b):
		return append(out, '%', digits[b>>4], digits[b&15])
	case ignoreCase && pathClass[b] == capital:
		return append(out, b+'a'-'A')
	}
	return append(out, b)
}

// unescape reads the escape that s begins with.
func unescape(s string) (byte, bool) {
	if len(s) < 3 {
		return 0, false
	}
	high, low := digit(s[1]), digit(s[2])
	return high<<4 | low&15, high < 16 && low < 16
}

func digit(b byte) byte {
	switch {
	case '0' <= b && b <= '9':
		return b - '0'
	case 'A' <= b && b <= 'F':
		return b - 'A' + 10
	case 'a' <= b && b <= 'f':
		return b - 'a' + 10
	}
	return 255
}

// canonical merges slashes and then resolves dots, as nginx and Go do.
func (w written) canonical() string {
	if w.odd&(dots|gaps) == 0 {
		return w.path
	}
	return resolveDots(w.path, true)
}

// readings are all ways in which common servers read the path, the canonical one
// first. An ordinary path has one.
//
//   - strict: dots are resolved before slashes are merged, as RFC 3986 and browsers
//     have it: /a//../b is /a/b.
//   - literal: dots are names like any other, as for Express and gin.
//   - trimmed: dots and spaces at the end are no part of the path, as for Caddy, before
//     dots are resolved or after it: /a. and /a/.. are /a.
//   - undotted: dots are resolved before escapes are read, and again after it, as where
//     Caddy strips a prefix: /a/%2e%2e/.. is /a.
//   - lenient, in all these ways: an escaped slash is a slash, as for nginx, Caddy and gin; a
//     backslash is one, too, as for IIS, and parameters are no part of a segment, as for Tomcat.
func (w written) readings() (all []string) {
	for _, form := range w.forms() {
		all = form.readTail(appendNew(all, form.canonical()))
		if form.odd&dots != 0 {
			all = appendNew(all, resolveDots(form.path, false))
			all = appendNew(all, joinPath(strings.Split(form.path, "/")))
		}
	}
	if w.odd&dots != 0 {
		for _, form := range spelt(cmp.Or(w.undotted, w.canonical())).forms() {
			all = form.readTail(appendNew(all, form.canonical()))
		}
	}
	return all
}

// OtherReadings returns the ways besides [CanonicalPath] in which common servers read a path. An
// ordinary path has none.
func OtherReadings(path string) []string {
	w := readPath(path, false)
	if w.odd&(dots|loose|tail) == 0 {
		return nil
	}
	return w.readings()[1:]
}

// forms are the path as it is, and as lenient servers have it.
func (w written) forms() []written {
	if w.odd&loose == 0 {
		return []written{w}
	}
	return []written{w, spelt(strings.ReplaceAll(w.path, "%2F", "/")), spelt(loosen(w.path))}
}

// spelt is a path in which every byte has its one spelling already.
func spelt(path string) written { return written{path: path, odd: scanPath(path, false)} }

func (w written) readTail(all []string) []string {
	if w.odd&tail == 0 {
		return all
	}
	all = appendNew(all, resolveDots(trimTail(w.path), true))
	return appendNew(all, resolveDots(trimTail(w.canonical()), true))
}

func appendNew(all []string, path string) []string {
	if slices.Contains(all, path) {
		return all
	}
	return append(all, path)
}

// loosen reads escaped slashes and backslashes as slashes, and cuts parameters.
// In a path that is spelt, a percent sign always begins an escape, and a raw
// backslash is one.
func loosen(path string) string {
	path = lenient.Replace(path)
	var out strings.Builder
	for segment := range strings.SplitSeq(path[1:], "/") {
		name, _, _ := strings.Cut(segment, ";")
		out.WriteByte('/')
		out.WriteString(name)
	}
	return trimSlashes(out.String())
}

var lenient = strings.NewReplacer("%2F", "/", "%5C", "/")

// resolveDots follows the dots. With merge an empty segment is none; without, as in
// RFC 3986, it is one that .. can leave.
func resolveDots(path string, merge bool) string {
	var kept []string
	for segment := range strings.SplitSeq(path[1:], "/") {
		switch {
		case segment == "..":
			kept = kept[:max(0, len(kept)-1)]
		case segment != "." && !(merge && segment == ""):
			kept = append(kept, segment)
		}
	}
	return joinPath(kept)
}

// joinPath makes a path of segments, of which the empty ones are none.
func joinPath(segments []string) string {
	return "/" + strings.Join(slices.DeleteFunc(segments, func(s string) bool { return s == "" }), "/")
}
