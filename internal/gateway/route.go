package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/match"
	"github.com/weirhq/weir/internal/overload"
)

// Bounds on routes.
const (
	MaxRoutes    = 1000
	MaxUpstreams = 64 // of a route
)

// Route says which upstreams answer for a host and a path.
type Route struct {
	// Host is a name without port, or "*.example.com" for every name below
	// example.com. "" is any.
	Host string

	// Path is the beginning of paths, by whole segments: "/api" is /api and all below
	// it, but not /apis. It is compared as rules compare paths. "" is any.
	Path string

	// Upstreams share the requests. The scheme is http, https, or h2c for HTTP/2
	// without TLS; a path is put before that of each request.
	Upstreams []*url.URL

	// Adaptive limits how many requests are in flight to each upstream, between a
	// minimum and a maximum, by how many it can answer. Default no limit but
	// Options.MaxInFlight.
	Adaptive overload.Bounds
}

// ParseRoute reads "http://127.0.0.1:9000", "/api=http://127.0.0.1:9000" or
// "api.example.com/v1=http://10.0.0.1:9000,http://10.0.0.2:9000".
func ParseRoute(text string) (Route, error) {
	var r Route
	urls := text
	if left, right, found := strings.Cut(text, "="); found && !strings.Contains(left, "://") {
		if left == "" {
			return r, fmt.Errorf("gateway: the route %q has nothing before the =; write a host or a path before it, or only the URL", clip(text))
		}
		urls = right
		if i := strings.IndexByte(left, '/'); i >= 0 {
			r.Host, r.Path = left[:i], left[i:]
		} else {
			r.Host = left
		}
	}
	for part := range strings.SplitSeq(urls, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil {
			// The error of url.Parse quotes the URL, in which may be a password.
			return Route{}, fmt.Errorf("gateway: an upstream of the route %q is not a URL; write it as http://127.0.0.1:9000", r.Name())
		}
		r.Upstreams = append(r.Upstreams, u)
	}
	return r.checked()
}

// Name is the host and the path, "/" if it is any. It is the label of the route
// wherever it is counted.
func (r Route) Name() string {
	if r.Host == "" && r.Path == "" {
		return "/"
	}
	return r.Host + r.Path
}

// UsesTLS reports whether an upstream of the route is reached with TLS.
func (r Route) UsesTLS() bool {
	return slices.ContainsFunc(r.Upstreams, func(u *url.URL) bool { return u.Scheme == "https" })
}

// String is the route as ParseRoute reads it.
func (r Route) String() string {
	var b strings.Builder
	if r.Host != "" || r.Path != "" {
		b.WriteString(r.Host + r.Path + "=")
	}
	for i, u := range r.Upstreams {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(u.Redacted())
	}
	return b.String()
}

// checked returns the route in the one form in which routes are compared.
func (r Route) checked() (Route, error) {
	host := strings.ToLower(r.Host)
	if name := strings.TrimPrefix(host, "*."); host != "" && !match.IsHostName(name) {
		return Route{}, fmt.Errorf("gateway: the host %q of a route is not a host name; write letters, digits and dashes, separated by dots, without a port, or *.example.com for every subdomain", clip(r.Host))
	}
	path := r.Path
	if path == "/" {
		path = ""
	}
	if path != "" {
		if path[0] != '/' || strings.ContainsAny(path, "*{}?#") {
			return Route{}, fmt.Errorf("gateway: the path %q of a route must begin with a slash and is a literal prefix; remove stars and braces", clip(path))
		}
		if canonical := match.CanonicalPath(path); canonical != path {
			return Route{}, fmt.Errorf("gateway: the path %q of a route never matches; write %q", clip(path), clip(canonical))
		}
	}
	switch n := len(r.Upstreams); {
	case n == 0:
		return Route{}, fmt.Errorf("gateway: the route %q has no upstream; write at least one URL", r.Name())
	case n > MaxUpstreams:
		return Route{}, fmt.Errorf("gateway: the route %q has %d upstreams, and the maximum is %d; use a host name with several addresses instead", r.Name(), n, MaxUpstreams)
	}
	urls := make([]*url.URL, len(r.Upstreams))
	for i, u := range r.Upstreams {
		if err := checkUpstream(u); err != nil {
			return Route{}, fmt.Errorf("gateway: route %q: %w", r.Name(), err)
		}
		one := *u
		one.Host = strings.ToLower(one.Host)
		if same := func(o *url.URL) bool { return o.String() == one.String() }; slices.ContainsFunc(urls[:i], same) {
			return Route{}, fmt.Errorf("gateway: the route %q has the upstream %s twice; remove one", r.Name(), one.Redacted())
		}
		urls[i] = &one
	}
	if err := r.Adaptive.Check(); err != nil {
		return Route{}, fmt.Errorf("gateway: the adaptive limit of the route %q: %w", r.Name(), err)
	}
	return Route{host, path, urls, r.Adaptive}, nil
}

