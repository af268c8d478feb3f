package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/rule"
)

// postRule answers POST /v1/rules: a rule that is not there yet.
func (h *Handler) postRule(c *call) (any, error) {
	r, err := c.rule()
	if err != nil {
		return nil, err
	}
	return write(h, c, false, r.ID, h.options.Editor.Add, r)
}

// putRule answers PUT /v1/rules/{id}: the rule is as the body says, whether or not it
// was there.
func (h *Handler) putRule(c *call) (any, error) {
	r, err := c.rule()
	if err != nil {
		return nil, err
	}
	if r.ID != c.variable {
		return nil, fault.Field("id", "the path has %q and the body has %q; send the same id. To rename a rule, delete it and create another.", c.variable, r.ID).Coded("other-id", "path", c.variable, "body", r.ID)
	}
	return write(h, c, true, r.ID, h.options.Editor.Put, r)
}

// deleteRule answers DELETE /v1/rules/{id}.
func (h *Handler) deleteRule(c *call) (any, error) {
	return write(h, c, true, c.variable, h.options.Editor.Delete, c.variable)
}

// putRules answers PUT /v1/rules: the whole document.
func (h *Handler) putRules(c *call) (any, error) {
	source, err := c.body(rule.MaxDocument)
	if err != nil {
		return nil, err
	}
	d, err := h.options.Editor.Read(source)
	if errors.Is(err, manage.ErrEmpty) {
		return nil, fault.BadBody.Of("%s", manage.Sentence(err))
	}
	if err := unusable(err); err != nil {
		return nil, err
	}
	return write(h, c, true, "", h.options.Editor.Replace, d)
}

// validate answers POST /v1/rules/validate.
func (h *Handler) validate(c *call) (any, error) {
	q := c.query("as")
	if q.err != nil {
		return nil, q.err
	}
	source, err := c.body(rule.MaxDocument)
	if err != nil {
		return nil, err
	}
	var problems rule.Problems
	switch as := q.text("as"); as {
	case "", "document":
		_, problems = rule.Parse("", source)
	case "rule":
		if problems, err = h.options.Editor.Try(c.r.Context(), source); err != nil {
			return nil, h.trouble(c).Rules(err)
		}
	default:
		return nil, fault.Field("as", "%q is unknown; write document or rule.", as)
	}
	return ValidateAnswer{Valid: problems.Err() == nil, Problems: append(rule.Problems{}, problems...)}, nil
}

// rule reads a body that is one rule.
func (c *call) rule() (*rule.Rule, error) {
	source, err := c.body(rule.MaxDocument)
	if err != nil {
		return nil, err
	}
	r, err := manage.ParseRule(source)
	return r, unusable(err)
}

// rollBack answers POST /v1/rules/rollback: the document of an older version is
// written again, as a new one. What came between stays in the history.
func (h *Handler) rollBack(c *call) (any, error) {
	body, err := c.body(maxSmallBody)
	var want RollbackRequest
	if err == nil {
		err = decode(body, &want)
	}
	if err != nil {
		return nil, err
	}
	if want.Version < 1 {
		return nil, fault.Field("version", "%d is not a version; GET /v1/rules/history lists the versions that are kept.", want.Version).Coded("no-such-version", "version", want.Version)
	}
	old, err := h.version(c, want.Version)
	if err != nil {
		return nil, err
	}
	return write(h, c, true, "", h.options.Editor.RollBack, old)
}

// write carries a change of the rules out, of which about is the rule that is changed, ""
// if it is the document. If it needs a version, the writer must say what they have read.
// The query may have other parameters than the summary, which are known.
func write[T any](h *Handler, c *call, needsVersion bool, about string, change func(context.Context, manage.Terms, T) (manage.Written, error), to T, known ...string) (any, error) {
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
	written, err := change(c.r.Context(), terms, to)
	if err != nil {
		return nil, h.trouble(c).Change(about, err)
	}
	c.setTag(versionText(written.Version.Number))
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

// author signs for a change.
func (c *call) author() string {
	return cmp.Or(c.caller.Name, "http")
}

// summary is what the writer says about the change.
func (c *call) summary(known []string) (string, error) {
	q := c.query(append([]string{"summary"}, known...)...)
	text := q.text("summary")
	if len(text) > rule.MaxSummary {
		q.wrong(fault.Field("summary", "%d bytes exceed the maximum of %d; write one line.", len(text), rule.MaxSummary).Coded("too-long", "bytes", len(text), "max", rule.MaxSummary))
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
