package clientip

import (
	"net/netip"
	"strings"
)

// lastComma finds the last comma that is not in quotes, reading from the end: what
// the nearest proxy wrote stands there and is well-formed, whatever a client may have
// put before it to confuse a reader, such as a quote that is never closed.
func lastComma(list string) int {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch {
		case list[i] == '"' && !(quoted && escaped(list, i)):
			quoted = !quoted
		case list[i] == ',' && !quoted:
			return i
		}
	}
	return -1
}

// escaped reports whether an odd number of backslashes stands before s[i].
func escaped(s string, i int) bool {
	bare := strings.TrimRight(s[:i], `\`)
	return (i-len(bare))%2 == 1
}

// parseElement reads one hop, as in for=192.0.2.60;proto=http;by=203.0.113.43. There
// must be exactly one "for".
func parseElement(element string) (addr netip.Addr, found bool) {
	for rest := element; rest != ""; {
		if rest[0] == ';' || rest[0] == ' ' || rest[0] == '\t' {
			rest = rest[1:]
			continue
		}
		name, value, after, ok := cutPair(rest)
		if !ok {
			return netip.Addr{}, false
		}
		rest = after
		if !strings.EqualFold(name, "for") {
			continue
		}
		if found {
			return netip.Addr{}, false
		}
		if addr, found = parseNode(value); !found {
			return netip.Addr{}, false
		}
	}
	return addr, found
}

// cutPair reads name=value or name="value" from the beginning of s. Escapes within
// quotes are left as they are: no address has one.
func cutPair(s string) (name, value, rest string, ok bool) {
	name, value, ok = strings.Cut(s, "=")
	if !ok || name == "" || strings.ContainsAny(name, " \t;\"") {
		return "", "", "", false
	}
	if !strings.HasPrefix(value, `"`) {
		value, rest, _ = strings.Cut(value, ";")
		value = strings.TrimRight(value, " \t")
		return name, value, rest, value != "" && !strings.ContainsAny(value, " \t\"")
	}
	value = value[1:]
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case '"':
			rest = strings.TrimLeft(value[i+1:], " \t")
			return name, value[:i], rest, rest == "" || rest[0] == ';'
		}
	}
	return "", "", "", false // the quote is never closed
}