func checkUpstream(u *url.URL) error {
	switch {
	case u == nil:
		return fmt.Errorf("an upstream is required; write it as http://127.0.0.1:9000")
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c":
		return fmt.Errorf("the upstream %q does not begin with http://, https:// or h2c://; write it as http://127.0.0.1:9000", clip(u.Redacted()))
	case u.Hostname() == "" || u.Opaque != "":
		return fmt.Errorf("the upstream %q has no host; write it as http://127.0.0.1:9000", clip(u.Redacted()))
	case u.User != nil:
		return fmt.Errorf("the upstream %s has a user, which would not be sent; remove it, and let clients authenticate", clip(u.Redacted()))
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("the upstream %s has a query or a fragment, but requests bring their own; remove it", clip(u.Redacted()))
	}
	return nil
}

// wellFormed reports whether a request's host is a name or an address, with a port or
// without. Servers do not agree on what anything else means: of example.com:80:80, some
// take all before the first colon and some all before the last; and what is not ASCII
// would be written as another name on its way out. HTTP/1.0 may have no host.
func wellFormed(host string) bool {
	if host == "" {
		return true
	}
	end := strings.IndexByte(host, ':')
	literal := host[0] == '['
	if literal {
		end = strings.IndexByte(host, ']') + 1
	}
	name, port := host, ""
	if end >= 0 {
		name, port = host[:end], host[end:]
	}
	if port != "" && (port[0] != ':' || strings.Trim(port[1:], "0123456789") != "") {
		return false
	}
	if literal {
		ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
		return err == nil && ip.Is6()
	}
	return match.IsHostName(strings.TrimSuffix(name, "."))
}

// clip keeps an error to a line.
func clip(s string) string { return document.Clip(s, 200) }

// SetAdaptive sets Adaptive of routes by settings such as "5-1000", for all routes, or
// "/api=5-1000" for one, in whichever order.
func SetAdaptive(routes []Route, settings []string) error {
	settings = slices.Clone(settings)
	slices.SortStableFunc(settings, func(a, b string) int {
		return cmp.Compare(strings.Count(a, "="), strings.Count(b, "=")) // those for all routes first
	})
	for _, text := range settings {
		name, bounds, one := strings.Cut(text, "=")
		if !one {
			name, bounds = "", text
		}
		least, most, both := strings.Cut(bounds, "-")
		low, err := strconv.Atoi(least)
		high, errHigh := strconv.Atoi(most)
		if !both || err != nil || errHigh != nil {
			return fmt.Errorf("gateway: %q is not a minimum and a maximum; write for example 5-1000, or /api=5-1000 for one route", clip(text))
		}
		b := overload.Bounds{Min: low, Max: high}
		if b == (overload.Bounds{}) {
			return errors.New("gateway: 0-0 limits nothing; leave it out, or write for example 5-1000")
		}
		found := false
		for i := range routes {
			if !one || routes[i].Name() == routeName(name) {
				routes[i].Adaptive, found = b, true
			}
		}
		if !found {
			return fmt.Errorf("gateway: no route is named %q; write the host and path of a route as in its upstream, or / for the one without", clip(name))
		}
	}
	return nil
}

// routeName is the Name of the route that a text before an upstream makes.
func routeName(text string) string {
	host, path, below := strings.Cut(text, "/")
	r := Route{Host: strings.ToLower(host)}
	if below && path != "" {
		r.Path = "/" + path
	}
	return r.Name()
}
