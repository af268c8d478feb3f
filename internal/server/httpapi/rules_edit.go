package httpapi

import (
	"context"
	"errors"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/rule"
)

// postRule answers POST /v1/rules: a rule that is not there yet.
func (h *Handler) postRule(c *call) (any, error) {
	r, err := c.rule()
	if err != nil {
		return nil, err
	}
	return h.write(c, false, r.ID, func(ctx context.Context, t manage.Terms) (manage.Written, error) {
		return h.options.Editor.Add(ctx, t, r)
	})
}

// putRule answers PUT /v1/rules/{id}: the rule is as the body says, whether or not it
// was there.
func (h *Handler) putRule(c *call) (any, error) {
	r, err := c.rule()
	if err != nil {
		return nil, err
	}
	if r.ID != c.variable {
		return nil, fault.BadField.Of("id: the path has %q and the body has %q; send the same id. To rename a rule, delete it and create another.", c.variable, r.ID).In("id").Coded("other-id", "path", c.variable, "body", r.ID)
	}
	return h.write(c, true, r.ID, func(ctx context.Context, t manage.Terms) (manage.Written, error) {
		return h.options.Editor.Put(ctx, t, r)
	})
}

// deleteRule answers DELETE /v1/rules/{id}.
func (h *Handler) deleteRule(c *call) (any, error) {
	return h.write(c, true, c.variable, func(ctx context.Context, t manage.Terms) (manage.Written, error) {
		return h.options.Editor.Delete(ctx, t, c.variable)
	})
}

// putRules answers PUT /v1/rules: the whole document.
func (h *Handler) putRules(c *call) (any, error) {
	source, err := c.body(rule.MaxDocument)
	if err != nil {
		return nil, err
	}
	d, err := h.options.Editor.Read(source)
	if errors.Is(err, manage.ErrEmpty) {
		return nil, fault.BadBody.Of("%s", manage.Sentence(err))
	}
	if err := unusable(err); err != nil {
		return nil, err
	}
	return h.write(c, true, "", func(ctx context.Context, t manage.Terms) (manage.Written, error) {
		return h.options.Editor.Replace(ctx, t, d)
	})
}

// validate answers POST /v1/rules/validate.
func (h *Handler) validate(c *call) (any, error) {
	q := c.query("as")
	if q.err != nil {
		return nil, q.err
	}
	source, err := c.body(rule.MaxDocument)
	if err != nil {
		return nil, err
	}
	var problems rule.Problems
	switch as := q.text("as"); as {
	case "", "document":
		_, problems = rule.Parse("", source)
	case "rule":
		if problems, err = h.options.Editor.Try(c.r.Context(), source); err != nil {
			return nil, h.rulesTrouble(c, err)
		}
	default:
		return nil, fault.BadField.Of("as: %q is unknown; write document or rule.", as).In("as")
	}
	return ValidateAnswer{Valid: problems.Err() == nil, Problems: append(rule.Problems{}, problems...)}, nil
}

// rule reads a body that is one rule.
func (c *call) rule() (*rule.Rule, error) {
	source, err := c.body(rule.MaxDocument)
	if err != nil {
		return nil, err
	}
	r, err := manage.ParseRule(source)
	return r, unusable(err)
}
