package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/internal/ruleedit"
	"github.com/weirhq/weir/rule"
)

// write carries a change of the rules out, of which about is the rule that is changed, ""
// if it is the document. If it needs a version, the writer must say what they have read.
func (h *Handler) write(c *call, needsVersion bool, about string, change func(context.Context, manage.Terms) (manage.Written, error)) (any, error) {
	match, given, err := ifMatch(c.r)
	if err != nil {
		return nil, err
	}
	if needsVersion && !given {
		return nil, unversioned.of(`Say which version you have read, so that nobody's change is lost: send its ETag, as in If-Match: "7", or If-Match: * for whatever is there.`)
	}
	terms := manage.Terms{Match: match, Author: c.author()}
	if terms.Summary, err = c.summary(); err != nil {
		return nil, err
	}
	written, err := change(c.r.Context(), terms)
	if err != nil {
		return nil, h.unwritten(c, about, err)
	}
	c.setETag(written.Version.Number)
	answer := WriteAnswer{
		Version: versionAnswer(written.Version), Warnings: written.Warnings, CommentsKept: written.CommentsKept,
	}
	answer.Version.Source = ""
	if written.New {
		c.success = http.StatusCreated
		c.Header().Set("Location", "/v1/rules/"+about)
	}
	return answer, nil
}

// unwritten is why a change did not take place, or is not in force.
func (h *Handler) unwritten(c *call, about string, err error) error {
	var (
		late    *manage.OutdatedError
		exists  *manage.ExistsError
		idle    *manage.UnappliedError
		invalid *rule.InvalidError
	)
	switch {
	case errors.As(err, &late):
		return c.at(late.Current, outdated.of("Somebody has changed the rules; the latest version is %d. Read it, make the change again, and send If-Match: %s.", late.Current, etagOf(late.Current)))
	case errors.As(err, &exists):
		return ruleExists.of("There is a rule %s already; choose another id, or PUT /v1/rules/%s to replace it.", about, about)
	case errors.As(err, &idle):
		h.options.Logger.Error("rules were written and could not be put into force", "version", idle.Version, "request_id", c.id, "error", idle.Err)
		return c.at(idle.Version, unapplied.of("Version %d is written, but this instance goes on with the rules that it had; weir's log says why, under this request id.", idle.Version))
	case errors.Is(err, manage.ErrBusy):
		return busy.of("Others change the rules all the time, so that this change found no place; try again.").after("1")
	case errors.Is(err, ruleedit.ErrNoRule):
		return missing(about)
	case errors.As(err, &invalid):
		return unusable(err)
	}
	return h.rulesTrouble(c, err)
}

// at is a problem that is about a version of the rules.
func (c *call) at(version int64, p *Problem) *Problem {
	c.setETag(version)
	p.Version = version
	return p
}

// author signs for a change.
func (c *call) author() string {
	if c.holder != "" {
		return c.holder
	}
	return "http"
}

// summary is what the writer says about the change.
func (c *call) summary() (string, error) {
	q := c.query("summary")
	text := q.text("summary")
	if len(text) > rule.MaxSummary {
		q.wrong(badField.of("summary: it has %d bytes, at most %d are kept; write a line.", len(text), rule.MaxSummary).in("summary"))
	}
	return text, q.err
}

// unusable is a document, or a rule, with errors. It is nil if the error is another one.
func unusable(err error) error {
	invalid, ok := errors.AsType[*rule.InvalidError](err)
	if !ok {
		return nil
	}
	p := badRules.of("%s", manage.Unusable(invalid.Problems))
	p.Problems = invalid.Problems
	return p
}
