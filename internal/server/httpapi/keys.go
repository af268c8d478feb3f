package httpapi

import (
	"errors"
	"log/slog"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/manage"
)

// getKey answers GET /v1/keys: how a client stands.
func (h *Handler) getKey(c *call) (any, error) {
	key, id, tier, err := c.who()
	if err != nil {
		return nil, err
	}
	var v engine.Verdict
	used, err := h.options.Engine.Standing(c.r.Context(), id, key, tier, &v)
	if err != nil {
		return nil, h.keyTrouble(c, err)
	}
	answer := KeysAnswer{Key: key, Tier: used.Name, TierFrom: used.From.String(), Version: v.Version, Results: []LimitAnswer{}}
	for i := range v.Results {
		answer.Results = append(answer.Results, h.limitAnswer(&v.Results[i], &h.policies, new(int64)))
	}
	return answer, nil
}

// resetKey answers DELETE /v1/keys.
func (h *Handler) resetKey(c *call) (any, error) {
	key, id, _, err := c.who()
	if err != nil {
		return nil, err
	}
	rules, err := h.options.Engine.Reset(c.r.Context(), id, key)
	if err != nil {
		return nil, h.keyTrouble(c, err)
	}
	return ResetAnswer{Key: key, Rules: append([]string{}, rules...)}, nil
}

// who is the client that a call is about.
func (c *call) who() (key, id, tier string, err error) {
	q := c.query("key", "rule", "tier")
	key, id, tier = q.text("key"), q.text("rule"), q.text("tier")
	if bad := manage.CheckClient(key, tier, "?key=user:alice", "/v1/check"); bad != nil {
		q.wrong(badField.of("%s", bad.Detail).in(bad.Field))
	}
	return key, id, tier, q.err
}

// keyTrouble is why a key could not be looked at or reset.
func (h *Handler) keyTrouble(c *call, err error) error {
	var missing *engine.NoRuleError
	var form *engine.KeyError
	var invalid *weir.InvalidError
	switch {
	case errors.As(err, &missing):
		return noRule.of("There is no rule %q; GET /v1/rules lists all rules.", missing.ID).in("rule").coded("", "rule", missing.ID)
	case errors.As(err, &form):
		return badField.of("key: %s", manage.Sentence(err)).in("key")
	case errors.As(err, &invalid):
		return badField.of("%s", manage.Sentence(err)).in("key")
	}
	return h.unavailable(c, slog.LevelWarn, "store unavailable", err, storeGone.of("The store is unavailable; try again soon."))
}
