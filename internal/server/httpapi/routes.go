package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/bearer"
)

// access is who may call a route.
type access uint8

const (
	public  access = iota // anybody: it gives nothing away and changes nothing
	proxied               // whoever can reach the server, but no page in a browser; proxies pass on what end users sent
	asking                // the same, for who asks in their own name
	looking               // applications with a token, as often as they like; it changes nothing
	using                 // the same, and it counts or queues
	reading               // the management
	changing
)

// scope is what a token has to be good for.
func (a access) scope() bearer.Scope {
	switch a {
	case using:
		return bearer.Use
	case changing:
		return bearer.Admin
	}
	return bearer.Read
}

// route is one thing that can be called.
type route struct {
	method string // "" is any
	path   string // what is in braces stands for one segment
	needs  access
	serve  handler
}

// handler answers a call: with a value, which is written as JSON unless it is a text, or
// with an error, which is a *Problem or means that there was no time. One that has written
// the answer by itself returns neither.
type handler func(*Handler, *call) (any, error)

// pattern is the route's name for metrics and logs.
func (r *route) pattern() string {
	if r.method == "" {
		return r.path
	}
	return r.method + " " + r.path
}

// routes is everything that can be called. HEAD is called as GET.
func routes() []route {
	return slices.Concat(ruleRoutes, statsRoutes, alertRoutes, counterRoutes, queueRoutes)
}

var ruleRoutes = []route{
	{"POST", "/v1/check", asking, (*Handler).check},
	{"", "/v1/authz", proxied, (*Handler).serveAuthz},

	{"GET", "/v1/rules", reading, (*Handler).getRules},
	{"POST", "/v1/rules", changing, (*Handler).postRule},
	{"PUT", "/v1/rules", changing, (*Handler).putRules},
	{"GET", "/v1/rules/{id}", reading, (*Handler).getRule},
	{"PUT", "/v1/rules/{id}", changing, (*Handler).putRule},
	{"DELETE", "/v1/rules/{id}", changing, (*Handler).deleteRule},
	{"GET", "/v1/rules/history", reading, (*Handler).getHistory},
	{"GET", "/v1/rules/history/{version}", reading, (*Handler).getVersion},
	{"POST", "/v1/rules/rollback", changing, (*Handler).rollBack},
	{"POST", "/v1/rules/validate", reading, (*Handler).validate},

	{"GET", "/v1/keys", reading, (*Handler).getKey},
	{"DELETE", "/v1/keys", changing, (*Handler).forgiveKey},

	{"POST", "/v1/simulate", reading, taking(MaxSimulateBody, (*Handler).simulate)},

	{"GET", "/v1/whoami", looking, (*Handler).whoAmI},
	{"GET", "/v1/openapi.yaml", public, (*Handler).describe},
	{"GET", "/healthz", public, (*Handler).health},
	{"GET", "/readyz", public, (*Handler).ready},
	{"GET", "/healthcheck", public, (*Handler).healthCheck},
	{"GET", "/rlconfig", reading, (*Handler).envoyConfig},
	{"GET", "/metrics", asking, (*Handler).metrics},
}

// resource is a path and what can be done with it. http.ServeMux would do, if it
// answered 404 and 405 as a problem, and redirected nobody.
type resource struct {
	path   string
	routes []mounted

	// Of a path with a variable segment: all before that, and all behind it.
	prefix, suffix string
}

type mounted struct {
	route
	name string
}

// mount makes the routes known.
func (h *Handler) mount(all []route) {
	h.exact = map[string]*resource{}
	known := map[string]*resource{}
	for _, r := range all {
		res := known[r.path]
		if res == nil {
			res = &resource{path: r.path}
			known[r.path] = res
			if prefix, rest, variable := strings.Cut(r.path, "{"); variable {
				_, res.suffix, _ = strings.Cut(rest, "}")
				res.prefix = prefix
				h.below = append(h.below, res)
			} else {
				h.exact[r.path] = res
			}
		}
		res.routes = append(res.routes, mounted{r, r.pattern()})
	}
	// The longest first: what is more particular is meant.
	slices.SortFunc(h.below, func(a, b *resource) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
}

// find returns the route of a request, and what stands in its variable segment. If
// there is none, allowed are the methods that the path knows; the path itself is
// unknown if there are none either.
//
// A word that is a route may also be the id of a rule: GET /v1/rules/validate, which no
// other route takes, is about the rule with this id.
func (h *Handler) find(method, path string) (found *mounted, variable string, allowed []string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if res := h.exact[path]; res != nil {
		if found := res.by(method); found != nil {
			return found, "", nil
		}
		allowed = res.methods(allowed)
	}
	for _, res := range h.below {
		rest, ok := strings.CutPrefix(path, res.prefix)
		rest, ends := strings.CutSuffix(rest, res.suffix)
		if !ok || !ends || rest == "" || strings.Contains(rest, "/") {
			continue
		}
		if found := res.by(method); found != nil {
			return found, rest, nil
		}
		allowed = res.methods(allowed)
	}
	return nil, "", allowed
}

func (res *resource) by(method string) *mounted {
	for i := range res.routes {
		if m := &res.routes[i]; m.method == method || m.method == "" {
			return m
		}
	}
	return nil
}

func (res *resource) methods(all []string) []string {
	for _, r := range res.routes {
		all = append(all, r.method)
		if r.method == http.MethodGet {
			all = append(all, http.MethodHead)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ours is whether a path is the API's, whether or not there is such a route.
func ours(path string) bool {
	return path == "/v1" || strings.HasPrefix(path, "/v1/")
}
