package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/server/manage"
)

// current is the latest version of the rules. If there is none to be had, the call has
// been answered.
func (h *Handler) current(c *call) (rule.Version, *rule.Set, bool) {
	v, set, err := h.editor.Current(c.r.Context())
	if err != nil {
		h.rulesTrouble(c, err)
	}
	return v, set, err == nil
}

// getRules answers GET /v1/rules.
func (h *Handler) getRules(c *call) {
	yaml, p := c.wantsYAML()
	if p != nil {
		c.refuse(p)
		return
	}
	v, set, ok := h.current(c)
	if !ok || c.upToDate(v) {
		return
	}
	if yaml {
		c.text(http.StatusOK, typeYAML, v.Source)
		return
	}
	answer := RulesAnswer{Version: v.Number}
	if err := json.Unmarshal(rule.ToJSON(set), &answer); err != nil {
		panic(err) // it is what ToJSON writes
	}
	if answer.Rules == nil {
		answer.Rules = json.RawMessage("[]")
	}
	c.answer(http.StatusOK, answer)
}

// getRule answers GET /v1/rules/{id}.
func (h *Handler) getRule(c *call) {
	yaml, p := c.wantsYAML()
	if p != nil {
		c.refuse(p)
		return
	}
	v, set, ok := h.current(c)
	if !ok {
		return
	}
	r := manage.Find(set, c.variable)
	if r == nil {
		c.refuse(missing(c.variable))
		return
	}
	if c.upToDate(v) {
		return
	}
	if yaml {
		c.text(http.StatusOK, typeYAML, manage.RuleToYAML(r))
		return
	}
	c.text(http.StatusOK, typeJSON, append(rule.RuleToJSON(r), '\n'))
}

// upToDate tells the version of an answer. If the client has it already, that is all
// there is to answer.
func (c *call) upToDate(v rule.Version) bool {
	c.setETag(v.Number)
	c.Header().Set("Vary", "Accept")
	if unchanged(c.r, v.Number) {
		c.WriteHeader(http.StatusNotModified)
		return true
	}
	return false
}

// wantsYAML is whether the client asks for YAML: by ?format=yaml, or by naming it
// before JSON in Accept.
func (c *call) wantsYAML() (bool, *Problem) {
	query, p := c.query("format")
	if p != nil {
		return false, p
	}
	switch format := query.Get("format"); format {
	case "yaml":
		return true, nil
	case "json":
		return false, nil
	case "":
	default:
		return false, badField.of("format: %q is not known; write yaml or json.", format).in("format")
	}
	for part := range strings.SplitSeq(strings.Join(c.r.Header["Accept"], ","), ",") {
		kind, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "application/yaml", "application/x-yaml", "text/yaml":
			return true, nil
		case "application/json", "*/*":
			return false, nil
		}
	}
	return false, nil
}

// missing is a rule that is not there.
func missing(id string) *Problem {
	return noRule.of("There is no rule %q; GET /v1/rules lists all.", clip(id))
}

// rulesTrouble answers that the rules could not be read or written. Why is for the
// log: it may be about paths and servers that are nobody's business.
func (h *Handler) rulesTrouble(c *call, err error) {
	if cause := c.r.Context().Err(); cause != nil && errors.Is(err, cause) {
		c.gone(cause)
		return
	}
	h.options.Logger.Error("the rules could not be read or written", "route", c.name, "request_id", c.id, "error", err)
	c.Header().Set("Retry-After", outage)
	c.refuse(rulesGone.of("The rules cannot be read or written just now; weir's log says why, under this request id. If this was a change, read the rules to see whether it took place."))
}
