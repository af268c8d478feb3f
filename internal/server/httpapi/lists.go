package httpapi

import (
	"context"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/internal/ruleedit"
	"github.com/weirhq/weir/rule"
)

var listRoutes = []route{
	{"PUT", "/v1/exempt", changing, list("exempt", false)},
	{"DELETE", "/v1/exempt", changing, list("exempt", true)},
	{"PUT", "/v1/block", changing, list("block", false)},
	{"DELETE", "/v1/block", changing, list("block", true)},
}

// list puts the client that the query names on a list of the rules, or takes it off. It
// says what is wanted, not what the document is to be, so that it is made on top of
// whatever is there.
func list(name string, off bool) handler {
	kinds := rule.Fields("list")
	return func(h *Handler, c *call) (any, error) {
		q := c.queryOfTexts("", slices.Concat(kinds, []string{"summary"})...)
		l := ruleedit.Listing{List: name, Off: off}
		for _, kind := range kinds {
			switch value := q.text(kind); {
			case value == "":
			case l.Kind != "":
				q.wrong(fault.BadField.Of("%s: send one of ip, user and api_key, not several.", kind).In(kind))
			case len(value) > manage.MaxWord:
				q.wrong(fault.BadField.Of("%s: %d bytes exceed the maximum of %d; send less.", kind, len(value), manage.MaxWord).In(kind))
			case kind == "api_key" && !strings.HasPrefix(value, "sha256:"):
				q.wrong(fault.BadField.Of("api_key: send its hash, such as sha256:1f8c…, as /v1/check returns it; a URL must not have the key itself.").In(kind))
			default:
				l.Kind, l.Client = kind, value
			}
		}
		if l.Kind == "" {
			q.wrong(fault.BadField.Of("Name a client: send ?ip=, ?user= or ?api_key= with its hash."))
		}
		if q.err != nil {
			return nil, q.err
		}
		return h.write(c, false, "", func(ctx context.Context, t manage.Terms) (manage.Written, error) {
			return h.options.Editor.List(ctx, t, l)
		}, kinds...)
	}
}
