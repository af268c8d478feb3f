package match

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// MaxHost is the longest name that the DNS has.
const MaxHost = 253

// CanonicalHost returns a host in small letters, without port, brackets or final dot.
// The name ends at the first colon, whatever comes behind it, as it does for nginx: an
// address of IPv6 has to be in brackets, as HTTP wants it. Only capitals make it
// allocate.
func CanonicalHost(host string) string {
	if isCanonical(host) {
		return host
	}
	if literal, found := strings.CutPrefix(host, "["); found {
		host, _, _ = strings.Cut(literal, "]")
	} else {
		host, _, _ = strings.Cut(host, ":")
	}
	return strings.ToLower(strings.TrimRight(host, "."))
}

// IsHostName reports whether a name can be that of a host. It is lenient with underscores, which some names have.
func IsHostName(name string) bool {
	label := 0 // its length
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_':
			label++
		case c == '.' && label > 0:
			label = 0
		default:
			return false
		}
		if label > 63 {
			return false
		}
	}
	return label > 0 && len(name) <= MaxHost
}

// isCanonical reports whether there is nothing to change in a host, as in nearly all requests.
func isCanonical(host string) bool {
	for i := range len(host) {
		if b := host[i]; b >= 'A' && b <= '[' || b == ':' || b >= 0x80 {
			return false
		}
	}
	return host == "" || host[len(host)-1] != '.'
}

// canonicalName is CanonicalHost for what a rule names: there, an address of IPv6 may
// be without brackets.
func canonicalName(name string) string {
	if ip, err := netip.ParseAddr(name); err == nil && ip.Is6() {
		return strings.ToLower(name)
	}
	return CanonicalHost(name)
}

// checkHost reports a host that no request could have.
func checkHost(name string) error {
	parent := strings.TrimPrefix(name, "*.")
	switch host := canonicalName(parent); {
	case host == "" || name == "*":
		return fmt.Errorf("host: %q is not a host name; leave host out to match all hosts", name)
	case len(host) > MaxHost:
		return fmt.Errorf("host: %q is longer than the maximum of %d bytes; shorten it", name, MaxHost)
	case strings.Contains(host, "*"):
		return fmt.Errorf("host: %q has a star that is not at the start, before a dot; write *.example.com for every subdomain of example.com", name)
	}
	return nil
}

// hosts are the names of one rule, of which any will do.
type hosts struct {
	exact  []string // sorted
	below  []string // sorted; "example.com" for *.example.com
	stars  []string // the same, as "*.example.com"
	labels int      // the most that one of below has
}

func newHosts(names []string) *hosts {
	if len(names) == 0 {
		return nil
	}
	h := new(hosts)
	for _, name := range names {
		if parent, wild := strings.CutPrefix(name, "*."); wild {
			parent = canonicalName(parent)
			h.below = append(h.below, parent)
			h.labels = max(h.labels, 1+strings.Count(parent, "."))
		} else {
			h.exact = append(h.exact, canonicalName(name))
		}
	}
	h.exact, h.below = sortedSet(h.exact), sortedSet(h.below)
	for _, parent := range h.below {
		h.stars = append(h.stars, "*."+parent)
	}
	return h
}

// count is how many names there are.
func (h *hosts) count() int {
	if h == nil {
		return 0
	}
	return len(h.exact) + len(h.below)
}

func (h *hosts) contain(host string) bool { return h.findHost(host) >= 0 }

// findHost returns which is the most specific of the names that a host has: the whole name, or
// else, counted behind those, the longest with a star; -1 if it has none.
func (h *hosts) findHost(host string) (found int) {
	if host == "" {
		return -1
	}
	if i := indexSorted(h.exact, host); i >= 0 {
		return i
	}
	found = -1
	for parent, rest := parentOf(host, len(host)), h.labels; parent != "" && rest > 0; rest-- {
		if i := indexSorted(h.below, parent); i >= 0 {
			found = len(h.exact) + i
		}
		parent = parentOf(host, len(host)-len(parent)-1)
	}
	return found
}

// indexSorted is where a value is in a sorted list; -1 if it is not there. A few are compared one
// by one, which takes less time: most differ in their length already.
func indexSorted(list []string, value string) int {
	if len(list) <= few {
		return slices.Index(list, value)
	}
	if i, ok := slices.BinarySearch(list, value); ok {
		return i
	}
	return -1
}

// parentOf returns what is behind the last dot before end: of www.example.com first
// com, then, with the place of the dot before that, example.com, and then nothing.
func parentOf(host string, end int) string {
	if end <= 0 {
		return ""
	}
	i := strings.LastIndexByte(host[:end], '.')
	if i < 0 {
		return ""
	}
	return host[i+1:]
}

// sortedSet sorts values in place and leaves out those that come twice.
func sortedSet(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}
