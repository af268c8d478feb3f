package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/rule"
)

// current is the latest version of the rules. While that cannot be read, or if the call
// asks for them, it is the rules in force.
func (h *Handler) current(c *call) (v repo.Version, w rulesWanted, err error) {
	if w, err = c.rulesWanted(); err != nil {
		return v, w, err
	}
	if !w.inForce {
		if v, err = h.options.Editor.Current(c.r.Context()); err == nil {
			return v, w, nil
		}
		w.unavailable = true
	}
	if v, ok := h.options.Editor.InForce(); ok && c.r.Context().Err() == nil {
		return v, w, nil
	}
	return v, w, h.trouble(c).Rules(cmp.Or(err, errNotInstalled))
}

var errNotInstalled = errors.New("httpapi: no rules are in force")

// getRules answers GET /v1/rules.
func (h *Handler) getRules(c *call) (any, error) {
	v, w, err := h.current(c)
	if err != nil || c.hasRules(v) {
		return nil, err
	}
	if w.yaml {
		return text{typeYAML, v.Source}, nil
	}
	_, judging := h.options.Engine.Rules()
	answer := RulesAnswer{Version: v.Number, InForce: judging, Unavailable: w.unavailable, NotLoaded: notLoaded(h.options.NotLoaded())}
	if err := json.Unmarshal(rule.ToJSON(v.Document.Set), &answer); err != nil {
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
	n := &NotLoaded{Since: since.Unix(), Error: manage.Clip(readable(cause.Error()))}
	if invalid, ok := errors.AsType[*rule.InvalidError](cause); ok {
		n.Problems = slices.Clone(invalid.Problems[:min(len(invalid.Problems), maxNotLoaded)])
		for i := range n.Problems {
			n.Problems[i].Excerpt = ""
		}
	}
	return n
}

// getRule answers GET /v1/rules/{id}.
func (h *Handler) getRule(c *call) (any, error) {
	v, w, err := h.current(c)
	if err != nil {
		return nil, err
	}
	r := v.Document.Find(c.variable)
	switch {
	case r == nil:
		return nil, calls.NoRule(c.variable)
	case c.hasRules(v):
		return nil, nil
	case w.yaml:
		return text{typeYAML, manage.RuleToYAML(r)}, nil
	}
	return text{typeJSON, append(rule.RuleToJSON(r), '\n')}, nil
}

// hasRules is upToDate for a version of the rules, which are answered in two formats.
func (c *call) hasRules(v repo.Version) bool {
	c.Header().Add("Vary", "Accept")
	return c.upToDate(versionText(v.Number))
}

// rulesWanted is what a client asks for when it reads rules.
type rulesWanted struct {
	yaml    bool // as written, instead of JSON
	inForce bool // return the rules that this instance applies, instead of the stored ones

	unavailable bool // they are returned because the stored ones cannot be read
}

func (c *call) rulesWanted() (w rulesWanted, err error) {
	q := c.query("format", "in_force")
	w.inForce = q.yes("in_force")
	w.yaml = c.format(q, "yaml", "application/yaml", "application/x-yaml", "text/yaml")
	return w, q.err
}

// format is whether an answer is to have another format than JSON: the query says so, or else
// the header Accept.
func (c *call) format(q *query, other string, kinds ...string) bool {
	switch format := q.text("format"); format {
	case "":
		return c.prefers(kinds...)
	case "json", other:
		return format == other
	default:
		q.wrong(fault.Field("format", "%.40q is unknown; write %s or json.", format, other))
		return false
	}
}

// prefers is whether Accept names one of these types before JSON.
func (c *call) prefers(kinds ...string) bool {
	for part := range strings.SplitSeq(strings.Join(c.r.Header["Accept"], ","), ",") {
		kind, _, _ := strings.Cut(part, ";")
		switch kind = strings.ToLower(strings.TrimSpace(kind)); {
		case slices.Contains(kinds, kind):
			return true
		case kind == "application/json" || kind == "*/*":
			return false
		}
	}
	return false
}

func versionAnswer(v repo.Version) VersionAnswer {
	return VersionAnswer{
		Number: v.Number, Time: v.Time.UTC(), Author: v.Author, Summary: v.Summary, Source: string(v.Source),
	}
}

// getHistory answers GET /v1/rules/history.
func (h *Handler) getHistory(c *call) (any, error) {
	q := c.queryOfTexts("", "rule")
	if q.err != nil {
		return nil, q.err
	}
	var (
		versions []repo.Version
		all      = true
		err      error
	)
	if id := q.text("rule"); id == "" {
		versions, err = h.options.Editor.History(c.r.Context())
	} else {
		versions, all, err = h.options.Editor.RuleHistory(c.r.Context(), id)
	}
	if err != nil {
		return nil, h.trouble(c).Rules(err)
	}
	answer := HistoryAnswer{Versions: []VersionAnswer{}, Incomplete: !all}
	for _, v := range versions {
		answer.Versions = append(answer.Versions, versionAnswer(v))
	}
	return answer, nil
}

// getVersion answers GET /v1/rules/history/{version}.
func (h *Handler) getVersion(c *call) (any, error) {
	number, err := strconv.ParseInt(c.variable, 10, 64)
	if err != nil || number < 0 {
		return nil, fault.NoVersion.Of("A version is a number; GET /v1/rules/history lists the versions that are kept.")
	}
	v, err := h.version(c, number)
	return versionAnswer(v), err
}

// version finds a version.
func (h *Handler) version(c *call, number int64) (repo.Version, error) {
	v, err := h.options.Editor.Version(c.r.Context(), number)
	return v, h.trouble(c).Version(number, err)
}
