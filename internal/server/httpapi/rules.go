package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/rule"
)

// rulesRead is the rules that a call is about.
type rulesRead struct {
	repo.Version
	set     *rule.Set
	inForce bool // those by which this instance judges, whatever is stored
}

// current is the latest version of the rules. While that cannot be read, or if the call
// asks for them, it is the rules in force. If there are none to be had, the call has been
// answered.
func (h *Handler) current(c *call, inForce bool) (rulesRead, bool) {
	var err error
	if !inForce {
		var d rulesRead
		if d.Version, d.set, err = h.editor.Current(c.r.Context()); err == nil {
			return d, true
		}
	}
	if v, set, ok := h.editor.InForce(); ok && c.r.Context().Err() == nil {
		return rulesRead{v, set, true}, true
	}
	if err == nil {
		err = errNotInstalled
	}
	h.rulesTrouble(c, err)
	return rulesRead{}, false
}

var errNotInstalled = errors.New("httpapi: no rules are in force")

// getRules answers GET /v1/rules.
func (h *Handler) getRules(c *call) {
	w, p := c.rulesWanted()
	if p != nil {
		c.refuse(p)
		return
	}
	d, ok := h.current(c, w.inForce)
	if !ok || c.upToDate(d.Version) {
		return
	}
	if w.yaml {
		c.text(http.StatusOK, typeYAML, d.Source)
		return
	}
	_, judging := h.options.Engine.Rules()
	answer := RulesAnswer{Version: d.Number, InForce: judging, Unavailable: d.inForce && !w.inForce}
	if err := json.Unmarshal(rule.ToJSON(d.set), &answer); err != nil {
		panic(err) // it is what ToJSON writes
	}
	if answer.Rules == nil {
		answer.Rules = json.RawMessage("[]")
	}
	c.answer(http.StatusOK, answer)
}

// getRule answers GET /v1/rules/{id}.
func (h *Handler) getRule(c *call) {
	w, p := c.rulesWanted()
	if p != nil {
		c.refuse(p)
		return
	}
	d, ok := h.current(c, w.inForce)
	if !ok {
		return
	}
	r := manage.Find(d.set, c.variable)
	if r == nil {
		c.refuse(missing(c.variable))
		return
	}
	if c.upToDate(d.Version) {
		return
	}
	if w.yaml {
		c.text(http.StatusOK, typeYAML, manage.RuleToYAML(r))
		return
	}
	c.text(http.StatusOK, typeJSON, append(rule.RuleToJSON(r), '\n'))
}

// upToDate tells the version of an answer. If the client has it already, that is all
// there is to answer.
func (c *call) upToDate(v repo.Version) bool {
	c.setETag(v.Number)
	c.Header().Set("Vary", "Accept")
	if unchanged(c.r, v.Number) {
		c.WriteHeader(http.StatusNotModified)
		return true
	}
	return false
}

// rulesWanted is what a client asks for when it reads rules.
type rulesWanted struct {
	yaml    bool // as written, instead of JSON
	inForce bool // those by which this instance judges, instead of what is stored
}

func (c *call) rulesWanted() (w rulesWanted, p *Problem) {
	query, p := c.query("format", "in_force")
	if p != nil {
		return w, p
	}
	switch value := query.Get("in_force"); value {
	case "true":
		w.inForce = true
	case "", "false":
	default:
		return w, badField.of("in_force: %q is not known; write true or false.", value).in("in_force")
	}
	switch format := query.Get("format"); format {
	case "yaml":
		w.yaml = true
	case "json":
	case "":
		w.yaml = c.prefersYAML()
	default:
		return w, badField.of("format: %q is not known; write yaml or json.", format).in("format")
	}
	return w, nil
}

// prefersYAML is whether Accept names YAML before JSON.
func (c *call) prefersYAML() bool {
	for part := range strings.SplitSeq(strings.Join(c.r.Header["Accept"], ","), ",") {
		kind, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "application/yaml", "application/x-yaml", "text/yaml":
			return true
		case "application/json", "*/*":
			return false
		}
	}
	return false
}

// missing is a rule that is not there.
func missing(id string) *Problem {
	return noRule.of("There is no rule %q; GET /v1/rules lists all.", manage.Clip(id))
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
