package httpapi

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/weirhq/weir/rule"
)

// postRule answers POST /v1/rules: a rule that is not there yet.
func (h *Handler) postRule(c *call) {
	r, p := c.rule()
	if p != nil {
		c.refuse(p)
		return
	}
	h.write(c, change{about: r.ID, edit: func(v rule.Version) ([]byte, bool, int, *Problem) {
		set, err := h.shown.setOf(v)
		if err == nil && find(set, r.ID) != nil {
			return nil, false, 0, ruleExists.of("There is a rule %s already; choose another id, or PUT /v1/rules/%s to replace it.", r.ID, r.ID)
		}
		source, kept, p := put(v, r)
		return source, kept, http.StatusCreated, p
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
	h.write(c, change{needsVersion: true, about: r.ID, edit: func(v rule.Version) ([]byte, bool, int, *Problem) {
		status := http.StatusOK
		if set, err := h.shown.setOf(v); err == nil && find(set, r.ID) == nil {
			status = http.StatusCreated
		}
		source, kept, p := put(v, r)
		return source, kept, status, p
	}})
}

// deleteRule answers DELETE /v1/rules/{id}.
func (h *Handler) deleteRule(c *call) {
	h.write(c, change{needsVersion: true, about: c.variable, edit: func(v rule.Version) ([]byte, bool, int, *Problem) {
		source, kept, err := rule.Delete(v.Source, c.variable)
		var invalid *rule.InvalidError
		switch {
		case errors.Is(err, rule.ErrNoRule):
			return nil, false, 0, missing(c.variable)
		case errors.As(err, &invalid):
			return nil, false, 0, unusable(invalid.Problems)
		case err != nil:
			return nil, false, 0, badRules.of("%s", sentence(err))
		}
		return source, kept, http.StatusOK, nil
	}})
}

// putRules answers PUT /v1/rules: the whole document.
func (h *Handler) putRules(c *call) {
	source, p := c.document()
	if p != nil {
		c.refuse(p)
		return
	}
	h.write(c, change{needsVersion: true, edit: func(rule.Version) ([]byte, bool, int, *Problem) {
		return source, true, http.StatusOK, nil
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
		var ok bool
		if problems, ok = h.tryRule(c, source); !ok {
			return
		}
	default:
		c.refuse(badField.of("as: %q is not known; write document or rule.", as).in("as"))
		return
	}
	c.answer(http.StatusOK, ValidateAnswer{Valid: problems.Err() == nil, Problems: append(rule.Problems{}, problems...)})
}

// tryRule says what is wrong with a rule, by itself or together with the others. If it
// is not true, the call has been answered.
func (h *Handler) tryRule(c *call, source []byte) (rule.Problems, bool) {
	r, problems := rule.ParseRule("", source)
	if problems.Err() != nil {
		return problems, true
	}
	v, _, ok := h.current(c)
	if !ok {
		return nil, false
	}
	if _, _, p := put(v, r); p != nil {
		problems = append(problems, p.Problems...)
	}
	return problems, true
}

// put puts a rule into the document of a version.
func put(v rule.Version, r *rule.Rule) ([]byte, bool, *Problem) {
	source, kept, err := rule.Put(v.Source, r)
	var invalid *rule.InvalidError
	switch {
	case errors.As(err, &invalid):
		return nil, false, unusable(invalid.Problems)
	case err != nil:
		return nil, false, badRules.of("%s", sentence(err))
	}
	return source, kept, nil
}

// rule reads a body that is one rule.
func (c *call) rule() (*rule.Rule, *Problem) {
	source, p := c.body(rule.MaxDocument)
	if p != nil {
		return nil, p
	}
	r, problems := rule.ParseRule("", source)
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, unusable(errs)
	}
	return r, nil
}

// document reads a body that is a whole document. Nothing at all is a document without
// rules, for who reads it, and a mistake, for who sends it.
func (c *call) document() ([]byte, *Problem) {
	source, p := c.body(rule.MaxDocument)
	if p != nil {
		return nil, p
	}
	set, problems := rule.Parse("", source)
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, unusable(errs)
	}
	if len(set.Rules) == 0 && !bytes.Contains(source, []byte("rules")) {
		return nil, badBody.of(`The document has no rules; to have none, say so: "rules: []".`)
	}
	return source, nil
}
