// Command gin is a gin application behind weir.
//
//	go run . & for i in 1 2 3 4; do curl -i localhost:8080/ping; done
package main

import (
	"log"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/httplimit"
	_ "github.com/weirhq/weir/rule/rulefile" // reads YAML
)

const rules = `
rules:
  - {id: ping, match: {path: /ping}, key: ip, limit: 3/1m}
`

// limited returns a gin handler that uses the middleware.
func limited(limit *httplimit.Middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		r, ok := limit.Allow(c.Writer, c.Request)
		if !ok {
			c.Abort() // already answered
			return
		}
		c.Request = r
	}
}

func newRouter() (*gin.Engine, error) {
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
	router := gin.New()
	router.Use(gin.Recovery(), limited(limit))
	router.GET("/ping", func(c *gin.Context) { c.String(http.StatusOK, "pong\n") })
	return router, nil
}

func main() {
	router, err := newRouter()
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("localhost:8080", router))
}
