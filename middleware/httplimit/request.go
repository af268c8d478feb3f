package httplimit

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/rule"
)

// pass is what one request needs on its way, used again for the next.
type pass struct {
	request rule.Request
	verdict engine.Verdict
	denial  Denial
	values  values
	prompt  prompt
	look    look
	hits    [4]rule.Hit // memory for a search

	attributes map[string]string // of the request, with those of its prompt
}

var passes = sync.Pool{New: func() any { return new(pass) }}

// release makes the pass free for another request. It keeps nothing of this one but
// the memory of the verdict, which clears itself.
func (p *pass) release() {
	p.request, p.values = rule.Request{}, values{}
	if p.denial.Verdict != nil {
		p.denial = Denial{}
	}
	if p.prompt.release != nil {
		p.prompt, p.look, p.hits = prompt{}, look{}, [len(p.hits)]rule.Hit{}
		clear(p.attributes)
	}
	passes.Put(p)
}

// readRequest fills the pass with the attributes of a request. It fails if the request has two
// tiers or priorities, or an unknown one, or no valid token where that is required.
func (m *Middleware) readRequest(p *pass, r *http.Request) error {
	p.values.r = r
	q, o := &p.request, &m.options
	q.Values = &p.values
	q.Method, q.Host, q.Path = r.Method, r.Host, pathOf(r)
	if o.APIKey != nil {
		q.APIKey = o.APIKey(r)
	} else {
		q.APIKey, q.OtherAPIKeys = apart(r.Header[apiKeyHeader])
	}
	trusted := o.trustsHeaders() && m.front.Clients.Trusts(r.RemoteAddr)
	if o.User != nil {
		q.User = o.User(r)
	} else if trusted && o.UserHeader != "" {
		q.User, q.OtherUsers = apart(r.Header[o.UserHeader])
	}
	if o.Tier != nil {
		q.Tier = o.Tier(r)
	} else if trusted && o.TierHeader != "" {
		var err error
		if q.Tier, err = single(r, o.TierHeader); err != nil {
			return err
		}
	}
	if o.Priority != nil {
		q.Priority = o.Priority(r)
	} else if trusted && o.PriorityHeader != "" {
		name, err := single(r, o.PriorityHeader)
		if err != nil {
			return err
		}
		if err := q.Priority.UnmarshalText([]byte(name)); err != nil {
			return &weir.InvalidError{Field: "header " + o.PriorityHeader, Reason: err.Error()}
		}
	}
	if o.Attributes != nil {
		q.Attributes = o.Attributes(r)
	}
	if o.Token != nil {
		claims, err := o.Token(r.Header["Authorization"])
		if err != nil {
			return err
		}
		front.Identify(q, claims)
	}
	if o.Cost != nil {
		q.Cost = max(0, o.Cost(r))
	}
	if o.Costs != nil {
		q.Costs = o.Costs(r)
	}
	if o.Permit != nil {
		q.Permit = o.Permit(r)
	}
	var doubt clientip.Doubt
	if q.IP, doubt = m.front.Clients.Client(r.RemoteAddr, r.Header); doubt != clientip.Clear {
		m.front.Doubt(doubt, r.RemoteAddr)
	}
	m.watch(q)
	return nil
}

// single is the value of a header that has at most one.
func single(r *http.Request, name string) (string, error) {
	value, others := apart(r.Header[name])
	if slices.ContainsFunc(others, func(other string) bool { return other != value }) {
		return "", &rule.ValuesError{What: "header " + name}
	}
	return value, nil
}

// apart is the first of some values, and the others.
func apart(values []string) (string, []string) {
	if len(values) == 0 {
		return "", nil
	}
	return values[0], values[1:]
}

// pathOf is the path as it was sent. A server that was asked for a host alone serves
// its root, and one that was asked for "*" serves no path at all.
func pathOf(r *http.Request) string {
	path := r.URL.EscapedPath()
	switch {
	case path == "":
		return "/"
	case strings.HasPrefix(path, "/"):
		return path
	}
	return ""
}

// values finds what a request carries, without a copy of all of it. It finds whatever
// http.Request does, and more: what net/http does not take for a cookie or a parameter,
// a server behind this one may.
type values struct{ r *http.Request }

func (v *values) Header(name string, from int) (string, int) {
	return rule.NextValue(v.r.Header[name], from)
}

// Cookie counts places in all lines, one behind the other.
func (v *values) Cookie(name string, from int) (string, int) {
	begin := 0
	for _, line := range v.r.Header["Cookie"] {
		end := begin + len(line) + 1
		for at := max(begin, from); at < end; {
			part, _, _ := strings.Cut(line[at-begin:], ";")
			at += len(part) + 1
			key, value, _ := strings.Cut(trim(part), "=")
			if trim(key) != name {
				continue
			}
			if value = cookieValue(value); value != "" {
				return value, at
			}
		}
		begin = end
	}
	return "", 0
}

func trim(s string) string { return strings.Trim(s, " \t\n\r") }

// cookieValue takes the quotes off a value, and escapes out of it: to PHP and Node.js,
// sid=x and sid=%78 are one session, and a client must not become another by writing
// itself differently.
func cookieValue(s string) string {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	if plain, err := url.PathUnescape(s); err == nil {
		return plain // no copy was made if there was nothing to unescape
	}
	return s
}

// Query reads the query to the end, if it must: net/http has bounded its length, and to
// stop earlier would let a client hide a parameter behind others. A value that cannot be
// unescaped is taken as it is.
func (v *values) Query(name string, from int) (string, int) {
	query := v.r.URL.RawQuery
	for at := from; at < len(query); {
		pair, _, _ := strings.Cut(query[at:], "&")
		at += len(pair) + 1
		key, value, _ := strings.Cut(pair, "=")
		if !sameUnescaped(key, name) {
			continue
		}
		// No copy is made unless there is something to unescape.
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		if value != "" {
			return value, at
		}
	}
	return "", 0
}

// sameUnescaped reports whether a key as it stands in a query is this name. It makes
// no copy, so that a query of ten thousand escaped keys costs no memory.
func sameUnescaped(key, name string) bool {
	for i := 0; i < len(key); i++ {
		b := key[i]
		switch b {
		case '+':
			b = ' '
		case '%':
			if i+2 >= len(key) {
				return false
			}
			high, low := unhex(key[i+1]), unhex(key[i+2])
			if high > 15 || low > 15 {
				return false
			}
			b = high<<4 | low
			i += 2
		}
		if name == "" || name[0] != b {
			return false
		}
		name = name[1:]
	}
	return name == ""
}

// unhex is above 15 for what is no hexadecimal digit.
func unhex(b byte) byte {
	switch {
	case '0' <= b && b <= '9':
		return b - '0'
	case 'a' <= b && b <= 'f':
		return b - 'a' + 10
	case 'A' <= b && b <= 'F':
		return b - 'A' + 10
	}
	return 16
}
