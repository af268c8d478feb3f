package rule

import (
	"slices"
	"strings"
)

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
//   - lenient, in all three ways: an escaped slash and a backslash are slashes, as
//     for nginx, gin and IIS; parameters are no part of a segment, as for Tomcat.
func (w written) readings() []string {
	all := w.readSlashes(nil)
	if w.odd&loose != 0 {
		l := loosen(w.path)
		all = written{l, scanPath(l, false)}.readSlashes(all)
	}
	return all
}

func (w written) readSlashes(all []string) []string {
	all = appendNew(all, w.canonical())
	if w.odd&dots != 0 {
		all = appendNew(all, resolveDots(w.path, false))
		all = appendNew(all, joinPath(strings.Split(w.path, "/")))
	}
	return all
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
