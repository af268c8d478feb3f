package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/internal/ruleedit"
	"github.com/weirhq/weir/rule"
)

// change is what a call wants to do to the rules.
type change struct {
	needsVersion bool   // the writer must say what they have read
	about        string // the rule that is changed, "" if it is the document

	make func(context.Context, manage.Terms) (manage.Written, error)
}

// write carries a change out, and answers.
func (h *Handler) write(c *call, ch change) {
	match, p := ifMatch(c.r)
	if p == nil && ch.needsVersion && !match.given {
		p = unversioned.of(`Say which version you have read, so that nobody's change is lost: send its ETag, as in If-Match: "7", or If-Match: * for whatever is there.`)
	}
	terms := manage.Terms{Author: c.author()}
	if p == nil {
		terms.Summary, p = c.summary()
	}
	if p != nil {
		c.refuse(p)
		return
	}
	if match.given && !match.any {
		terms.Match = match.holds
	}
	written, err := ch.make(c.r.Context(), terms)
	if err != nil {
		h.unwritten(c, ch.about, err)
		return
	}
	c.setETag(written.Version.Number)
	answer := WriteAnswer{
		Version: versionAnswer(written.Version), Warnings: written.Warnings, CommentsKept: written.CommentsKept,
	}
	answer.Version.Source = ""
	status := http.StatusOK
	if written.New {
		status = http.StatusCreated
		c.Header().Set("Location", "/v1/rules/"+ch.about)
	}
	c.answer(status, answer)
}

// unwritten answers why a change did not take place, or is not in force.
func (h *Handler) unwritten(c *call, about string, err error) {
	var (
		late   *manage.OutdatedError
		exists *manage.ExistsError
		idle   *manage.UnappliedError
	)
	switch {
	case errors.As(err, &late):
		c.lost(late.Current)
	case errors.As(err, &exists):
		c.refuse(ruleExists.of("There is a rule %s already; choose another id, or PUT /v1/rules/%s to replace it.", about, about))
	case errors.As(err, &idle):
		h.options.Logger.Error("rules were written and could not be put into force", "version", idle.Version, "request_id", c.id, "error", idle.Err)
		c.setETag(idle.Version)
		p := unapplied.of("Version %d is written, but this instance goes on with the rules that it had; weir's log says why, under this request id.", idle.Version)
		p.Version = idle.Version
		c.refuse(p)
	case errors.Is(err, manage.ErrBusy):
		c.Header().Set("Retry-After", "1")
		c.refuse(busy.of("Others change the rules all the time, so that this change found no place; try again."))
	case errors.Is(err, ruleedit.ErrNoRule):
		c.refuse(missing(about))
	default:
		if p := unusable(err); p != nil {
			c.refuse(p)
			return
		}
		h.rulesTrouble(c, err)
	}
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

// summary is what the writer says about the change.
func (c *call) summary() (string, *Problem) {
	query, p := c.query("summary")
	if p != nil {
		return "", p
	}
	text := query.Get("summary")
	if len(text) > rule.MaxSummary {
		return "", badField.of("summary: it has %d bytes, at most %d are kept; write a line.", len(text), rule.MaxSummary).in("summary")
	}
	return text, nil
}

// unusable is a document, or a rule, with errors. It is nil if the error is another one.
func unusable(err error) *Problem {
	var invalid *rule.InvalidError
	if !errors.As(err, &invalid) {
		return nil
	}
	text := manage.Sentence(errors.New(invalid.Problems[0].Message))
	switch more := len(invalid.Problems) - 1; more {
	case 0:
	case 1:
		text += " There is another error."
	default:
		text += fmt.Sprintf(" There are %d more errors.", more)
	}
	p := badRules.of("%s", text)
	p.Problems = invalid.Problems
	return p
}
