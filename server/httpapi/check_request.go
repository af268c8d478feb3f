package httpapi

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Bounds on what POST /v1/check is told of a request.
const (
	maxEntries = 100     // of headers, cookies, query and attributes, each
	maxWord    = 1 << 10 // bytes of a name, a user, a key, a host
	maxText    = 8 << 10 // bytes of a path, and of a value in a map
)

// checkFields are the names of the fields of CheckRequest.
var checkFields = []string{
	"ip", "user", "api_key", "tier", "method", "host", "path",
	"headers", "cookies", "query", "attributes", "cost", "peek",
}

// fill puts what the client says into a request, if it makes sense.
func (a *CheckRequest) fill(req *rule.Request, found *values) *Problem {
	if p := a.bounds(); p != nil {
		return p
	}
	if a.IP != "" {
		ip, err := netip.ParseAddr(a.IP)
		if err != nil {
			return badField.of("ip: %q is no address; send one such as 203.0.113.7 or 2001:db8::1, without a port.", clip(a.IP)).in("ip")
		}
		req.IP = ip
	}
	path, _, _ := strings.Cut(a.Path, "?")
	if path != "" && path[0] != '/' || path == "" && a.Path != "" {
		return badField.of("path: it has to begin with a slash; send for example /api/login.").in("path")
	}
	headers, p := canonicalHeaders(a.Headers)
	if p != nil {
		return p
	}
	*found = values{headers, a}
	req.User, req.APIKey, req.Tier, req.Cost = a.User, a.APIKey, a.Tier, a.Cost
	req.Method, req.Host, req.Path, req.Attributes = a.Method, a.Host, path, a.Attributes
	req.Values = found
	return nil
}

// bounds reports what is too long, too many or too much.
func (a *CheckRequest) bounds() *Problem {
	for _, f := range [...]struct {
		name, value string
		most        int
	}{
		{"ip", a.IP, maxWord}, {"user", a.User, maxWord}, {"api_key", a.APIKey, maxWord}, {"tier", a.Tier, maxWord},
		{"method", a.Method, maxWord}, {"host", a.Host, maxWord}, {"path", a.Path, maxText},
	} {
		if len(f.value) > f.most {
			return badField.of("%s: it has %d bytes, at most %d are taken; send less.", f.name, len(f.value), f.most).in(f.name)
		}
	}
	for _, f := range [...]struct {
		name   string
		values map[string]string
	}{
		{"headers", a.Headers}, {"cookies", a.Cookies}, {"query", a.Query}, {"attributes", a.Attributes},
	} {
		if len(f.values) > maxEntries {
			return badField.of("%s: it has %d entries, at most %d are taken; send those that rules look at.", f.name, len(f.values), maxEntries).in(f.name)
		}
		for name, value := range f.values {
			if len(name) > maxWord || len(value) > maxText {
				return badField.of("%s: a name has at most %d bytes and a value %d; send less.", f.name, maxWord, maxText).in(f.name)
			}
		}
	}
	switch {
	case a.Cost < 0:
		return badField.of("cost: %d is negative, and nothing can be given back this way; send at least 1, or leave it to the rules.", a.Cost).in("cost")
	case a.Cost > weir.MaxUnits:
		return badField.of("cost: %d is more than any limit admits; send at most %d.", a.Cost, int64(weir.MaxUnits)).in("cost")
	}
	return nil
}

// canonicalHeaders are the headers by the names that rules ask for. As a rule they are
// written so already.
func canonicalHeaders(headers map[string]string) (map[string]string, *Problem) {
	odd := false
	for name := range headers {
		odd = odd || http.CanonicalHeaderKey(name) != name
	}
	if !odd {
		return headers, nil
	}
	canonical := make(map[string]string, len(headers))
	for name, value := range headers {
		name = http.CanonicalHeaderKey(name)
		if _, twice := canonical[name]; twice {
			return nil, badField.of("headers: %s is there twice, in small letters and capitals; send it once.", name).in("headers")
		}
		canonical[name] = value
	}
	return canonical, nil
}

// values finds what the client has told of a request.
type values struct {
	headers map[string]string // canonical
	asked   *CheckRequest
}

// Header implements rule.Values. The host is not among the headers of a server.
func (v *values) Header(name string) string {
	if value, ok := v.headers[name]; ok {
		return value
	}
	if name == "Host" {
		return v.asked.Host
	}
	return ""
}

// Cookie implements rule.Values.
func (v *values) Cookie(name string) string { return v.asked.Cookies[name] }

// Query implements rule.Values.
func (v *values) Query(name string) string { return v.asked.Query[name] }
