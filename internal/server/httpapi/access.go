package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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

	Clients bool `json:"clients"` // the caller may change the directory of clients here
}

// whoAmI answers GET /v1/whoami.
func (h *Handler) whoAmI(c *call) (any, error) {
	registry := h.options.Clients
	return WhoAnswer{
		Name: c.caller.Name, Scope: c.caller.Rights.Scope(), Via: c.caller.Via.String(),
		Clients: c.caller.Rights.Has(trust.Clients) && registry != nil && !registry.Status().ReadOnly,
	}, nil
}

// SessionLength is how long a session lasts.
const SessionLength = 12 * time.Hour

// ownPage is a header that only a page of this server can send: a page of another site
// would have to ask first, and is not allowed.
const ownPage = "X-Weir-Session"

// SessionRequest is the body of POST /v1/session.
type SessionRequest struct {
	Token string `json:"token"`
}

// signIn answers POST /v1/session: the browser gets a cookie for the token, which no
// script can read. Tokens are tried as often as elsewhere, and no more.
func (h *Handler) signIn(c *call, want *SessionRequest) (any, error) {
	if err := h.onlyOwnPage(c.r); err != nil {
		return nil, err
	}
	tokens := h.options.Tokens()
	if tokens == nil {
		return nil, fault.NotEnabled.Of("This server requires no token, so there is nothing to sign in to.").Coded("no-tokens")
	}
	var err error
	c.caller, err = h.options.Guard.Allow(c.r.Context(), tokens, manage.Visit{
		Client: c.client, Credentials: manage.Credentials{Token: []string{strings.Trim(want.Token, " ")}}, Needs: trust.Read, Uncounted: true, // it was counted before it was read
	})
	if err != nil {
		return nil, err
	}
	session, ok := tokens.Session(strings.Trim(want.Token, " "), h.options.Clock().Add(SessionLength))
	if !ok {
		return nil, manage.ErrWrongToken // which cannot be: it was found just now
	}
	h.setSession(c, session, SessionLength)
	c.WriteHeader(http.StatusNoContent)
	return nil, nil
}

// signOut answers DELETE /v1/session. The browser forgets the session; a copy of it would
// last until its time is over, or the token is removed.
func (h *Handler) signOut(c *call) (any, error) {
	if err := h.onlyOwnPage(c.r); err != nil {
		return nil, err
	}
	h.endSession(c)
	c.WriteHeader(http.StatusNoContent)
	return nil, nil
}

// setSession sends the cookie.
func (h *Handler) setSession(c *call, value string, lasts time.Duration) {
	name, secure := h.sessionName(c.r)
	http.SetCookie(c, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(lasts / time.Second),
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	})
}

// endSession makes the browser forget the cookie.
func (h *Handler) endSession(c *call) { h.setSession(c, "", -time.Second) }

// sessionName is what the cookie is called on this connection, and whether it is HTTPS,
// here or at a proxy that is believed.
func (h *Handler) sessionName(r *http.Request) (name string, secure bool) {
	said := r.Header["X-Forwarded-Proto"]
	if r.TLS != nil || len(said) == 1 && strings.EqualFold(said[0], "https") && h.clients.Trusts(r.RemoteAddr) {
		return trust.SecureCookie, true
	}
	return trust.PlainCookie, false
}

// credentials are by what a call says who makes it. A browser sends cookies with
// whatever call any page causes, so a session counts only if the server's own page has
// caused this one; a proxy that signs people in has a cookie of its own, so the same holds
// for those. If there are two sessions, somebody else has set one of them, and neither
// counts.
func (h *Handler) credentials(r *http.Request) (own manage.Credentials, err error) {
	own.Token, own.Authorization = r.Header[manage.TokenHeader], r.Header["Authorization"]
	if own.HasToken() {
		return own, nil
	}
	name, _ := h.sessionName(r)
	if cookies := r.CookiesNamed(name); len(cookies) == 1 {
		own.Session = cookies[0].Value
	}
	if own.Session == "" {
		if own.Proxy, err = h.signedIn(r); own.Proxy == nil {
			return own, err
		}
	}
	return own, h.onlyOwnPage(r)
}

// onlyOwnPage is an error unless a page of this server has caused a call. Browsers say so
// to servers that they trust, which are those with HTTPS and on this machine. To others
// the page has to send a header that no other page can. A program can send it, too.
func (h *Handler) onlyOwnPage(r *http.Request) error {
	if site := r.Header.Get("Sec-Fetch-Site"); site == "same-origin" || site == "" && r.Header.Get(ownPage) != "" && ownOrigin(r) {
		return nil
	}
	return fault.ForeignOrigin.Of("Without a token in the header Authorization, the server accepts calls only from its own dashboard; use the dashboard, or send a token.").Coded("own-pages-only")
}

// ownOrigin is whether the page of which a browser tells, if it does, is of this server.
func ownOrigin(r *http.Request) bool {
	all := r.Header["Origin"]
	if len(all) == 0 {
		return true
	}
	origin, err := url.Parse(all[0])
	return err == nil && len(all) == 1 && origin.Host != "" && strings.EqualFold(origin.Host, r.Host)
}

// SignIn configures the header in which a proxy sends the name of a person whom it has
// authenticated. Only the trusted proxies of Options.Authz can use it.
type SignIn struct {
	Header string       // header with the name; "" disables sign-in by a proxy
	Scope  trust.Rights // of everyone who signs in this way; default trust.Read
}

// maxUser is the maximum length of a name in bytes.
const maxUser = 128

// check returns why the options cannot be used.
func (s *SignIn) check(o *Options) error {
	s.Header, s.Scope = http.CanonicalHeaderKey(s.Header), cmp.Or(s.Scope, trust.Read)
	switch {
	case s.Header == "":
		return nil
	case len(o.Authz.TrustedProxies) == 0:
		return errors.New("httpapi: SignIn requires TrustedProxies; weir trusts its header only from those proxies")
	case strings.Trim(s.Header, headerLetters) != "" || slices.Contains(otherMeaning, s.Header):
		return fmt.Errorf("httpapi: SignIn.Header: the header %q has another meaning, or is invalid; use another one, such as X-Forwarded-User", s.Header)
	}
	return nil
}

const headerLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// otherMeaning are headers that clients or proxies send for other purposes.
var otherMeaning = []string{
	"Authorization", "Cookie", "Forwarded", "Host", "Origin", "Sec-Fetch-Site", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-Id", ownPage, manage.TokenHeader,
}

// signedIn returns the person whom a proxy has authenticated. It returns nil if there is
// none, or if the caller is not a trusted proxy.
func (h *Handler) signedIn(r *http.Request) (*trust.Holder, error) {
	in := h.options.SignIn
	if in.Header == "" || !h.clients.Trusts(r.RemoteAddr) {
		return nil, nil
	}
	names := r.Header[in.Header]
	if len(names) == 0 || len(names) == 1 && names[0] == "" {
		return nil, nil
	}
	if len(names) > 1 || !isUser(names[0]) {
		return nil, fault.Field(in.Header, "must appear once, and have a name of at most %d bytes without control characters; make the proxy replace the header that clients send.", maxUser)
	}
	return &trust.Holder{Name: names[0], Rights: in.Scope}, nil
}

// isUser reports whether a name is safe to write to logs and to the history.
func isUser(name string) bool {
	if len(name) > maxUser || !utf8.ValidString(name) {
		return false
	}
	return !slices.ContainsFunc([]rune(name), func(c rune) bool { return !unicode.IsPrint(c) })
}
