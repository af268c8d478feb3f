package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"

	"github.com/weirhq/weir/rule"
)

// change makes a new document of the latest one.
type change struct {
	needsVersion bool // the writer must say what they have read
	summary      string

	// edit returns the document, whether all comments are still in it, and the status
	// of the answer when it is written. It may be called again, with a later version.
	edit func(rule.Version) (source []byte, kept bool, status int, p *Problem)

	// about is the rule that is changed, "" if it is the document.
	about string
}

// maxTries is how often a change that names no version is made again because somebody
// on another instance was faster.
const maxTries = 20

// write carries a change out, and answers.
func (h *Handler) write(c *call, ch change) {
	match, p := ifMatch(c.r)
	if p == nil && ch.needsVersion && !match.given {
		p = unversioned.of(`Say which version you have read, so that nobody's change is lost: send its ETag, as in If-Match: "7", or If-Match: * for whatever is there.`)
	}
	if p == nil {
		ch.summary, p = c.summary(ch.summary)
	}
	if p != nil {
		c.refuse(p)
		return
	}
	select {
	case h.writing <- struct{}{}:
		defer func() { <-h.writing }()
	case <-c.r.Context().Done():
		c.gone(c.r.Context().Err())
		return
	}
	for range maxTries {
		if h.try(c, &ch, &match) {
			return
		}
	}
	c.Header().Set("Retry-After", "1")
	c.refuse(busy.of("Others change the rules all the time, so that this change found no place; try again."))
}

// try makes the change once. It is false if somebody was faster, and it may be tried
// again; otherwise the call has been answered.
func (h *Handler) try(c *call, ch *change, match *condition) bool {
	current, err := h.options.Rules.Current(c.r.Context())
	if err != nil {
		h.rulesTrouble(c, err)
		return true
	}
	if !match.holds(current.Number) {
		c.lost(current.Number)
		return true
	}
	source, kept, status, p := ch.edit(current)
	if p != nil {
		c.refuse(p)
		return true
	}
	version := current
	if !bytes.Equal(source, current.Source) {
		draft := rule.Draft{Base: current.Number, Author: c.author(), Summary: ch.summary, Source: source}
		version, err = h.options.Rules.Write(c.r.Context(), draft)
	}
	var conflict *rule.ConflictError
	var invalid *rule.InvalidError
	switch {
	case errors.As(err, &conflict) && (match.any || !match.given):
		return false
	case errors.As(err, &conflict):
		c.lost(conflict.Current.Number)
	case errors.As(err, &invalid):
		c.refuse(unusable(invalid.Problems))
	case err != nil:
		h.rulesTrouble(c, err)
	default:
		h.written(c, ch, version, kept, status)
	}
	return true
}

// written puts a version into force and answers.
func (h *Handler) written(c *call, ch *change, v rule.Version, kept bool, status int) {
	c.setETag(v.Number)
	if err := h.options.Apply(v); err != nil {
		h.options.Logger.Error("rules were written and could not be put into force", "version", v.Number, "request_id", c.id, "error", err)
		p := unapplied.of("Version %d is written, but this instance goes on with the rules that it had; weir's log says why, under this request id.", v.Number)
		p.Version = v.Number
		c.refuse(p)
		return
	}
	if status == http.StatusCreated {
		c.Header().Set("Location", "/v1/rules/"+ch.about)
	}
	_, problems := rule.Parse("", v.Source)
	answer := WriteAnswer{Version: versionAnswer(v), CommentsKept: kept}
	for _, p := range problems.Warnings() {
		if ch.about == "" || p.Rule == ch.about {
			answer.Warnings = append(answer.Warnings, p)
		}
	}
	answer.Version.Source = ""
	c.answer(status, answer)
}

// lost answers that the rules are not what the writer has read.
func (c *call) lost(current int64) {
	c.setETag(current)
	p := outdated.of("Somebody has changed the rules; the latest version is %d. Read it, make the change again, and send If-Match: %s.", current, etagOf(current))
	p.Version = current
	c.refuse(p)
}

// author signs for a change.
func (c *call) author() string {
	if c.holder != "" {
		return c.holder
	}
	return "http"
}

// summary is what the writer says about the change, or else what we say.
func (c *call) summary(otherwise string) (string, *Problem) {
	query, p := c.query("summary")
	if p != nil {
		return "", p
	}
	switch text := query.Get("summary"); {
	case len(text) > rule.MaxSummary:
		return "", badField.of("summary: it has %d bytes, at most %d are kept; write a line.", len(text), rule.MaxSummary).in("summary")
	case text != "":
		return text, nil
	}
	return otherwise, nil
}

// unusable is a document, or a rule, with errors.
func unusable(problems rule.Problems) *Problem {
	text := sentence(errors.New(problems[0].Message))
	switch more := len(problems) - 1; more {
	case 0:
	case 1:
		text += " There is another error."
	default:
		text += fmt.Sprintf(" There are %d more errors.", more)
	}
	p := badRules.of("%s", text)
	p.Problems = problems
	return p
}
