package httplimit

import (
	"net/http"
	"strings"
	"sync"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/rule"
)

// pass is what one request needs on its way, used again for the next.
type pass struct {
	request rule.Request
	verdict engine.Verdict
	denial  Denial
	values  values
}

var passes = sync.Pool{New: func() any { return new(pass) }}

// release makes the pass free for another request. It keeps nothing of this one but
// the room of the verdict, which clears itself.
func (p *pass) release() {
	p.request, p.values, p.denial = rule.Request{}, values{}, Denial{}
	passes.Put(p)
}

// read puts into the pass what is known of a request.
func (m *Middleware) read(p *pass, r *http.Request) {
	p.values.r = r
	q := &p.request
	q.Values = &p.values
	q.Method, q.Host, q.Path = r.Method, r.Host, pathOf(r)
	q.APIKey = m.options.APIKey(r)
	if m.options.User != nil {
		q.User = m.options.User(r)
	}
	if m.options.Tier != nil {
		q.Tier = m.options.Tier(r)
	}
	if m.options.Attributes != nil {
		q.Attributes = m.options.Attributes(r)
	}
	if m.options.Cost != nil {
		q.Cost = max(0, m.options.Cost(r))
	}
	var doubt clientip.Doubt
	if q.IP, doubt = m.clients.Client(r.RemoteAddr, r.Header); doubt != clientip.Clear {
		m.doubt(doubt, r)
	}
	m.watch(q)
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

// values finds what a request carries, without a copy of all of it. Each answer is
// the one that http.Request gives: what a rule counts by is what the handler sees.
type values struct{ r *http.Request }

func (v *values) Header(name string) string { return headerOf(v.r, name) }

// headerOf is Header.Get for a name that is canonical already. The host is not among
// a server's headers.
func headerOf(r *http.Request, name string) string {
	if all := r.Header[name]; len(all) > 0 {
		return all[0]
	}
	if name == "Host" {
		return r.Host
	}
	return ""
}

// Cookie is Request.Cookie(name).Value.
func (v *values) Cookie(name string) string {
	for _, line := range v.r.Header["Cookie"] {
		for rest, more := line, true; more; {
			var part string
			part, rest, more = strings.Cut(rest, ";")
			key, value, _ := strings.Cut(trim(part), "=")
			if trim(key) != name {
				continue
			}
			if value, ok := cookieValue(value); ok {
				return value
			}
		}
	}
	return ""
}

func trim(s string) string { return strings.Trim(s, " \t\n\r") }

// cookieValue takes the quotes off a value. One with bytes that no cookie has is not
// there, as for net/http.
func cookieValue(s string) (string, bool) {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	for i := range len(s) {
		if b := s[i]; b < 0x20 || b >= 0x7f || b == '"' || b == ';' || b == '\\' {
			return "", false
		}
	}
	return s, true
}
