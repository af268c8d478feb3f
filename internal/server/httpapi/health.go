package httpapi

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"time"

	"github.com/weirhq/weir/internal/manage"
)

//go:embed openapi.yaml
var openAPI []byte

// describe answers GET /v1/openapi.yaml.
func (h *Handler) describe(c *call) { c.text(http.StatusOK, typeYAML, openAPI) }

// health answers GET /healthz: the process lives, whatever else is the matter.
func (h *Handler) health(c *call) { c.text(http.StatusOK, typeText, []byte("ok\n")) }

// maxReady is how long GET /readyz may think.
const maxReady = 2 * time.Second

// ready answers GET /readyz.
func (h *Handler) ready(c *call) {
	ctx, cancel := context.WithTimeout(c.r.Context(), maxReady)
	defer cancel()
	c.Header()["Cache-Control"] = uncached
	if err := h.options.Ready(ctx); err != nil {
		c.Header().Set("Retry-After", "1")
		c.refuse(notReady.of("%s", manage.Sentence(err)))
		return
	}
	text := []byte("ready\n")
	if err := h.options.Trouble(); err != nil {
		text = fmt.Appendf(text, "%s\n", err) // a line each
	}
	c.text(http.StatusOK, typeText, text)
}

// healthCheck answers GET /healthcheck with what /readyz says, in the way of
// envoyproxy/ratelimit.
func (h *Handler) healthCheck(c *call) {
	ctx, cancel := context.WithTimeout(c.r.Context(), maxReady)
	defer cancel()
	c.Header()["Cache-Control"] = uncached
	if h.options.Ready(ctx) != nil {
		c.WriteHeader(http.StatusInternalServerError)
		return
	}
	c.text(http.StatusOK, typeText, []byte("OK"))
}

// envoyConfig answers GET /rlconfig.
func (h *Handler) envoyConfig(c *call) {
	if h.options.Envoy == nil {
		c.refuse(noRoute.of("This server has no configuration for Envoy; --envoy-config names its directory."))
		return
	}
	config := h.options.Envoy()
	if config == nil {
		c.refuse(notReady.of("No configuration for Envoy is loaded; weir's log says what is wrong with the files."))
		return
	}
	c.Header()["Content-Type"] = typeText
	_ = config.Dump(c) // who has left needs no answer
}

// metrics answers GET /metrics.
func (h *Handler) metrics(c *call) {
	if h.options.Metrics == nil {
		c.refuse(noRoute.of("This server has no metrics."))
		return
	}
	h.options.Metrics.ServeHTTP(c, c.r)
}

// homePage is for whoever looks in with a browser.
const homePage = `weir decides whether a request may pass.

POST /v1/check         ask it
GET  /v1/rules         by what it judges
GET  /v1/openapi.yaml  everything else
`

// home answers every path that is not the API's.
func (h *Handler) home(c *call) {
	header := c.Header()
	header.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
	header.Set("Referrer-Policy", "no-referrer")
	if h.options.Home != nil {
		read := c.r.Method == http.MethodGet || c.r.Method == http.MethodHead
		if read || h.options.Tokens() != nil || h.atHome(c, asking) {
			h.options.Home.ServeHTTP(c, c.r)
		}
		return
	}
	switch {
	case c.r.URL.Path != "/":
		c.refuse(noRoute.of("There is nothing here; GET /v1/openapi.yaml lists what there is."))
	case c.r.Method != http.MethodGet && c.r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		c.refuse(wrongMethod.of("This page can only be read; GET it."))
	default:
		c.text(http.StatusOK, typeText, []byte(homePage))
	}
}
