package manage

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Bounds on a question.
const (
	MaxQuestion = 64 << 10 // bytes of all of it
	MaxEntries  = 100      // of headers, cookies, query and attributes, each
	MaxWord     = 1 << 10  // bytes of a name, a user, a key, a host
	MaxText     = 8 << 10  // bytes of a path, and of a value in a map
)

// Question is what a client says of a request. What is left out is not known.
type Question struct {
	IP, User, APIKey, Tier, Method, Host, Path string
	Headers, Cookies, Query, Attributes        map[string]string
	Cost                                       int64
}

// Fill puts what the client says into a request, if it makes sense. What the request
// then finds is in the question and in found, which both have to stay.
func (q *Question) Fill(req *rule.Request, found *Values) *FieldError {
	if err := q.bounds(); err != nil {
		return err
	}
	var ip netip.Addr
	if q.IP != "" {
		var err error
		if ip, err = netip.ParseAddr(q.IP); err != nil {
			return fault("ip", "%q is no address; send one such as 203.0.113.7 or 2001:db8::1, without a port.", q.IP)
		}
	}
	path, _, _ := strings.Cut(q.Path, "?")
	if path != "" && path[0] != '/' || path == "" && q.Path != "" {
		return fault("path", "it has to begin with a slash; send for example /api/login.")
	}
	headers, err := canonicalHeaders(q.Headers)
	if err != nil {
		return err
	}
	*found = Values{headers, q}
	*req = rule.Request{
		IP: ip, User: q.User, APIKey: q.APIKey, Tier: q.Tier, Method: q.Method, Host: q.Host, Path: path,
		Attributes: q.Attributes, Values: found, Cost: q.Cost,
	}
	return nil
}

func fault(field, format string, args ...any) *FieldError {
	return &FieldError{field, field + ": " + fmt.Sprintf(format, args...)}
}

// bounds reports what is too long, too many or too much.
func (q *Question) bounds() *FieldError {
	size := 0
	for _, f := range [...]struct {
		name, value string
		most        int
	}{
		{"ip", q.IP, MaxWord}, {"user", q.User, MaxWord}, {"api_key", q.APIKey, MaxWord}, {"tier", q.Tier, MaxWord},
		{"method", q.Method, MaxWord}, {"host", q.Host, MaxWord}, {"path", q.Path, MaxText},
	} {
		if len(f.value) > f.most {
			return fault(f.name, "it has %d bytes, at most %d are taken; send less.", len(f.value), f.most)
		}
		size += len(f.value)
	}
	for _, f := range [...]struct {
		name   string
		values map[string]string
	}{
		{"headers", q.Headers}, {"cookies", q.Cookies}, {"query", q.Query}, {"attributes", q.Attributes},
	} {
		if len(f.values) > MaxEntries {
			return fault(f.name, "it has %d entries, at most %d are taken; send those that rules look at.", len(f.values), MaxEntries)
		}
		for name, value := range f.values {
			if len(name) > MaxWord || len(value) > MaxText {
				return fault(f.name, "a name has at most %d bytes and a value %d; send less.", MaxWord, MaxText)
			}
			if size += len(name) + len(value); size > MaxQuestion {
				return fault(f.name, "the request has more than %d bytes with them; send those that rules look at.", MaxQuestion)
			}
		}
	}
	switch {
	case q.Cost < 0:
		return fault("cost", "%d is negative, and nothing can be given back this way; send at least 1, or leave it to the rules.", q.Cost)
	case q.Cost > weir.MaxUnits:
		return fault("cost", "%d is more than any limit admits; send at most %d.", q.Cost, int64(weir.MaxUnits))
	}
	return nil
}

// canonicalHeaders are the headers by the names that rules ask for. As a rule they are
// written so already.
func canonicalHeaders(headers map[string]string) (map[string]string, *FieldError) {
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
			return nil, fault("headers", "%s is there twice, in small letters and capitals; send it once.", name)
		}
		canonical[name] = value
	}
	return canonical, nil
}

// Values finds what a client has told of a request.
type Values struct {
	headers map[string]string // canonical
	asked   *Question
}

// Header implements rule.Values.
func (v *Values) Header(name string, from int) (string, int) {
	return rule.Single(v.headers[name], from)
}

// Cookie implements rule.Values.
func (v *Values) Cookie(name string, from int) (string, int) {
	return rule.Single(v.asked.Cookies[name], from)
}

// Query implements rule.Values.
func (v *Values) Query(name string, from int) (string, int) {
	return rule.Single(v.asked.Query[name], from)
}
