package httpapi

import (
	"context"
	"strconv"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
)

// maxSmallBody is the longest body that is neither rules nor a check.
const maxSmallBody = 4 << 10

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
		return nil, h.rulesTrouble(c, err)
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
	if f := calls.OfVersion(number, err); f != nil {
		return v, f
	}
	if err != nil {
		err = h.rulesTrouble(c, err)
	}
	return v, err
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
		return nil, fault.BadField.Of("version: %d is not a version; GET /v1/rules/history lists the versions that are kept.", want.Version).In("version").Coded("no-such-version", "version", want.Version)
	}
	old, err := h.version(c, want.Version)
	if err != nil {
		return nil, err
	}
	return h.write(c, true, "", func(ctx context.Context, t manage.Terms) (manage.Written, error) {
		return h.options.Editor.RollBack(ctx, t, old)
	})
}
