package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/internal/traffic/replay"
	"github.com/weirhq/weir/rule"
)

// MaxDraftBody is the longest body about a draft of a rule, in bytes.
const MaxDraftBody = 1 << 20

// FormatRequest is the body of POST /v1/rules/format.
type FormatRequest struct {
	Source string          `json:"source"`         // one rule, as YAML or JSON
	Rule   json.RawMessage `json:"rule,omitempty"` // that the source is to become, keeping its comments
}

// FormatAnswer is what POST /v1/rules/format answers.
type FormatAnswer struct {
	Source   string          `json:"source"` // YAML; as it was sent if it cannot be read
	Rule     json.RawMessage `json:"rule"`   // the same as JSON; null if the source cannot be read
	Problems []rule.Problem  `json:"problems"`
}

// formatRule answers POST /v1/rules/format, so that a page can edit a rule as text and as a
// form at the same time, without reading YAML itself.
func (h *Handler) formatRule(c *call, want *FormatRequest) (any, error) {
	d, err := h.options.Editor.Format(c.r.Context(), []byte(want.Source), want.Rule)
	switch {
	case errors.Is(err, ruleedit.ErrNoObject):
		return nil, fault.Field("rule", `not an object, or too deep or too long for a rule; send the rule as JSON, such as {"id": "login"}, or leave it out.`)
	case err != nil:
		return nil, h.trouble(c).Rules(err)
	}
	return FormatAnswer{Source: string(d.Source), Rule: d.Rule, Problems: append(rule.Problems{}, d.Problems...)}, nil
}

// TryRequest is the body of POST /v1/rules/try.
type TryRequest struct {
	Source  string       `json:"source"`  // the draft of one rule, as YAML or JSON
	Request CheckRequest `json:"request"` // about which is asked
}

// TryAnswer is what POST /v1/rules/try answers: what a check would, with the draft and
// without.
type TryAnswer struct {
	Draft   CheckAnswer `json:"draft"`
	InForce CheckAnswer `json:"in_force"`
}

// tryRule answers POST /v1/rules/try. Both answers use the real usage of clients, and
// charge nothing.
func (h *Handler) tryRule(c *call, want *TryRequest) (any, error) {
	table, _, err := h.options.Editor.Trial(c.r.Context(), []byte(want.Source), h.options.RuleOptions)
	if err != nil {
		return nil, h.untried(c, err)
	}
	var a TryAnswer
	if a.InForce, err = h.peek(c, want.Request, h.options.Engine.Peek); err != nil {
		return nil, err
	}
	a.Draft, err = h.peek(c, want.Request, func(ctx context.Context, r *rule.Request, v *engine.Verdict) error {
		return h.options.Engine.PeekWith(ctx, table, r, v)
	})
	return a, err
}

// untried is why a draft cannot be tried.
func (h *Handler) untried(c *call, err error) error {
	if bad := unusable(err); bad != nil {
		return bad
	}
	return h.trouble(c).Rules(err)
}

// peek asks about a request that stands in a body.
func (h *Handler) peek(c *call, asked CheckRequest, ask func(context.Context, *rule.Request, *engine.Verdict) error) (CheckAnswer, error) {
	q := question{asked: asked}
	if err := q.fill(); err != nil {
		f := calls.Of(err)
		return CheckAnswer{}, f.In("request." + f.Field)
	}
	if err := ask(c.r.Context(), &q.said.Request, &q.verdict); err != nil {
		return CheckAnswer{}, err
	}
	return readBack[CheckAnswer](func(f manage.Fields) { manage.TellVerdict(f, &q.verdict, true) }), nil
}

// Bounds of POST /v1/rules/replay.
const (
	MaxReplayBody = 4 << 20 // bytes: some 20,000 lines

	maxReplaying   = 2                // at once, so that checks have enough CPU time
	maxReplayTime  = 20 * time.Second // for both reports together
	replayKeys     = 1 << 18          // clients under all rules; a log of this size rarely has more
	replayWords    = 1 << 20          // of 8 bytes, in sub-windows of all clients
	replayArrivals = 1 << 18          // that are remembered for suggestions
)

