package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/manage"
)

// outage is when to come back while the store is away, in seconds: a failover takes
// two or three, and whoever comes earlier only makes it harder.
const outage = "5"

// getKey answers GET /v1/keys: how a client stands.
func (h *Handler) getKey(c *call) {
	key, id, tier, p := c.who()
	if p != nil {
		c.refuse(p)
		return
	}
	var v engine.Verdict
	used, err := h.options.Engine.Standing(c.r.Context(), id, key, tier, &v)
	if err != nil {
		h.keyTrouble(c, err)
		return
	}
	answer := KeysAnswer{Key: key, Tier: used.Name, TierFrom: used.From.String(), Version: v.Version, Results: []LimitAnswer{}}
	for i := range v.Results {
		answer.Results = append(answer.Results, h.limitAnswer(&v.Results[i], new(int64)))
	}
	c.answer(http.StatusOK, answer)
}

// forgiveKey answers DELETE /v1/keys.
func (h *Handler) forgiveKey(c *call) {
	key, id, _, p := c.who()
	if p != nil {
		c.refuse(p)
		return
	}
	rules, err := h.options.Engine.Forgive(c.r.Context(), id, key)
	if err != nil {
		h.keyTrouble(c, err)
		return
	}
	c.answer(http.StatusOK, ForgiveAnswer{Key: key, Rules: append([]string{}, rules...)})
}

// who is the client that a call is about.
func (c *call) who() (key, id, tier string, p *Problem) {
	query, p := c.query("key", "rule", "tier")
	if p != nil {
		return "", "", "", p
	}
	key, id, tier = query.Get("key"), query.Get("rule"), query.Get("tier")
	switch {
	case key == "":
		p = badField.of("key: it is missing; write who is meant, such as ?key=user:alice, as an answer of /v1/check names it.").in("key")
	case len(key) > weir.MaxKeyLen:
		p = badField.of("key: it has %d bytes, and no key has more than %d; write it as an answer of /v1/check names it.", len(key), weir.MaxKeyLen).in("key")
	case len(tier) > manage.MaxWord:
		p = badField.of("tier: it has %d bytes, at most %d are taken; write a tier that a rule names.", len(tier), manage.MaxWord).in("tier")
	}
	return key, id, tier, p
}

// keyTrouble answers why a key could not be looked at or forgiven.
func (h *Handler) keyTrouble(c *call, err error) {
	var missing *engine.NoRuleError
	var form *engine.KeyError
	var invalid *weir.InvalidError
	switch {
	case errors.As(err, &missing):
		c.refuse(noRule.of("There is no rule %q; GET /v1/rules lists all.", missing.ID).in("rule"))
	case errors.As(err, &form):
		c.refuse(badField.of("key: %s", manage.Sentence(err)).in("key"))
	case errors.As(err, &invalid):
		c.refuse(badField.of("%s", manage.Sentence(err)).in("key"))
	case errors.Is(err, context.Canceled) && c.r.Context().Err() != nil:
		c.gone(err)
	default:
		h.options.Logger.Warn("the store could not be asked", "route", c.name, "request_id", c.id, "error", err)
		c.Header().Set("Retry-After", outage)
		c.refuse(storeGone.of("The store cannot be asked just now; try again soon."))
	}
}
