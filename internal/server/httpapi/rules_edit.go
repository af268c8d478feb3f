package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/rule"
)

// postRule answers POST /v1/rules: a rule that is not there yet.
func (h *Handler) postRule(c *call) {
	r, p := c.rule()
	if p != nil {
		c.refuse(p)
		return
	}
	h.write(c, change{about: r.ID, make: func(ctx context.Context, t manage.Terms) (manage.Written, error) {
		return h.editor.Add(ctx, t, r)
	}})
}

// putRule answers PUT /v1/rules/{id}: the rule is as the body says, whether or not it
// was there.
func (h *Handler) putRule(c *call) {
	r, p := c.rule()
	if p == nil && r.ID != c.variable {
		p = badField.of("id: the path says %q and the body %q; let them be the same. To rename a rule, delete it and create another.", c.variable, r.ID).in("id")
	}
	if p != nil {
		c.refuse(p)
		return
	}
	h.write(c, change{needsVersion: true, about: r.ID, make: func(ctx context.Context, t manage.Terms) (manage.Written, error) {
		return h.editor.Put(ctx, t, r)
	}})
}

// deleteRule answers DELETE /v1/rules/{id}.
func (h *Handler) deleteRule(c *call) {
	h.write(c, change{needsVersion: true, about: c.variable, make: func(ctx context.Context, t manage.Terms) (manage.Written, error) {
		return h.editor.Delete(ctx, t, c.variable)
	}})
}

// putRules answers PUT /v1/rules: the whole document.
func (h *Handler) putRules(c *call) {
	source, p := c.document()
	if p != nil {
		c.refuse(p)
		return
	}
	h.write(c, change{needsVersion: true, make: func(ctx context.Context, t manage.Terms) (manage.Written, error) {
		return h.editor.Replace(ctx, t, source)
	}})
}

// validate answers POST /v1/rules/validate.
func (h *Handler) validate(c *call) {
	query, p := c.query("as")
	if p != nil {
		c.refuse(p)
		return
	}
	source, p := c.body(rule.MaxDocument)
	if p != nil {
		c.refuse(p)
		return
	}
	var problems rule.Problems
	switch as := query.Get("as"); as {
	case "", "document":
		_, problems = rule.Parse("", source)
	case "rule":
		var err error
		if problems, err = h.editor.Try(c.r.Context(), source); err != nil {
			h.rulesTrouble(c, err)
			return
		}
	default:
		c.refuse(badField.of("as: %q is not known; write document or rule.", as).in("as"))
		return
	}
	c.answer(http.StatusOK, ValidateAnswer{Valid: problems.Err() == nil, Problems: append(rule.Problems{}, problems...)})
}

// rule reads a body that is one rule.
func (c *call) rule() (*rule.Rule, *Problem) {
	source, p := c.body(rule.MaxDocument)
	if p != nil {
		return nil, p
	}
	r, err := manage.ParseRule(source)
	return r, unusable(err)
}

// document reads a body that is a whole document.
func (c *call) document() ([]byte, *Problem) {
	source, p := c.body(rule.MaxDocument)
	if p != nil {
		return nil, p
	}
	err := manage.CheckDocument(source)
	if errors.Is(err, manage.ErrEmpty) {
		return nil, badBody.of("%s", manage.Sentence(err))
	}
	return source, unusable(err)
}
