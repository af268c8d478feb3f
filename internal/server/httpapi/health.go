package httpapi

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"time"

	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
)

//go:embed openapi.yaml
var openAPI []byte

// describe answers GET /v1/openapi.yaml.
func (h *Handler) describe(*call) (any, error) { return text{typeYAML, openAPI}, nil }

// getBuild answers GET /v1/version. It needs a token, because a version tells an attacker which
// flaws to try.
func (h *Handler) getBuild(*call) (any, error) { return build.Read(), nil }

// health answers GET /healthz: the process lives, whatever else is the matter.
func (h *Handler) health(*call) (any, error) { return text{typeText, []byte("ok\n")}, nil }

// maxReady is how long GET /readyz may think.
const maxReady = 2 * time.Second

// ready answers GET /readyz.
func (h *Handler) ready(c *call) (any, error) {
	if err := h.notReady(c); err != nil {
		return nil, fault.NotReady.Of("%s", manage.Sentence(err)).After(time.Second)
	}
	answer := []byte("ready\n")
	if err := h.options.Trouble(); err != nil {
		answer = fmt.Appendf(answer, "%s\n", err) // a line each
	}
	return text{typeText, answer}, nil
}

// notReady is why no requests should come yet.
func (h *Handler) notReady(c *call) error {
	ctx, cancel := context.WithTimeout(c.r.Context(), maxReady)
	defer cancel()
	c.Header()["Cache-Control"] = uncached
	return h.options.Ready(ctx)
}

// healthCheck answers GET /healthcheck with what /readyz says, in the way of
// envoyproxy/ratelimit.
func (h *Handler) healthCheck(c *call) (any, error) {
	if h.notReady(c) != nil {
		c.WriteHeader(http.StatusInternalServerError)
		return nil, nil
	}
	return text{typeText, []byte("OK")}, nil
}

// envoyConfig answers GET /rlconfig.
func (h *Handler) envoyConfig(c *call) (any, error) {
	if h.options.Envoy == nil {
		return nil, fault.NotFound.Of("This server has no Envoy configuration; set --envoy-config or --envoy-xds.")
	}
	config := h.options.Envoy()
	if config == nil {
		return nil, fault.NotReady.Of("No Envoy configuration is loaded; weir's log says why.")
	}
	c.Header()["Content-Type"] = typeText
	_ = config.Dump(c) // who has left needs no answer
	return nil, nil
}

// metrics answers GET /metrics.
func (h *Handler) metrics(c *call) (any, error) {
	if h.options.Metrics == nil {
		return nil, fault.NotFound.Of("Metrics are not enabled on this server.")
	}
	h.options.Metrics.ServeHTTP(c, c.r)
	return nil, nil
}

// homePage is shown in browsers, if there is no dashboard.
const homePage = `weir is an API rate limiter.

POST /v1/check         check a request
GET  /v1/rules         list the rules
GET  /v1/openapi.yaml  describe the whole API
`

// home answers every path that is not the API's.
func (h *Handler) home(c *call) (any, error) {
	header := c.Header()
	header.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
	header.Set("Referrer-Policy", "no-referrer")
	read := c.r.Method == http.MethodGet || c.r.Method == http.MethodHead
	switch {
	case h.options.Home != nil:
		if !read {
			if err := h.allow(c, asking); err != nil {
				return nil, err
			}
		}
		h.options.Home.ServeHTTP(c, c.r)
		return nil, nil
	case c.r.URL.Path != "/":
		return nil, fault.NotFound.Of("There is no such path; GET /v1/openapi.yaml lists all paths of the API.")
	case !read:
		header.Set("Allow", "GET, HEAD")
		return nil, fault.MethodNotAllowed.Of("This page supports only GET and HEAD.")
	}
	return text{typeText, []byte(homePage)}, nil
}
