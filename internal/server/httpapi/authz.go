package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/middleware/httplimit"
)

// newAuthz makes the middleware that stands in front of a request which is not here:
// a proxy tells of it in headers, and lets it pass if the answer is 200.
func newAuthz(o *Options) (http.Handler, error) {
	how := o.Authz
	how.Deny, how.Permit, how.Logger = denyAuthz, permitAuthz, o.Logger
	limit, err := httplimit.New(o.Engine, how)
	if err != nil {
		return nil, err
	}
	// Not Wrap, which would take the answer to the proxy for the response to the client.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := limit.Allow(w, r); ok {
			w.WriteHeader(http.StatusOK)
		}
	}), nil
}

// serveAuthz answers ANY /v1/authz.
func (h *Handler) serveAuthz(c *call) (any, error) {
	c.Header()["Cache-Control"] = uncached
	status, err := denyStatus(c.r)
	if err != nil {
		return nil, err
	}
	original, err := originalOf(c.r)
	if err != nil {
		return nil, err
	}
	if err := c.checks.Need(trust.Check); err != nil {
		return nil, err
	}
	var a *asked
	if permit := c.checks.Holder.Permit(trust.Check); status != 0 || permit != nil {
		a = &asked{status: status, permit: permit}
		original = original.WithContext(context.WithValue(original.Context(), askedKey{}, a))
	}
	h.authz.ServeHTTP(c, original)
	if a != nil && a.rejected {
		return nil, c.checks.Judged(trust.Check, a.beyond)
	}
	return nil, nil
}

// asked is, in a context, what a proxy asks for and may have.
type asked struct {
	status   int                         // for every denial; 0 if it is as each rule says
	permit   func(rule, key string) bool // nil if it may have everything
	beyond   *engine.PermitError         // what it may not have
	rejected bool                        // because of that
}

type askedKey struct{}

// permitAuthz is what the middleware asks to know which rules the proxy may use.
func permitAuthz(r *http.Request) func(rule, key string) bool {
	a, ok := r.Context().Value(askedKey{}).(*asked)
	if !ok || a.permit == nil {
		return nil
	}
	return func(rule, key string) bool {
		permitted := a.permit(rule, key)
		if !permitted {
			a.beyond = &engine.PermitError{Rule: rule, Key: strings.Clone(key)}
		}
		return permitted
	}
}

// denyStatus is the status for every denial, as the query says; 0 if it is as each rule says. nginx
// knows 401 and 403 only, and makes an error of anything else.
func denyStatus(r *http.Request) (int, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return 0, fault.BadField.Of("The query is invalid; write ?deny_status=403, or leave it out.").In("deny_status")
	}
	switch text := query.Get("deny_status"); text {
	case "":
		return 0, nil
	case "401", "403", "429", "503":
		status, _ := strconv.Atoi(text)
		return status, nil
	default:
		return 0, fault.Field("deny_status", "%q is not a status that proxies treat as a denial; write 401, 403, 429 or 503.", text)
	}
}

func denyAuthz(w http.ResponseWriter, r *http.Request, d *httplimit.Denial) {
	if a, ok := r.Context().Value(askedKey{}).(*asked); ok {
		if a.rejected = a.beyond != nil && d.Cause == engine.ClientBlocked; a.rejected {
			return
		}
		if d.Cause != engine.TokenInvalid { // every proxy knows 401, and the client needs it
			d.Status = cmp.Or(a.status, d.Status)
		}
	}
	d.Write(w)
}

// originalOf is the request that the proxy asks about. What the proxy does not tell is
// as it asks.
func originalOf(r *http.Request) (*http.Request, error) {
	method, oddMethod := told(r, "Method", r.Method)
	host, oddHost := told(r, "Host", r.Host)
	uri, oddURI := told(r, "Uri", r.URL.Path)
	if err := cmp.Or(oddMethod, oddHost, oddURI); err != nil {
		return nil, err
	}
	// A request line must not contain "#", but nginx forwards it, and some servers cut it
	// off. So /login#x counts as /login.
	uri, _, _ = strings.Cut(uri, "#")
	target, err := url.ParseRequestURI(uri)
	if err != nil || len(uri) > maxURI {
		return nil, fault.BadField.Of("X-Original-URI or X-Forwarded-Uri is not a path; make the proxy send the URI of the request, such as /api/login?next=1.").In("uri")
	}
	original := new(http.Request)
	*original = *r
	original.Method, original.Host, original.URL = method, host, target
	return original, nil
}

// tells are the headers in which proxies tell of a request.
var tells = [...]string{
	"X-Original-Method", "X-Original-Uri", "X-Original-Host",
	"X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Host", "X-Forwarded-For", "Forwarded",
}

// maxURI is the longest URI that a proxy may ask about, in bytes.
const maxURI = 64 << 10

// told returns what the proxy sends about the request: usually X-Original-… from nginx,
// X-Forwarded-… from Caddy and Traefik. A proxy that sets one forwards the other as the
// client sent it. So if they differ, one is forged, and it is unknown which: the
// request is denied.
func told(r *http.Request, what, otherwise string) (string, error) {
	value, found := otherwise, false
	for _, name := range [...]string{"X-Original-" + what, "X-Forwarded-" + what} {
		for _, v := range r.Header[name] {
			if found && v != value {
				return "", fault.ConflictingHeaders.Of("X-Original-%s and X-Forwarded-%s differ; make the proxy set one and remove the other.", what, what)
			}
			value, found = v, true
		}
	}
	return value, nil
}
