package match

import (
	"fmt"
	"slices"
	"strings"
)

// MaxSegments bounds how deep a pattern goes, and so how far a request is followed.
const MaxSegments = 64

// pattern is a path as a rule has it: segments, and then perhaps anything.
type pattern struct {
	text     string
	segments []string // spelt; "" for any one, {id}
	rest     bool     // ends in /**, which is also nothing at all
	place    int32    // among those of the rule, the most specific first
}

// CheckPath reports a path that no rule can have.
func CheckPath(text string) error {
	_, err := newPattern(text, false)
	return err
}

// newPattern reads "/users/{id}" or "/api/**".
func newPattern(text string, ignoreCase bool) (pattern, error) {
	p := pattern{text: text}
	if !strings.HasPrefix(text, "/") {
		return p, fmt.Errorf("path %q does not begin with a slash; write %q", text, "/"+text)
	}
	if strings.Contains(text, "?") {
		return p, fmt.Errorf("path %q has a query; remove it", text)
	}
	for segment := range strings.SplitSeq(text[1:], "/") {
		if p.rest {
			return p, fmt.Errorf("path %q continues after **; write ** only at the end", text)
		}
		switch {
		case segment == "":
		case segment == "**":
			p.rest = true
		case isParameter(segment):
			p.segments = append(p.segments, "")
		case strings.ContainsAny(segment, "{}*"):
			return p, fmt.Errorf("path %q: %q is not a name or {name}; write {id} for one whole segment, or ** at the end for everything below", text, segment)
		default:
			name := spellPath("/"+segment, ignoreCase)[1:]
			if name == "." || name == ".." {
				return p, fmt.Errorf("path %q: %q is resolved before a path is matched; remove it", text, segment)
			}
			p.segments = append(p.segments, name)
		}
	}
	if len(p.segments) > MaxSegments {
		return p, fmt.Errorf("path %q has %d segments, and at most %d are compared; end it with ** before that", text, len(p.segments), MaxSegments)
	}
	return p, nil
}

func isParameter(segment string) bool {
	return len(segment) > 2 && segment[0] == '{' && segment[len(segment)-1] == '}' && !strings.ContainsAny(segment[1:len(segment)-1], "{}")
}

// literal is the one path that matches, if there is only one.
func (p *pattern) literal() (string, bool) {
	if p.rest || slices.Contains(p.segments, "") {
		return "", false
	}
	return joinPath(p.segments), true
}

// matches holds the pattern, from a segment on, against the rest of one reading of a
// path. The index does the same for many patterns at once.
func (p *pattern) matches(i int, path string) bool {
	left, ok := follow(p.segments[i:], path)
	return ok && (p.rest || left == "" || left == "/")
}

// follow returns what is left of a canonical path behind some segments, if it has them.
func follow(segments []string, path string) (left string, ok bool) {
	for _, want := range segments {
		end := len(want) + 1
		switch {
		case want == "":
			var segment string
			if segment, path = cutSegment(path); segment == "" {
				return "", false
			}
		case len(path) < end || path[1:end] != want || len(path) > end && path[end] != '/':
			return "", false
		default:
			path = path[end:]
		}
	}
	return path, true
}

// cutSegment cuts the first segment off a canonical path; it is "" at the end.
func cutSegment(path string) (segment, rest string) {
	if len(path) < 2 {
		return "", ""
	}
	if i := strings.IndexByte(path[1:], '/'); i >= 0 {
		return path[1 : i+1], path[i+1:]
	}
	return path[1:], ""
}
