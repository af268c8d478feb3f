package httpapi

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
)

// maxStandings is the largest n of GET /v1/keys.
const maxStandings = 100_000

// getKey answers GET /v1/keys: how a client stands.
func (h *Handler) getKey(c *call) (any, error) {
	key, id, tier, n, err := c.who("n")
	if err != nil {
		return nil, err
	}
	var v engine.Verdict
	used, err := h.options.Engine.Standing(c.r.Context(), id, key, tier, &v)
	if err != nil {
		return nil, h.trouble(c).Key(err)
	}
	answer := KeysAnswer{Key: key, Tier: used.Name, TierFrom: used.From.String(), Version: v.Version, Results: []LimitAnswer{}}
	if left := len(v.Results) - n; left > 0 {
		answer.LeftOut = left
		slices.SortStableFunc(v.Results, func(a, b engine.Result) int { return cmp.Compare(share(&a), share(&b)) })
		v.Results = v.Results[:n]
	}
	for i := range v.Results {
		answer.Results = append(answer.Results, readBack[LimitAnswer](func(f manage.Fields) { manage.TellResult(f, &v.Results[i]) }))
	}
	return answer, nil
}

// share is how much of a limit is left.
func share(r *engine.Result) float64 { return float64(r.Remaining) / float64(max(1, r.Limit)) }

// resetKey answers DELETE /v1/keys.
func (h *Handler) resetKey(c *call) (any, error) {
	key, id, _, _, err := c.who()
	if err != nil {
		return nil, err
	}
	rules, err := h.options.Engine.Reset(c.r.Context(), id, key)
	if err != nil {
		return nil, h.trouble(c).Key(err)
	}
	return ResetAnswer{Key: key, Rules: append([]string{}, rules...)}, nil
}

// who is the client that a call is about, and of how many limits it wants to know.
func (c *call) who(more ...string) (key, id, tier string, n int, err error) {
	q := c.query(append(more, "key", "rule", "tier")...)
	key, id, tier = q.text("key"), q.text("rule"), q.text("tier")
	n = int(q.whole("n", math.MaxInt32, 1, maxStandings))
	q.wrong(fault.Wrong(manage.CheckClient(key, tier, "?key=user:alice", "/v1/check")))
	return key, id, tier, n, q.err
}

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
	kinds := rule.FieldNames("list")
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
		return write(h, c, false, "", h.options.Editor.List, l, kinds...)
	}
}