// ReplayRequest is the body of POST /v1/rules/replay.
type ReplayRequest struct {
	Source string `json:"source"` // the draft of one rule, as YAML or JSON; "" for none
	Log    string `json:"log"`    // lines of an access log, as weir replay takes them
}

// ReplayAnswer is the answer of POST /v1/rules/replay. A report has the fields of weir
// replay --output json. Rules that applied to no request are left out, except the draft.
type ReplayAnswer struct {
	Draft   *replay.Report `json:"draft,omitempty"`
	InForce *replay.Report `json:"in_force"`
}

// replayLog answers POST /v1/rules/replay: what the rules would have done with the
// requests of a log, with a draft and without it. No client is charged.
func (h *Handler) replayLog(c *call) (any, error) {
	if q := c.query(); q.err != nil {
		return nil, q.err
	}
	body, err := c.body(MaxReplayBody)
	if err != nil {
		return nil, err
	}
	// From here on, the call needs several times as much memory as the body.
	defer h.replaying.Add(-1)
	if h.replaying.Add(1) > maxReplaying {
		return nil, fault.Busy.Of("%d replays are already running, the maximum; try again.", maxReplaying).After(time.Second).Coded("replays-busy", "max", maxReplaying)
	}
	var want ReplayRequest
	if err := decode(body, &want); err != nil {
		return nil, err
	}
	if strings.TrimSpace(want.Log) == "" {
		return nil, fault.Field("log", "required; send lines of an access log.").Coded("required")
	}
	if len(want.Source) > MaxDraftBody {
		return nil, fault.Field("source", "%d bytes exceed the maximum of %d; send a shorter rule.", len(want.Source), MaxDraftBody)
	}
	return h.replay(c, &want)
}

func (h *Handler) replay(c *call, want *ReplayRequest) (a ReplayAnswer, err error) {
	ctx, cancel := context.WithTimeout(c.r.Context(), h.replayTime)
	defer cancel()
	if want.Source != "" {
		trial, id, err := h.options.Editor.Trial(ctx, []byte(want.Source), h.options.RuleOptions)
		if err != nil {
			return a, h.untried(c, err)
		}
		if a.Draft, err = h.replayed(ctx, trial, want.Log, id); err != nil {
			return a, err
		}
	}
	table, _ := h.options.Engine.Rules()
	a.InForce, err = h.replayed(ctx, table, want.Log, "")
	return a, err
}

// replayed returns a report on the rules that applied, and on the rule with an id. Clients are those that live requests have.
func (h *Handler) replayed(ctx context.Context, table *rule.Table, log, id string) (*replay.Report, error) {
	o := replay.Options{Table: table, MaxKeys: keysFor(table), MaxArrivals: replayArrivals}
	o.Clients, _ = h.options.Engine.Clients() // what has no effect is no error here
	report, err := replay.Run(ctx, o, replay.NewLog("log", strings.NewReader(log)))
	var invalid *weir.InvalidError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fault.Busy.Of("The replay took longer than %s; send a shorter log.", maxReplayTime).Coded("replay-too-long", "seconds", int(maxReplayTime/time.Second))
	case errors.As(err, &invalid):
		return nil, fault.InvalidRequest.Of("log: %s", manage.Sentence(err)).In("log")
	case err != nil:
		return nil, err
	}
	report.Rules = slices.DeleteFunc(report.Rules, func(r replay.RuleReport) bool { return r.Applied == 0 && r.ID != id })
	if report.Rules == nil {
		report.Rules = []replay.RuleReport{}
	}
	return report, nil
}

// keysFor is how many clients are remembered. A draft may give each of them thousands of
// sub-windows.
func keysFor(table *rule.Table) int {
	words := 1
	for _, r := range table.Rules() {
		if r.Algorithm == weir.SlidingBuckets {
			words = max(words, r.Buckets, 64) // which is enough for the default
		}
	}
	return min(replayKeys, replayWords/words)
}
