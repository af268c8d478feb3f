package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
)

// write carries a change of the rules out, of which about is the rule that is changed, ""
// if it is the document. If it needs a version, the writer must say what they have read.
// The query may have other parameters than the summary, which are known.
func (h *Handler) write(c *call, needsVersion bool, about string, change func(context.Context, manage.Terms) (manage.Written, error), known ...string) (any, error) {
	match, given, err := ifMatch(c.r)
	if err != nil {
		return nil, err
	}
	if needsVersion && !given {
		return nil, fault.VersionRequired.Of(`If-Match is required, so that no change is overwritten; send the ETag of the version you read, as in If-Match: "7", or If-Match: * to replace any version.`)
	}
	terms := manage.Terms{Match: match, Author: c.author()}
	if terms.Summary, err = c.summary(known); err != nil {
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
	if idle, ok := errors.AsType[*manage.UnappliedError](err); ok {
		h.options.Logger.Error("rules stored but not applied", "version", idle.Version, "request_id", c.id[0], "error", idle.Err)
	}
	if errors.Is(err, ruleedit.ErrNoRule) {
		return calls.NoRule(about)
	}
	if f := calls.Of(err); f != nil {
		return f
	}
	return h.rulesTrouble(c, err)
}

// author signs for a change.
func (c *call) author() string {
	return cmp.Or(c.caller.Name, "http")
}

// summary is what the writer says about the change.
func (c *call) summary(known []string) (string, error) {
	q := c.query(append([]string{"summary"}, known...)...)
	text := q.text("summary")
	if len(text) > rule.MaxSummary {
		q.wrong(fault.BadField.Of("summary: %d bytes exceed the maximum of %d; write one line.", len(text), rule.MaxSummary).In("summary").Coded("too-long", "bytes", len(text), "max", rule.MaxSummary))
	}
	return text, q.err
}

// unusable is a document, or a rule, with errors. It is nil if the error is another one.
func unusable(err error) error {
	if _, ok := errors.AsType[*rule.InvalidError](err); ok {
		return err
	}
	return nil
}
