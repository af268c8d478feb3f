package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/trust"
)

// access tells which clients may call a route.
type access uint8

const (
	public   access = iota // anybody: it gives nothing away and changes nothing
	proxied                // who may check, but no page in a browser; proxies forward headers of end users
	checking               // the same, for who asks in their own name
	asking                 // anybody, but no page in a browser
	signing                // who signs in by the server's own page, or out
	looking                // applications with a token, as often as they like; it changes nothing
	using                  // the same, and it counts or queues
	reading                // the management
	changing
	browsing // the directory of clients
	registering
)

// right is what a token has to be good for.
func (a access) right() trust.Rights {
	switch a {
	case using:
		return trust.Use
	case changing:
		return trust.Admin
	case browsing:
		return trust.Look
	case registering:
		return trust.Clients
	}
	return trust.Read
}

// changes is whether something may be different afterwards.
func (a access) changes() bool { return a == changing || a == registering || a == signing }

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

// withoutQuery makes a handler of one that takes no parameters.
func withoutQuery(serve handler) handler {
	return func(h *Handler, c *call) (any, error) {
		if q := c.query(); q.err != nil {
			return nil, q.err
		}
		return serve(h, c)
	}
}

// having makes a handler of one that needs a part which a server may lack. The code and the
// detail say that it does.
func having(part func(*Options) bool, code, detail string) func(handler) handler {
	return func(serve handler) handler {
		return func(h *Handler, c *call) (any, error) {
			if !part(&h.options) {
				return nil, fault.NotEnabled.Of("%s", detail).Coded(code)
			}
			return serve(h, c)
		}
	}
}

// pattern is the route's name for metrics and logs.
func (r *route) pattern() string {
	if r.method == "" {
		return r.path
	}
	return r.method + " " + r.path
}

// routes is everything that can be called. HEAD is called as GET.
func routes() []route {
	return slices.Concat(ruleRoutes, holdRoutes, listRoutes, overrideRoutes, clientRoutes, statsRoutes, alertRoutes, counterRoutes, queueRoutes)
}

var ruleRoutes = []route{
	{"POST", "/v1/check", checking, (*Handler).check},
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
	{"POST", "/v1/rules/format", reading, taking(MaxDraftBody, (*Handler).formatRule)},
	{"POST", "/v1/rules/try", reading, taking(MaxDraftBody, (*Handler).tryRule)},
	{"POST", "/v1/rules/replay", reading, (*Handler).replayLog},

	{"GET", "/v1/keys", reading, (*Handler).getKey},
	{"DELETE", "/v1/keys", changing, (*Handler).resetKey},

	{"GET", "/v1/now", reading, withoutQuery((*Handler).getNow)},
	{"GET", "/v1/leases", reading, leasing((*Handler).getLeases)},

	{"POST", "/v1/simulate", reading, taking(MaxSimulateBody, (*Handler).simulate)},

	{"POST", "/v1/session", signing, taking(maxSmallBody, (*Handler).signIn)},
	{"DELETE", "/v1/session", signing, withoutQuery((*Handler).signOut)},
	{"GET", "/v1/whoami", looking, withoutQuery((*Handler).whoAmI)},
	{"GET", "/v1/version", looking, withoutQuery((*Handler).getBuild)},
	{"GET", "/v1/openapi.yaml", public, (*Handler).describe},
	{"GET", "/healthz", public, (*Handler).health},
	{"GET", "/readyz", public, (*Handler).ready},
	{"GET", "/healthcheck", public, (*Handler).healthCheck},
	{"GET", "/rlconfig", reading, (*Handler).envoyConfig},
	{"GET", "/metrics", asking, (*Handler).metrics},
}

// shape is a path, with what stands before and behind its variable segment if it has one.
type shape struct {
	before, behind string
	variable       bool
}

type mounted struct {
	route
	name string
}

// mount registers the routes. http.ServeMux alone is not enough, because it redirects,
// and does not answer 404 and 405 with a problem.
func (h *Handler) mount(all []route) {
	h.routes = map[shape][]*mounted{}
	for _, r := range all {
		var s shape
		s.before, s.behind, s.variable = strings.Cut(r.path, "{")
		_, s.behind, _ = strings.Cut(s.behind, "}")
		h.routes[s] = append(h.routes[s], &mounted{r, r.pattern()})
	}
}

// findRoute returns the route of a request, and what stands in its variable segment. If
// there is none, allowed are the methods that the path knows; the path itself is
// unknown if there are none either.
//
// A word that is a route may also be the id of a rule: GET /v1/rules/validate, which no
// other route takes, is about the rule with this id.
func (h *Handler) findRoute(method, path string) (found *mounted, variable string, allowed []string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	// The path as it is, and then with its last segment for the variable one, or the one
	// before: what is more particular is meant.
	s, end := shape{before: path}, len(path)
	for range 3 {
		for _, m := range h.routes[s] {
			if m.method == method || m.method == "" {
				return m, variable, nil
			}
			allowed = append(allowed, m.method)
			if m.method == http.MethodGet {
				allowed = append(allowed, http.MethodHead)
			}
		}
		begin := strings.LastIndexByte(path[:end], '/') + 1
		if begin == 0 || begin == end {
			break
		}
		variable, s = path[begin:end], shape{path[:begin], path[end:], true}
		end = begin - 1
	}
	if name, ok := strings.CutPrefix(path, strings.TrimSuffix(clientPath, "{client}")); ok && strings.Contains(name, "/") {
		found, _, allowed = h.findRoute(method, strings.Replace(clientPath, "{client}", "any:name", 1))
		return found, name, allowed
	}
	slices.Sort(allowed)
	return nil, "", slices.Compact(allowed)
}

// ours is whether a path is the API's, whether or not there is such a route.
func ours(path string) bool {
	return path == "/v1" || strings.HasPrefix(path, "/v1/")
}
