package gateway

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/weirhq/weir/internal/match"
)

// route is a Route made ready.
type route struct {
	name    string
	path    string // "" is any
	targets []*target
	based   bool          // one of them has a path of its own
	next    atomic.Uint32 // whose turn it is among equals
}

// target is an upstream as one route uses it.
type target struct {
	*origin
	base    string // before every path; "" or "/base"
	rawBase string // the same as it is sent
}

// table finds the route of a request. It never changes.
type table struct {
	exact map[string][]*route // by host, the longest path first
	below map[string][]*route // by example.com for *.example.com
	any   []*route

	routes  []*route
	origins []*origin
}

// newTable makes routes ready. Routes that name one upstream share what is known of it.
func newTable(routes []Route) (*table, error) {
	switch n := len(routes); {
	case n == 0:
		return nil, fmt.Errorf("gateway: a route is required; write at least one upstream")
	case n > MaxRoutes:
		return nil, fmt.Errorf("gateway: %d routes exceed the maximum of %d; let one upstream serve several hosts or paths", n, MaxRoutes)
	}
	t := &table{exact: map[string][]*route{}, below: map[string][]*route{}}
	known := map[string]*origin{}
	for _, given := range routes {
		r, err := given.checked()
		if err != nil {
			return nil, err
		}
		made := &route{name: r.Name(), path: r.Path}
		for _, u := range r.Upstreams {
			before := len(t.origins)
			one := t.target(known, u)
			if err := one.setAdaptive(r.Adaptive, len(t.origins) > before); err != nil {
				return nil, err
			}
			made.targets = append(made.targets, one)
			made.based = made.based || one.base != ""
		}
		if slices.ContainsFunc(t.routes, func(o *route) bool { return o.name == made.name }) {
			return nil, fmt.Errorf("gateway: the route %q is given twice; write it once, with all upstreams separated by commas", made.name)
		}
		t.routes = append(t.routes, made)
		if parent, wild := strings.CutPrefix(r.Host, "*."); wild {
			t.below[parent] = append(t.below[parent], made)
		} else if r.Host != "" {
			t.exact[r.Host] = append(t.exact[r.Host], made)
		} else {
			t.any = append(t.any, made)
		}
	}
	longest := func(a, b *route) int { return cmp.Compare(len(b.path), len(a.path)) }
	for _, list := range t.exact {
		slices.SortFunc(list, longest)
	}
	for _, list := range t.below {
		slices.SortFunc(list, longest)
	}
	slices.SortFunc(t.any, longest)
	return t, nil
}

func (t *table) target(known map[string]*origin, u *url.URL) *target {
	name := u.Scheme + "://" + u.Host
	o := known[name]
	if o == nil {
		o = &origin{name: name, scheme: u.Scheme, host: u.Host}
		if o.scheme == "h2c" {
			o.scheme, o.h2c = "http", true
		}
		known[name] = o
		t.origins = append(t.origins, o)
	}
	return &target{o, strings.TrimRight(u.Path, "/"), strings.TrimRight(u.EscapedPath(), "/")}
}

// findRoute returns the route of a host and a path, which is canonical: of those that match
// both, the one with the longest host, and then the longest path. It is nil if there is
// none.
func (t *table) findRoute(host, path string) *route {
	if len(t.exact)+len(t.below) > 0 {
		if host = match.CanonicalHost(host); len(host) <= match.MaxHost {
			if r := longest(t.exact[host], path); r != nil {
				return r
			}
			for _, rest, more := strings.Cut(host, "."); more; _, rest, more = strings.Cut(rest, ".") {
				if r := longest(t.below[rest], path); r != nil {
					return r
				}
			}
		}
	}
	return longest(t.any, path)
}

// longest is the first that matches.
func longest(list []*route, path string) *route {
	for _, r := range list {
		if rest, found := strings.CutPrefix(path, r.path); found && (rest == "" || rest[0] == '/' || r.path == "") {
			return r
		}
	}
	return nil
}
