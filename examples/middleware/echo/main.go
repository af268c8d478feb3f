// Command echo is an echo application behind weir.
//
//	go run . & for i in 1 2 3 4; do curl -i localhost:8080/ping; done
package main

import (
	"log"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/httplimit"
	_ "github.com/weirhq/weir/rule/rulefile" // reads YAML
)

const rules = `
rules:
  - {id: ping, match: {path: /ping}, key: ip, limit: 3/1m}
`

func newRouter() (*echo.Echo, error) {
	e, err := engine.New(engine.Options{})
	if err != nil {
		return nil, err
	}
	if err := e.Load("rules.yaml", []byte(rules)); err != nil {
		return nil, err
	}
	limit, err := httplimit.New(e, httplimit.Options{})
	if err != nil {
		return nil, err
	}
	router := echo.New()
	router.Use(limited(limit))
	router.GET("/ping", func(c *echo.Context) error { return c.String(http.StatusOK, "pong\n") })
	return router, nil
}

// limited returns an echo middleware that uses the one for net/http.
// echo.WrapMiddleware would also work, but it wraps the handler again for every request.
func limited(limit *httplimit.Middleware) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			r, ok := limit.Allow(c.Response(), c.Request())
			if !ok {
				return nil // already answered
			}
			c.SetRequest(r)
			return next(c)
		}
	}
}

func main() {
	router, err := newRouter()
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("localhost:8080", router))
}
