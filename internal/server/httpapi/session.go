package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/bearer"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/manage"
)

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
		Client: c.client, Credentials: manage.Credentials{Token: []string{strings.Trim(want.Token, " ")}}, Needs: bearer.Read, Uncounted: true, // it was counted before it was read
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
		return bearer.SecureCookie, true
	}
	return bearer.PlainCookie, false
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
