package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/notation"
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
	if h.options.Clients != nil {
		for _, e := range h.options.Clients.Line(key) {
			answer.Directory = append(answer.Directory, entryAnswer(&e))
		}
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
	q.wrong(manage.CheckClient(key, tier, "?key=user:alice", "/v1/check"))
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
				q.wrong(fault.Field(kind, "send one of ip, user and api_key, not several."))
			case len(value) > manage.MaxWord:
				q.wrong(fault.Field(kind, "%d bytes exceed the maximum of %d; send less.", len(value), manage.MaxWord))
			case kind == "api_key" && !strings.HasPrefix(value, "sha256:"):
				q.wrong(fault.Field(kind, "send its hash, such as sha256:1f8c…, as /v1/check returns it; a URL must not have the key itself."))
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

var overrideRoutes = []route{
	{"GET", "/v1/overrides", reading, overriding((*Handler).getOverrides)},
	{"POST", "/v1/overrides", changing, overriding(taking(maxOverrideBody, (*Handler).addOverride))},
	{"DELETE", "/v1/overrides/{id}", changing, overriding(withoutQuery((*Handler).endOverride))},
}

// maxOverrideBody is the longest body of POST /v1/overrides, in bytes.
const maxOverrideBody = 16 << 10

var overriding = having(func(o *Options) bool { return o.Overrides != nil }, "overrides-off", "This server keeps no overrides, because it has no rules.")

// OverrideRequest is the body of POST /v1/overrides.
type OverrideRequest struct {
	Rule   string   `json:"rule"`
	Key    string   `json:"key"`
	Limit  string   `json:"limit,omitempty"`
	Limits []string `json:"limits,omitempty"` // instead of limit
	Burst  int64    `json:"burst,omitempty"`
	Zone   string   `json:"zone,omitempty"`   // of calendar limits, instead of the rule's
	Starts Start    `json:"starts,omitempty"` // likewise
	Until  string   `json:"until,omitempty"`  // RFC 3339
	For    string   `json:"for,omitempty"`    // instead of until: a duration such as "2h"
	Reason string   `json:"reason"`
}

// Start is where a period of the calendar starts. A day of the month may be a number.
type Start string

// UnmarshalJSON reads a text or a number. As in other fields, null is as if it was left out.
func (s *Start) UnmarshalJSON(source []byte) error {
	var day *int64
	if json.Unmarshal(source, &day) == nil && day != nil {
		*s = Start(strconv.FormatInt(*day, 10))
		return nil
	}
	return json.Unmarshal(source, (*string)(s))
}

// OverrideAnswer is an override. When and how it ended stands behind its state.
type OverrideAnswer struct {
	manage.Override
	State      manage.OverrideState `json:"state"`
	EndedAt    time.Time            `json:"ended_at,omitzero"` // of one that is not active
	EndedBy    string               `json:"ended_by,omitempty"`
	ReplacedBy string               `json:"replaced_by,omitempty"`
	NoEffect   string               `json:"no_effect,omitempty"` // of an active one: why it has none
	Code       string               `json:"no_effect_code,omitempty"`
}

// OverridesAnswer is what GET /v1/overrides answers, the newest first.
type OverridesAnswer struct {
	Overrides []OverrideAnswer `json:"overrides"`
}

// LimitOverride is the override from which a limit comes.
type LimitOverride struct {
	ID     string    `json:"id"`
	EndsAt time.Time `json:"ends_at"`
}

func overrideAnswer(o manage.ListedOverride) OverrideAnswer {
	a := OverrideAnswer{Override: o.Override, State: o.State, EndedBy: o.EndedBy, ReplacedBy: o.ReplacedBy, NoEffect: o.NoEffect.Detail, Code: o.NoEffect.Code}
	if o.State != manage.OverrideActive {
		a.EndedAt = o.End()
	}
	return a
}

// getOverrides answers GET /v1/overrides.
func (h *Handler) getOverrides(c *call) (any, error) {
	q := c.query("rule", "key", "state")
	f := manage.OverrideFilter{Rule: q.text("rule"), Key: q.text("key")}
	switch state := q.text("state"); state {
	case "", "active":
	case "ended":
		f.Past = true
	case "all":
		f.All = true
	default:
		q.wrong(fault.Field("state", "%.40q is unknown; write active, ended or all.", state))
	}
	if q.err != nil {
		return nil, q.err
	}
	answer := OverridesAnswer{Overrides: []OverrideAnswer{}}
	for _, o := range h.options.Overrides.List(f) {
		answer.Overrides = append(answer.Overrides, overrideAnswer(o))
	}
	return answer, nil
}

// addOverride answers POST /v1/overrides.
func (h *Handler) addOverride(c *call, want *OverrideRequest) (any, error) {
	d := manage.OverrideDraft{
		Rule: want.Rule, Key: want.Key, Limits: want.Limits, Burst: want.Burst, Zone: want.Zone, Starts: string(want.Starts), Reason: want.Reason, Author: c.author(),
	}
	if want.Limit != "" {
		d.Limits = []string{want.Limit}
	}
	var err error
	if want.Until != "" {
		if d.Until, err = time.Parse(time.RFC3339, want.Until); err != nil {
			return nil, fault.Field("until", "%.40q is not a time; write it as in 2026-01-31T18:00:00Z.", want.Until).Coded("not-a-time", "value", want.Until)
		}
	}
	if want.For != "" {
		if d.For, err = notation.ParseDuration(want.For); err != nil || d.For <= 0 {
			return nil, fault.Field("for", "%.40q is not a duration; write for example 2h or 7d.", want.For).Coded("not-a-duration", "value", want.For)
		}
	}
	made, err := h.options.Overrides.Add(c.r.Context(), d)
	if err != nil {
		return nil, h.overrideTrouble(c, err)
	}
	c.success = http.StatusCreated
	return overrideAnswer(h.options.Overrides.Describe(made)), nil
}

func (r *OverrideRequest) validate() error {
	switch {
	case r.Limit != "" && len(r.Limits) > 0:
		return fault.Field("limits", "cannot be combined with limit; send one of the two.").Coded("exclusive", "other", "limit")
	case r.Until != "" && r.For != "":
		return fault.Field("for", "cannot be combined with until; send one of the two.").Coded("exclusive", "other", "until")
	}
	return nil
}

// endOverride answers DELETE /v1/overrides/{id}.
func (h *Handler) endOverride(c *call) (any, error) {
	ended, err := h.options.Overrides.End(c.r.Context(), c.variable, c.author())
	if err != nil {
		return nil, h.overrideTrouble(c, err)
	}
	return overrideAnswer(h.options.Overrides.Describe(ended)), nil
}

// overrideTrouble is why overrides could not be changed.
func (h *Handler) overrideTrouble(c *call, err error) error {
	switch {
	case errors.Is(err, manage.ErrNoOverride):
		return fault.NoOverride.Of("There is no override %q; GET /v1/overrides?state=all lists all overrides that are kept.", manage.Clip(c.variable)).Coded("", "override", c.variable)
	case errors.Is(err, manage.ErrManyOverrides):
		return fault.BadField.Of("There are already %d active overrides, the maximum; end some, or put the clients into a tier.", manage.MaxOverrides).Coded("too-many", "max", manage.MaxOverrides)
	case errors.Is(err, manage.ErrBusy):
		return fault.Busy.Of("Too many other changes of the overrides are in progress; try again.").After(time.Second).Coded("overrides-busy")
	}
	if calls.Of(err) != nil {
		return err
	}
	return h.trouble(c).Unavailable(slog.LevelError, "cannot read or write overrides", err,
		fault.StoreUnavailable.Of("The overrides cannot be read or written now; weir's log has the cause under this request ID. Active overrides stay in force until they end. If this was a change, list the overrides later to see whether it was made.").Coded("overrides-unavailable"))
}
