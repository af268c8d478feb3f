package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/weirhq/weir/rule"
)

// shown is the version of the rules that was asked for last, parsed: a document of
// many rules takes long to read, and is read more often than it changes.
type shown struct {
	mu      sync.Mutex
	version rule.Version
	set     *rule.Set
}

// setOf parses the document of a version.
func (s *shown) setOf(v rule.Version) (*rule.Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set != nil && s.version.Number == v.Number && bytes.Equal(s.version.Source, v.Source) {
		return s.set, nil
	}
	set, problems := rule.Parse("", v.Source)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	s.version, s.set = v, set
	return set, nil
}

// current is the latest version of the rules. If there is none to be had, the call has
// been answered.
func (h *Handler) current(c *call) (rule.Version, *rule.Set, bool) {
	v, err := h.options.Rules.Current(c.r.Context())
	if err != nil {
		h.rulesTrouble(c, err)
		return v, nil, false
	}
	set, err := h.shown.setOf(v)
	if err != nil {
		h.rulesTrouble(c, err)
		return v, nil, false
	}
	return v, set, true
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
	r := find(set, c.variable)
	if r == nil {
		c.refuse(missing(c.variable))
		return
	}
	if c.upToDate(v) {
		return
	}
	if yaml {
		c.text(http.StatusOK, typeYAML, ruleToYAML(r))
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

// ruleToYAML writes one rule as ParseRule reads it.
func ruleToYAML(r *rule.Rule) []byte {
	// A document of this rule alone, without its first line, and its list of one.
	_, list, _ := bytes.Cut(rule.Format(&rule.Set{Rules: []rule.Rule{*r}}), []byte("\n"))
	const dash = "  - "
	var text []byte
	for line := range bytes.Lines(list) {
		if len(line) > len(dash) {
			line = line[len(dash):]
		}
		text = append(text, line...)
	}
	same, problems := rule.ParseRule("", text)
	if problems.Err() != nil || !bytes.Equal(rule.RuleToJSON(same), rule.RuleToJSON(r)) {
		return append(rule.RuleToJSON(r), '\n') // which is YAML, too
	}
	return text
}

func find(set *rule.Set, id string) *rule.Rule {
	for i := range set.Rules {
		if set.Rules[i].ID == id {
			return &set.Rules[i]
		}
	}
	return nil
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
