package httpapi

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
)

// MaxDraftBody is the longest body about a draft of a rule, in bytes.
const MaxDraftBody = 1 << 20

// FormatRequest is the body of POST /v1/rules/format.
type FormatRequest struct {
	Source string          `json:"source"`         // one rule, as YAML or JSON
	Rule   json.RawMessage `json:"rule,omitempty"` // that the source is to become, keeping its comments
}

// FormatAnswer is what POST /v1/rules/format answers.
type FormatAnswer struct {
	Source   string          `json:"source"` // YAML; as it was sent if it cannot be read
	Rule     json.RawMessage `json:"rule"`   // the same as JSON; null if the source cannot be read
	Problems []rule.Problem  `json:"problems"`
}

// formatRule answers POST /v1/rules/format, so that a page can edit a rule as text and as a
// form at the same time, without reading YAML itself.
func (h *Handler) formatRule(c *call, want *FormatRequest) (any, error) {
	d, err := h.options.Editor.Format(c.r.Context(), []byte(want.Source), want.Rule)
	switch {
	case errors.Is(err, ruleedit.ErrNoObject):
		return nil, fault.BadField.Of(`rule: not an object, or too deep or too long for a rule; send the rule as JSON, such as {"id": "login"}, or leave it out.`).In("rule")
	case err != nil:
		return nil, h.rulesTrouble(c, err)
	}
	return FormatAnswer{Source: string(d.Source), Rule: d.Rule, Problems: append(rule.Problems{}, d.Problems...)}, nil
}

// TryRequest is the body of POST /v1/rules/try.
type TryRequest struct {
	Source  string       `json:"source"`  // the draft of one rule, as YAML or JSON
	Request CheckRequest `json:"request"` // about which is asked
}

// TryAnswer is what POST /v1/rules/try answers: what a check would, with the draft and
// without.
type TryAnswer struct {
	Draft   CheckAnswer `json:"draft"`
	InForce CheckAnswer `json:"in_force"`
}

// tryRule answers POST /v1/rules/try. Both answers use the real usage of clients, and
// charge nothing.
func (h *Handler) tryRule(c *call, want *TryRequest) (any, error) {
	table, _, err := h.options.Editor.Trial(c.r.Context(), []byte(want.Source), h.options.RuleOptions)
	if err != nil {
		return nil, h.untried(c, err)
	}
	var a TryAnswer
	if a.InForce, err = h.peek(c, want.Request, h.options.Engine.Peek); err != nil {
		return nil, err
	}
	a.Draft, err = h.peek(c, want.Request, func(ctx context.Context, r *rule.Request, v *engine.Verdict) error {
		return h.options.Engine.PeekWith(ctx, table, r, v)
	})
	return a, err
}

// untried is why a draft cannot be tried.
func (h *Handler) untried(c *call, err error) error {
	if bad := unusable(err); bad != nil {
		return bad
	}
	return h.rulesTrouble(c, err)
}

// peek asks about a request that stands in a body.
func (h *Handler) peek(c *call, asked CheckRequest, ask func(context.Context, *rule.Request, *engine.Verdict) error) (CheckAnswer, error) {
	q := question{asked: asked}
	if err := q.fill(); err != nil {
		f := calls.Of(err)
		return CheckAnswer{}, f.In("request." + f.Field)
	}
	if err := ask(c.r.Context(), &q.said.Request, &q.verdict); err != nil {
		return CheckAnswer{}, err
	}
	return readBack[CheckAnswer](func(f manage.Fields) { manage.TellVerdict(f, &q.verdict, true) }), nil
}
