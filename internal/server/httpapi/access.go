package httpapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
)

// allow is an error if a call may not go on.
func (h *Handler) allow(c *call, needs access) error {
	if needs == public {
		return nil
	}
	tokens := h.options.Tokens()
	if needs > asking {
		c.Header()["Cache-Control"] = uncached
		c.client, _ = h.clients.Client(c.r.RemoteAddr, c.r.Header)
	}
	switch {
	case needs == proxied || needs == checking:
		if err := h.mayCheck(c, needs); err != nil {
			return err
		}
	case needs == signing:
		if err := h.options.Guard.Count(c.r.Context(), c.client); err != nil {
			return err
		}
	case needs > signing:
		if err := h.identify(c, tokens, needs); err != nil {
			return err
		}
	}
	switch {
	case tokens == nil:
		return h.atHome(c, needs)
	case needs <= asking && h.options.Checks.Open():
		return h.fromOwnPage(c, needs) // it showed no token; the server may have any name
	}
	return nil
}

// identify finds out who calls. It is an error if they may not.
func (h *Handler) identify(c *call, tokens *trust.List, needs access) (err error) {
	if tokens != nil {
		if c.credentials, err = h.credentials(c.r); err != nil {
			if needs >= reading {
				if often := h.options.Guard.Count(c.r.Context(), c.client); often != nil {
					return often
				}
			}
			return err
		}
	}
	c.caller, err = h.options.Guard.Allow(c.r.Context(), tokens, manage.Visit{
		Client: c.client, Credentials: c.credentials, Needs: needs.right(), Uncounted: needs < reading,
	})
	return err
}

// mayCheck finds out who checks. It is an error if they may not. What a proxy forwards besides
// its token may be that of its client, and so is the address that it forwards: who sends a wrong
// token is the proxy itself.
func (h *Handler) mayCheck(c *call, needs access) (err error) {
	if h.options.Checks.Open() {
		c.checks = h.options.Checks.Anybody()
		return nil
	}
	own, forwarded := manage.Credentials{Token: c.r.Header[manage.TokenHeader]}, http.Header(nil)
	if needs != proxied {
		if own, err = h.credentials(c.r); err != nil {
			return err
		}
		forwarded = c.r.Header
	}
	c.client, _ = h.clients.Client(c.r.RemoteAddr, forwarded)
	if c.checks, err = h.options.Checks.Identify(c.r.Context(), c.client, own); err == nil {
		err = c.checks.Need(trust.Peek) // at least; decide knows what else it takes
	}
	return err
}

// checker is who checks, for what is logged.
func (h *Handler) checker(c *call) *manage.Checker {
	if !c.checks.Client.IsValid() {
		c.checks.Client, _ = h.clients.Client(c.r.RemoteAddr, c.r.Header)
	}
	return &c.checks
}

// atHome is an error unless a call without a token comes from a program on this machine,
// or a page that the server itself has sent. Anything else that reaches the loopback
// is the operator's browser, on behalf of somebody else's page.
func (h *Handler) atHome(c *call, needs access) error {
	if !h.local(c.r.Host) {
		if !h.foreign.Swap(true) {
			h.options.Logger.Warn("call for an unknown host name rejected", "route", c.name, "host", manage.Clip(c.r.Host),
				"remedy", "Let the caller send an address or localhost as Host, or name the host in --host-names.")
		}
		return fault.ForeignHost.Of("Without tokens, the server answers only to IP addresses, localhost and the names in --host-names; use one of them, or start it with tokens.")
	}
	return h.fromOwnPage(c, needs)
}

// fromOwnPage is an error if a page of another site has caused a call without a token. A proxy
// passes on what its own clients' browsers say of pages, but then it also tells what it asks
// about, in headers that no page can send to another site. Without these, a call
// charges, whatever its method.
func (h *Handler) fromOwnPage(c *call, needs access) error {
	r := c.r
	if needs == proxied {
		for _, name := range tells {
			if len(r.Header[name]) > 0 {
				return nil
			}
		}
		charging := *r
		charging.Method = http.MethodPost
		r = &charging
	}
	if h.origins.Check(r) != nil {
		return fault.ForeignOrigin.Of("The server rejects calls without a token from web pages of other sites; call it from a program, or start it so that the call requires a token.")
	}
	return nil
}

// local reports whether a Host header names this machine and cannot be a domain of an
// attacker: the owner of a domain can let its name resolve to 127.0.0.1, and then its
// pages have the same origin as the server. HTTP/1.0, which browsers do not use, has no
// Host.
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

// WhoAnswer is what GET /v1/whoami answers, so that a page knows which buttons to show.
type WhoAnswer struct {
	Name  string `json:"name"`  // of the token's holder, or of whom a proxy has signed in; "" if no token is asked for
	Scope string `json:"scope"` // read, use or admin
	Via   string `json:"via"`   // by what the caller is known: none, token, session or proxy
}

// whoAmI answers GET /v1/whoami.
func (h *Handler) whoAmI(c *call) (any, error) {
	return WhoAnswer{Name: c.caller.Name, Scope: c.caller.Rights.Scope(), Via: c.caller.Via.String()}, nil
}
