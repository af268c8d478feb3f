package rule_test

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/rule"
)

// naive is the definition of what matches: one rule, all its conditions, no index,
// and every reading of a path whether it can differ or not.
type naive struct{ ignoreCase bool }

func (n naive) matches(m rule.Match, req *rule.Request) bool {
	return anyOf(m.Methods, func(want string) bool { return strings.ToUpper(req.Method) == want }) &&
		anyOf(m.Hosts, func(want string) bool { return naiveHost(want, req.Host) }) &&
		anyOf(m.Paths, func(want string) bool { return n.path(want, req.Path) }) &&
		naiveAttributes(m.Attributes, req.Attributes)
}

// anyOf is met by any of the values, or if there are none.
func anyOf(values []string, met func(string) bool) bool {
	return len(values) == 0 || slices.ContainsFunc(values, met)
}

func naiveAttributes(want map[string][]string, have map[string]string) bool {
	for name, values := range want {
		if have[name] == "" || !anyOf(values, func(v string) bool { return v == have[name] }) {
			return false
		}
	}
	return true
}

// naiveHost is for names without colons but before a port.
func naiveHost(want, host string) bool {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	host = strings.TrimRight(host, ".")
	if below, wild := strings.CutPrefix(want, "*"); wild {
		return strings.HasSuffix(host, below)
	}
	return host == want
}

// path compares decoded segments, in which a slash is a byte like any other.
func (n naive) path(pattern, path string) bool {
	if path == "" {
		return false
	}
	path, _, _ = strings.Cut(path, "?")
	want := strings.Split(strings.Trim(pattern, "/"), "/")
	undotted := strings.Join(naiveDots(naiveMerge(strings.Split(path, "/"))), "/") // before escapes are read
	for lenient := range 3 {
		segments, trimmed := n.decode(path, lenient), naiveTrim(n.decode(path, lenient))
		again := n.decode(undotted, lenient)
		for _, reading := range [][]string{
			naiveDots(naiveMerge(segments)), naiveMerge(naiveDots(segments)), naiveMerge(segments),
			naiveDots(naiveMerge(trimmed)), naiveMerge(naiveTrim(naiveDots(naiveMerge(segments)))),
			naiveDots(naiveMerge(again)), naiveDots(naiveMerge(naiveTrim(again))), naiveMerge(naiveTrim(naiveDots(naiveMerge(again)))),
		} {
			if n.segments(want, reading) {
				return true
			}
		}
	}
	return false
}

// naiveTrim cuts dots and spaces off the end of the path, and slashes before that.
func naiveTrim(segments []string) []string {
	segments = slices.Clone(segments)
	for len(segments) > 1 && segments[len(segments)-1] == "" {
		segments = segments[:len(segments)-1]
	}
	if n := len(segments) - 1; n >= 0 {
		segments[n] = strings.TrimRight(segments[n], ". ")
	}
	return segments
}

func (n naive) segments(want, have []string) bool {
	for i, w := range want {
		switch {
		case w == "**":
			return true
		case w == "" && len(want) == 1:
			return len(have) == 0
		case i >= len(have):
			return false
		case strings.HasPrefix(w, "{"):
		case n.decodeOne(w) != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}

// decode is lenient with escaped slashes at 1, and with backslashes and parameters at 2.
func (n naive) decode(path string, lenient int) (segments []string) {
	for raw := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		one := n.decodeOne(raw)
		switch lenient {
		case 0:
			segments = append(segments, one)
		case 1:
			segments = append(segments, strings.Split(one, "/")...)
		default:
			for part := range strings.SplitSeq(strings.ReplaceAll(one, `\`, "/"), "/") {
				part, _, _ = strings.Cut(part, ";")
				segments = append(segments, part)
			}
		}
	}
	return segments
}

func (n naive) decodeOne(raw string) string {
	var out strings.Builder
	for i := 0; i < len(raw); i++ {
		b := raw[i]
		if b == '%' && i+2 < len(raw) {
			const digits = "0123456789abcdef"
			high := strings.IndexByte(digits, raw[i+1]|0x20)
			low := strings.IndexByte(digits, raw[i+2]|0x20)
			if high >= 0 && low >= 0 && raw[i+1] >= '0' && raw[i+2] >= '0' {
				b, i = byte(high<<4|low), i+2
			}
		}
		if n.ignoreCase && 'A' <= b && b <= 'Z' {
			b |= 0x20
		}
		out.WriteByte(b)
	}
	return out.String()
}

func naiveMerge(segments []string) []string {
	return slices.DeleteFunc(slices.Clone(segments), func(s string) bool { return s == "" })
}

func naiveDots(segments []string) []string {
	out := []string{}
	for _, s := range segments {
		switch {
		case s == "..":
			out = out[:max(0, len(out)-1)]
		case s != ".":
			out = append(out, s)
		}
	}
	return out
}
