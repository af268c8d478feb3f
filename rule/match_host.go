package rule

import (
	"slices"
	"strings"
)

// maxHost is the longest name that the DNS has.
const maxHost = 253

// canonicalHost returns a host in small letters, without port, brackets or final
// dot. Only capitals make it allocate.
func canonicalHost(host string) string {
	if strings.HasPrefix(host, "[") {
		host, _, _ = strings.Cut(host[1:], "]")
	} else if i := strings.IndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i+1:], ':') < 0 {
		host = host[:i] // with two colons it is a bare IPv6 address
	}
	for strings.HasSuffix(host, ".") {
		host = host[:len(host)-1]
	}
	return strings.ToLower(host)
}

// hosts are the names of one rule, of which any will do.
type hosts struct {
	exact  []string // sorted
	below  []string // sorted; "example.com" for *.example.com
	labels int      // the most that one of below has
}

func newHosts(names []string) *hosts {
	if len(names) == 0 {
		return nil
	}
	h := new(hosts)
	for _, name := range names {
		if parent, wild := strings.CutPrefix(name, "*."); wild {
			parent = canonicalHost(parent)
			h.below = append(h.below, parent)
			h.labels = max(h.labels, 1+strings.Count(parent, "."))
		} else {
			h.exact = append(h.exact, canonicalHost(name))
		}
	}
	h.exact, h.below = sortedSet(h.exact), sortedSet(h.below)
	return h
}

// count is how many names there are.
func (h *hosts) count() int {
	if h == nil {
		return 0
	}
	return len(h.exact) + len(h.below)
}

func (h *hosts) contain(host string) bool {
	if host == "" {
		return false
	}
	if _, found := slices.BinarySearch(h.exact, host); found {
		return true
	}
	for parent, rest := parentOf(host, len(host)), h.labels; parent != "" && rest > 0; rest-- {
		if _, found := slices.BinarySearch(h.below, parent); found {
			return true
		}
		parent = parentOf(host, len(host)-len(parent)-1)
	}
	return false
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
