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
	MaxQuestion = 64 << 10 // bytes in all
	MaxEntries  = 100      // of headers, cookies, query and attributes, each
	MaxWord     = 1 << 10  // bytes of a name, a user, a key, a host
	MaxText     = 8 << 10  // bytes of a path, and of a value in a map
)

// Question is a client's description of a request. Omitted fields are unknown.
type Question struct {
	rule.Request // IP and Values are set by Read

	Headers, Cookies, Parameters map[string]string
}

// Read checks the fields and completes the request. The address is the text that the client
// sent.
func (q *Question) Read(ip string) *FieldError {
	if err := q.bounds(ip); err != nil {
		return err
	}
	q.IP = netip.Addr{}
	if ip != "" {
		var err error
		if q.IP, err = netip.ParseAddr(ip); err != nil {
			return fault("ip", "%q is not an address; send one such as 203.0.113.7 or 2001:db8::1, without a port.", ip)
		}
	}
	path, _, _ := strings.Cut(q.Path, "?")
	if path != "" && path[0] != '/' || path == "" && q.Path != "" {
		return fault("path", "must begin with a slash; send for example /api/login.")
	}
	q.Path, q.Values = path, q
	return q.canonicalHeaders()
}

func fault(field, format string, args ...any) *FieldError {
	return &FieldError{field, field + ": " + fmt.Sprintf(format, args...)}
}

// IsMisstated reports whether a field of a request is invalid, and not that the rules cannot be
// applied to it.
func IsMisstated(err *weir.InvalidError) bool { return err.Field != "ops" }

// Priority parses the priority of a request; "" is none.
func Priority(name string) (p rule.Priority, bad *FieldError) {
	if err := p.UnmarshalText([]byte(name)); err != nil {
		return 0, fault("priority", "%s", Ended(err.Error()))
	}
	return p, nil
}

// CheckClient reports whether the key and the tier of a client are valid. The error uses the
// example of a key, and names the call whose answers contain such keys.
func CheckClient(key, tier, example, answer string) *FieldError {
	switch {
	case key == "":
		return fault("key", "required; send the key of a client, such as %s, as %s returns it.", example, answer)
	case len(key) > weir.MaxKeyLen:
		return fault("key", "%d bytes exceed the maximum of %d; send the key as %s returns it.", len(key), weir.MaxKeyLen, answer)
	case len(tier) > MaxWord:
		return fault("tier", "%d bytes exceed the maximum of %d; send a tier of a rule.", len(tier), MaxWord)
	}
	return nil
}

// bounds reports the first field that is too long or out of range.
func (q *Question) bounds(ip string) *FieldError {
	size := 0
	for _, f := range [...]struct {
		name, value string
		most        int
	}{
		{"ip", ip, MaxWord}, {"user", q.User, MaxWord}, {"api_key", q.APIKey, MaxWord}, {"tier", q.Tier, MaxWord},
		{"method", q.Method, MaxWord}, {"host", q.Host, MaxWord}, {"path", q.Path, MaxText},
	} {
		if len(f.value) > f.most {
			return fault(f.name, "%d bytes exceed the maximum of %d; send less.", len(f.value), f.most)
		}
		size += len(f.value)
	}
	for _, f := range [...]struct {
		name   string
		values map[string]string
	}{
		{"headers", q.Headers}, {"cookies", q.Cookies}, {"query", q.Parameters}, {"attributes", q.Attributes},
	} {
		if len(f.values) > MaxEntries {
			return fault(f.name, "%d entries exceed the maximum of %d; send only those that rules use.", len(f.values), MaxEntries)
		}
		for name, value := range f.values {
			if len(name) > MaxWord || len(value) > MaxText {
				return fault(f.name, "a name has at most %d bytes and a value %d; send less.", MaxWord, MaxText)
			}
			if size += len(name) + len(value); size > MaxQuestion {
				return fault(f.name, "the request has more than %d bytes in total; send only those that rules use.", MaxQuestion)
			}
		}
	}
	switch {
	case q.Cost < 0:
		return fault("cost", "%d is negative, and a check cannot refund; send at least 1, or leave it out to use the cost of the rules.", q.Cost)
	case q.Cost > weir.MaxUnits:
		return fault("cost", "%d is more than any limit allows; send at most %d.", q.Cost, int64(weir.MaxUnits))
	}
	return CheckUnits("cost", q.Costs, 1)
}

// canonicalHeaders changes the names of headers to their canonical form, which rules use.
// Usually they already have it.
func (q *Question) canonicalHeaders() *FieldError {
	odd := false
	for name := range q.Headers {
		odd = odd || http.CanonicalHeaderKey(name) != name
	}
	if !odd {
		return nil
	}
	canonical := make(map[string]string, len(q.Headers))
	for name, value := range q.Headers {
		name = http.CanonicalHeaderKey(name)
		if _, twice := canonical[name]; twice {
			return fault("headers", "%s is given twice, in upper and lower case; send it once.", name)
		}
		canonical[name] = value
	}
	q.Headers = canonical
	return nil
}

// Header implements rule.Values.
func (q *Question) Header(name string, from int) (string, int) {
	return rule.Single(q.Headers[name], from)
}

// Cookie implements rule.Values.
func (q *Question) Cookie(name string, from int) (string, int) {
	return rule.Single(q.Cookies[name], from)
}

// Query implements rule.Values.
func (q *Question) Query(name string, from int) (string, int) {
	return rule.Single(q.Parameters[name], from)
}
