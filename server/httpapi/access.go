package httpapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/token"
)

// admit reports whether a call may go on. If not, it has been answered.
func (h *Handler) admit(c *call, needs access) bool {
	if needs == public {
		return true
	}
	tokens := h.options.Tokens()
	if needs == asking {
		return tokens != nil || h.atHome(c)
	}
	c.Header()["Cache-Control"] = uncached
	c.client, _ = h.clients.Client(c.r.RemoteAddr, c.r.Header)
	if !h.within(c, (*engine.Engine).Check, anyCall) {
		return false
	}
	if tokens == nil {
		return h.atHome(c)
	}
	return h.known(c, tokens, needs)
}

// atHome reports whether a call without a token comes from a program on this machine,
// or a page that the server itself has sent. Anything else that reaches the loopback
// is the operator's browser, on behalf of somebody else's page.
func (h *Handler) atHome(c *call) bool {
	if !h.local(c.r.Host) {
		c.refuse(foreignHost.of("Without tokens, the server is called by an address or localhost only; call it so, or start it with tokens."))
		return false
	}
	if err := h.origins.Check(c.r); err != nil {
		c.refuse(foreignOrigin.of("Without tokens, the server takes no calls from pages of other sites; call it from a program, or start it with tokens."))
		return false
	}
	return true
}

// local reports whether a Host header is one that nobody can have pointed here: the
// owner of a domain may let its name resolve to 127.0.0.1, and then a page from there
// is of the same origin as the server. HTTP/1.0, which no browser speaks, has none.
func (h *Handler) local(host string) bool {
	name := host
	if i := strings.LastIndexByte(name, ':'); i >= 0 && !strings.HasSuffix(name, "]") {
		name = name[:i]
	}
	if literal, ok := strings.CutPrefix(name, "["); ok {
		name = strings.TrimSuffix(literal, "]")
	}
	if _, err := netip.ParseAddr(name); err == nil || host == "" {
		return true
	}
	same := func(other string) bool { return strings.EqualFold(strings.TrimSuffix(name, "."), other) }
	return same("localhost") || slices.ContainsFunc(h.options.Hosts, same)
}

// known reports whether the call has a token that is good for it. Too many wrong ones
// from one address, and no token from there is looked at, lest the right one be found
// by trying; a call without any is no try.
func (h *Handler) known(c *call, tokens *token.List, needs access) bool {
	bearer, ok := bearerOf(c.r)
	if !ok {
		c.Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
		c.refuse(noToken.of("Send the header Authorization: Bearer, and a token of the server's token file."))
		return false
	}
	holder, ok := tokens.Find(bearer)
	if !ok {
		if h.within(c, (*engine.Engine).Check, wrongTry) {
			c.Header().Set("WWW-Authenticate", `Bearer realm="weir", error="invalid_token"`)
			c.refuse(wrongToken.of("The server does not know this token; use one of its token file."))
		}
		return false
	}
	if !h.within(c, (*engine.Engine).Peek, wrongTry) {
		return false
	}
	c.holder = holder.Name
	if needs == changing && holder.Scope != token.Admin {
		c.Header().Set("WWW-Authenticate", `Bearer realm="weir", error="insufficient_scope"`)
		c.refuse(readOnly.of("The token of %s may look, but change nothing; use one with the scope admin.", holder.Name))
		return false
	}
	return true
}

// bearerOf is the token of a request, if it has just one.
func bearerOf(r *http.Request) (string, bool) {
	all := r.Header["Authorization"]
	if len(all) != 1 {
		return "", false
	}
	scheme, bearer, _ := strings.Cut(all[0], " ")
	bearer = strings.Trim(bearer, " ")
	return bearer, strings.EqualFold(scheme, "Bearer") && bearer != ""
}
