package httpapi

import (
	"net/http"

	"github.com/weirhq/weir/internal/server/manage"
)

// WhoAnswer is what GET /v1/whoami answers, so that a page knows which buttons to show.
type WhoAnswer struct {
	Name  string `json:"name"`  // of the token's holder; "" if no token is asked for
	Scope string `json:"scope"` // read, use or admin
}

// whoAmI answers GET /v1/whoami.
func (h *Handler) whoAmI(c *call) {
	if _, p := c.query(); p != nil {
		c.refuse(p)
		return
	}
	holder, err := manage.Identify(h.options.Tokens(), c.r.Header["Authorization"])
	if err != nil {
		h.turnAway(c, err) // the list was replaced just now
		return
	}
	c.answer(http.StatusOK, WhoAnswer{Name: holder.Name, Scope: holder.Scope.String()})
}
