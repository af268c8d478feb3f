package gateway

import (
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/middleware/httplimit"
)

// peers tells who is believed about the client, and writes what upstreams are to
// believe.
type peers struct {
	clients *clientip.Resolver
	limit   *httplimit.Middleware
	header  httplimit.ProxyHeader
}

// forged are headers that upstreams may take for the truth about who the client is or
// what it asked for. Proxies write them, so a client that does is up to something. The
// names are canonical. Those that begin with X-Forwarded are not listed.
var forged = map[string]bool{
	"Forwarded": true, "X-Real-Ip": true, "Client-Ip": true, "X-Client-Ip": true, "True-Client-Ip": true,
	"X-Cluster-Client-Ip": true, "X-Original-Forwarded-For": true, "Cf-Connecting-Ip": true, "Cf-Connecting-Ipv6": true,
	"Fastly-Client-Ip": true, "Fly-Client-Ip": true, "X-Envoy-External-Address": true,
	"X-Azure-Clientip": true, "X-Azure-Socketip": true, "X-Appengine-User-Ip": true, "X-Proxyuser-Ip": true,
	"X-Remote-Ip": true, "X-Remote-Addr": true, "X-Originating-Ip": true,
	"Proxy-Client-Ip": true, "Wl-Proxy-Client-Ip": true, "Http-Client-Ip": true, "Http-X-Forwarded-For": true,
	"X-Original-Url": true, "X-Original-Uri": true, "X-Rewrite-Url": true,
	"X-Original-Host": true, "X-Host": true, "X-Http-Host-Override": true,
	"Front-End-Https": true, "X-Url-Scheme": true, "X-Scheme": true,
}

// isForged is for canonical names.
func isForged(name string) bool { return strings.HasPrefix(name, "X-Forwarded") || forged[name] }

// dashed is the name as it looks to servers that make variables of an environment from
// headers, in which X_User, X.User and X-User are one. It is "" for an ordinary name.
func dashed(name string) string {
	at := 0
	for at < len(name) && (isAlphanumeric(name[at]) || name[at] == '-') {
		at++
	}
	if at == len(name) {
		return ""
	}
	return http.CanonicalHeaderKey(strings.Map(func(c rune) rune {
		if c < utf8.RuneSelf && isAlphanumeric(byte(c)) {
			return c
		}
		return '-'
	}, name))
}

// isAlphanumeric is about ASCII.
func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// passes reports whether a header of a client goes on. Other spellings of important headers never
// do, even from trusted proxies, because proxies forward headers that they do not know.
func (p *peers) passes(name string, trusted, believed bool) bool {
	switch name {
	case "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto": // see write
		return false
	case "Http2-Settings", "Content-Length": // net/http writes its own length
		return false
	}
	if isHop(name) {
		return false
	}
	if d := dashed(name); d != "" {
		return !isForged(d) && !p.limit.Reads(d)
	}
	return (believed || !isForged(name)) && (trusted || !p.limit.Believes(name))
}

// dropSessions removes sessions of the dashboard. Browsers send a cookie to every port of a
// host, and an upstream that kept it could sign in.
func dropSessions(out http.Header) {
	lines := out["Cookie"]
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, trust.PlainCookie) }) {
		return
	}
	var left []string
	for _, line := range lines {
		for cookie := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(cookie, "=")
			if name = strings.TrimSpace(name); name != "" && name != trust.PlainCookie && name != trust.SecureCookie {
				left = append(left, strings.TrimSpace(cookie))
			}
		}
	}
	if delete(out, "Cookie"); len(left) > 0 {
		out["Cookie"] = []string{strings.Join(left, "; ")}
	}
}

// who reports who holds the connection, whether it is a trusted proxy, and whether its
// word about its client counts: two headers that name different clients count for
// nothing.
func (p *peers) who(in *http.Request) (peer netip.Addr, trusted, believed bool) {
	peer, doubt := p.clients.Client(in.RemoteAddr, nil)
	if doubt == clientip.NoAddress {
		peer = netip.Addr{} // there is nothing to tell the upstream
	}
	if trusted = p.clients.Trusts(in.RemoteAddr); trusted {
		_, doubt := p.clients.Client(in.RemoteAddr, in.Header)
		believed = doubt != clientip.Contradiction
	}
	return peer, trusted, believed
}

// write makes the headers of a request on its way out: what passes of those that came in, and who
// sent it. New values live in the array.
func (p *peers) write(in *http.Request, out http.Header, own *[3]string) {
	peer, trusted, believed := p.who(in)
	for name, values := range in.Header {
		if p.passes(name, trusted, believed) {
			out[name] = values
		}
	}
	dropNamed(out, in.Header["Connection"])
	dropSessions(out)
	set := func(i int, name, value string) {
		own[i] = value
		out[name] = own[i : i+1 : i+1]
	}
	if peer.IsValid() {
		value := peer.String()
		if before := in.Header["X-Forwarded-For"]; believed && p.header != httplimit.Forwarded && len(before) > 0 {
			value = strings.Join(before, ", ") + ", " + value
		}
		set(0, "X-Forwarded-For", value)
	}
	if host := in.Header["X-Forwarded-Host"]; believed && len(host) > 0 {
		out["X-Forwarded-Host"] = host
	} else if in.Host != "" {
		set(1, "X-Forwarded-Host", in.Host)
	}
	switch proto := in.Header["X-Forwarded-Proto"]; {
	case believed && len(proto) > 0:
		out["X-Forwarded-Proto"] = proto
	case in.TLS != nil:
		set(2, "X-Forwarded-Proto", "https")
	default:
		set(2, "X-Forwarded-Proto", "http")
	}
	if all := in.Header["Forwarded"]; believed && p.header != httplimit.XForwardedFor && len(all) > 0 {
		out["Forwarded"] = all
	}
}

// isHop reports whether a header is between two neighbours only, and not passed on. The name is
// canonical.
func isHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// dropNamed removes the headers that the values of Connection name.
func dropNamed(h http.Header, connection []string) {
	for _, line := range connection {
		for name := range strings.SplitSeq(line, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)))
		}
	}
}

// hasToken reports whether a list of values has a token, in whichever case.
func hasToken(values []string, token string) bool {
	for _, line := range values {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(textproto.TrimString(part), token) {
				return true
			}
		}
	}
	return false
}

// aboutLimits are the names that clients look at to learn about limits. An upstream's
// own limits are not what limits them here. Retry-After is not among them.
func aboutLimits(name string) bool {
	return strings.HasPrefix(name, "X-Ratelimit") || strings.HasPrefix(name, "Ratelimit") || strings.HasPrefix(name, "X-Rate-Limit") || strings.HasPrefix(name, "Anthropic-Ratelimit")
}
