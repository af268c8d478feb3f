package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/internal/repo"
)

// maxSmallBody is the longest body that is neither rules nor a check.
const maxSmallBody = 4 << 10

func versionAnswer(v repo.Version) VersionAnswer {
	return VersionAnswer{
		Number: v.Number, Time: v.Time.UTC(), Author: v.Author, Summary: v.Summary, Source: string(v.Source),
	}
}

// getHistory answers GET /v1/rules/history.
func (h *Handler) getHistory(c *call) {
	if _, p := c.query(); p != nil {
		c.refuse(p)
		return
	}
	versions, err := h.editor.History(c.r.Context())
	if err != nil {
		h.rulesTrouble(c, err)
		return
	}
	answer := HistoryAnswer{Versions: []VersionAnswer{}}
	for _, v := range versions {
		answer.Versions = append(answer.Versions, versionAnswer(v))
	}
	c.answer(http.StatusOK, answer)
}

// getVersion answers GET /v1/rules/history/{version}.
func (h *Handler) getVersion(c *call) {
	number, err := strconv.ParseInt(c.variable, 10, 64)
	if err != nil || number < 0 {
		c.refuse(noVersion.of("A version is a number; GET /v1/rules/history lists those that are kept."))
		return
	}
	if v, ok := h.version(c, number); ok {
		c.answer(http.StatusOK, versionAnswer(v))
	}
}

// version finds a version. If it is not there, the call has been answered.
func (h *Handler) version(c *call, number int64) (repo.Version, bool) {
	v, err := h.editor.Version(c.r.Context(), number)
	switch {
	case errors.Is(err, repo.ErrNoVersion):
		c.refuse(noVersion.of("Version %d is not kept, or never was; GET /v1/rules/history lists those that are.", number))
	case err != nil:
		h.rulesTrouble(c, err)
	}
	return v, err == nil
}

// rollBack answers POST /v1/rules/rollback: the document of an older version is
// written again, as a new one. What came between stays in the history.
func (h *Handler) rollBack(c *call) {
	body, p := c.body(maxSmallBody)
	var want RollbackRequest
	if p == nil {
		p = decode(body, &want, []string{"version"})
	}
	if p == nil && want.Version < 1 {
		p = badField.of("version: %d is none; GET /v1/rules/history lists those that are kept.", want.Version).in("version")
	}
	if p != nil {
		c.refuse(p)
		return
	}
	old, ok := h.version(c, want.Version)
	if !ok {
		return
	}
	h.write(c, change{needsVersion: true, make: func(ctx context.Context, t manage.Terms) (manage.Written, error) {
		return h.editor.RollBack(ctx, t, old)
	}})
}
