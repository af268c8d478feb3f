package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/rule"
)

// rulesRead is the rules that a call is about.
type rulesRead struct {
	repo.Version
	inForce bool // the rules that this instance applies, whatever is stored
}

// current is the latest version of the rules. While that cannot be read, or if the call
// asks for them, it is the rules in force.
func (h *Handler) current(c *call) (d rulesRead, w rulesWanted, err error) {
	if w, err = c.rulesWanted(); err != nil {
		return d, w, err
	}
	if !w.inForce {
		if d.Version, err = h.options.Editor.Current(c.r.Context()); err == nil {
			return d, w, nil
		}
	}
	if v, ok := h.options.Editor.InForce(); ok && c.r.Context().Err() == nil {
		return rulesRead{v, true}, w, nil
	}
	return d, w, h.rulesTrouble(c, cmp.Or(err, errNotInstalled))
}

var errNotInstalled = errors.New("httpapi: no rules are in force")

// getRules answers GET /v1/rules.
func (h *Handler) getRules(c *call) (any, error) {
	d, w, err := h.current(c)
	if err != nil || c.upToDate(d.Version) {
		return nil, err
	}
	if w.yaml {
		return text{typeYAML, d.Source}, nil
	}
	_, judging := h.options.Engine.Rules()
	answer := RulesAnswer{Version: d.Number, InForce: judging, Unavailable: d.inForce && !w.inForce, NotLoaded: notLoaded(h.options.NotLoaded())}
	if err := json.Unmarshal(rule.ToJSON(d.Document.Set), &answer); err != nil {
		panic(err) // it is what ToJSON writes
	}
	if answer.Rules == nil {
		answer.Rules = json.RawMessage("[]")
	}
	return answer, nil
}

func notLoaded(since time.Time, cause error) *NotLoaded {
	if since.IsZero() {
		return nil
	}
	return &NotLoaded{since.Unix(), manage.Clip(readable(cause.Error()))}
}

// getRule answers GET /v1/rules/{id}.
func (h *Handler) getRule(c *call) (any, error) {
	d, w, err := h.current(c)
	if err != nil {
		return nil, err
	}
	r := d.Document.Find(c.variable)
	switch {
	case r == nil:
		return nil, calls.NoRule(c.variable)
	case c.upToDate(d.Version):
		return nil, nil
	case w.yaml:
		return text{typeYAML, manage.RuleToYAML(r)}, nil
	}
	return text{typeJSON, append(rule.RuleToJSON(r), '\n')}, nil
}

// upToDate tells the version of an answer. If the client has it already, that is all
// there is to answer.
func (c *call) upToDate(v repo.Version) bool {
	c.setETag(v.Number)
	c.Header().Add("Vary", "Accept")
	if unchanged(c.r, v.Number) {
		c.WriteHeader(http.StatusNotModified)
		return true
	}
	return false
}

// rulesWanted is what a client asks for when it reads rules.
type rulesWanted struct {
	yaml    bool // as written, instead of JSON
	inForce bool // return the rules that this instance applies, instead of the stored ones
}

func (c *call) rulesWanted() (w rulesWanted, err error) {
	q := c.query("format", "in_force")
	w.inForce = q.yes("in_force")
	switch format := q.text("format"); format {
	case "yaml":
		w.yaml = true
	case "json":
	case "":
		w.yaml = c.prefersYAML()
	default:
		q.wrong(fault.BadField.Of("format: %q is unknown; write yaml or json.", format).In("format"))
	}
	return w, q.err
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

// rulesTrouble is that the rules could not be read or written.
func (h *Handler) rulesTrouble(c *call, err error) error {
	return h.unavailable(c, slog.LevelError, "cannot read or write rules", err, fault.Rules())
}
