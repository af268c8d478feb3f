package httpapi

import (
	"context"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// readable makes a text of what may be any bytes: keys are what clients have sent.
func readable(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// summary is the answer of what happened, with what this instance knows of itself.
func (h *Handler) summary(s *stats.Summary) *SummaryAnswer {
	answer := &SummaryAnswer{
		From: s.From.Unix(), To: s.To.Unix(), Window: s.To.Unix() - s.From.Unix(),
		Traffic: s.Traffic, DeniedShare: s.DeniedShare(), Latency: s.Decision, Routes: s.Routes, Priorities: s.Priorities,
		Local: s.Local, Adaptive: h.options.Adaptive(), Reserved: h.options.Engine.Reserved(), Protect: h.options.Protect(), Store: storeOf(h.options.Outage()), Recorder: recorderOf(h.options.Stats.Health()),
		NotLoaded: notLoaded(h.options.NotLoaded()), Rules: listed(s.Rules),
	}
	if s.Upstream.Requests > 0 {
		answer.Upstream = &s.Upstream
	}
	for _, r := range s.Rules {
		for i := range r.Tiers {
			r.Tiers[i].Tier = readable(r.Tiers[i].Tier)
		}
	}
	return answer
}

func storeOf(since time.Time, cause error) StatsStore {
	if since.IsZero() {
		return StatsStore{Up: true}
	}
	s := StatsStore{UnavailableSince: unixOf(since)}
	if cause != nil {
		s.Error = manage.Clip(readable(cause.Error()))
	}
	return s
}

// unixOf is a time in Unix seconds, nil if there is none.
func unixOf(at time.Time) *int64 {
	if at.IsZero() {
		return nil
	}
	unix := at.Unix()
	return &unix
}

func recorderOf(health stats.Health) StatsRecorder {
	r := StatsRecorder{
		Pending: health.Pending, Lost: health.Lost, Dropped: health.Dropped, Sampling: max(health.Sampling, 1),
		UnavailableSince: unixOf(health.UnavailableSince), CompleteSince: unixOf(health.CompleteSince),
	}
	if health.Err != nil {
		r.Error = manage.Clip(readable(health.Err.Error()))
	}
	return r
}

// statsSummary answers GET /v1/stats/summary.
func (h *Handler) statsSummary(c *call) (any, error) {
	q := c.query("from", "to")
	var want stats.Query
	want.From, want.To = q.stretch(h.options.Clock(), time.Minute)
	s, err := consult(h, c, q, "from", want, func(r *stats.Recorder, ctx context.Context, q stats.Query) (*stats.Summary, error) {
		return r.Summary(ctx, q.From, q.To)
	})
	if err != nil {
		return nil, err
	}
	return h.summary(s), nil
}

// statsSeries answers GET /v1/stats/series.
func (h *Handler) statsSeries(c *call) (any, error) {
	q := c.query("from", "to", "step", "rule", "tier")
	var want stats.Query
	want.From, want.To = q.stretch(h.options.Clock(), time.Hour)
	want.Step, want.Rule, want.Tier = q.step(), q.name("rule"), q.name("tier")
	if want.Tier != "" && want.Rule == "" {
		q.wrong(fault.Field("tier", "a tier belongs to a rule; also send rule."))
	}
	s, err := consult(h, c, q, "step", want, (*stats.Recorder).Series)
	if err != nil {
		return nil, err
	}
	answer := &SeriesAnswer{
		StatsRange: rangeOf(s.Range), Local: s.Local, Points: make([]StatsPoint, len(s.Points)), InFlight: s.InFlight,
	}
	some := false
	for i, p := range s.Points {
		some = some || p.Requests > 0
		point := StatsPoint{T: p.Time.Unix(), Traffic: p.Traffic, InFlight: p.InFlight, Levels: p.Levels}
		if want.Rule == "" {
			point.StatsPointTimes = &StatsPointTimes{
				P50: stats.Micros(p.Decision.P50), P90: stats.Micros(p.Decision.P90), P99: stats.Micros(p.Decision.P99),
				UpstreamRequests: p.Upstream.Requests, UpstreamErrors: p.Upstream.Errors, UpstreamP99: stats.Micros(p.Upstream.Latency.P99),
			}
		}
		answer.Points[i] = point
	}
	return answer, h.knownRule(want.Rule, some)
}

// statsTop answers GET /v1/stats/top.
func (h *Handler) statsTop(c *call) (any, error) {
	q := c.query("by", "window", "rule", "n")
	want := stats.TopQuery{By: q.by(stats.ParseBy), Window: q.period(), N: q.ranked(), Rule: q.name("rule")}
	top, err := consult(h, c, q, "n", want, (*stats.Recorder).Top)
	if err != nil {
		return nil, err
	}
	entries := make([]TopEntry, len(top.Keys))
	of := h.ruleInForce(want.Rule)
	for i, e := range top.Keys {
		entries[i] = ranked(of, e)
	}
	return &TopAnswer{
		By: want.By.String(), Window: want.Window.String(), Rule: want.Rule, From: top.From.Unix(), To: top.To.Unix(),
		Total: top.Total, Floor: top.Floor, Sampling: top.Sampling, Local: top.Local, Entries: entries,
	}, h.knownRule(want.Rule, len(top.Keys) > 0)
}

// ranked is a key in the ranking of a rule, which may be nil.
func ranked(of *rule.Entry, e archive.Entry) TopEntry {
	level := ""
	if of != nil {
		level = of.Level(e.Key)
	}
	return TopEntry{readable(e.Key), e.Count, e.Error, level}
}

// listed is a list that is there even if it is empty.
func listed[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// statsSuggest answers GET /v1/stats/suggest.
func (h *Handler) statsSuggest(c *call) (any, error) {
	q := c.query("rule", "from", "to", "share")
	want := stats.Query{Rule: q.rule()}
	want.From, want.To = q.stretch(h.options.Clock(), 7*24*time.Hour)
	shares := q.shares()
	all, err := consult(h, c, q, "share", want, func(r *stats.Recorder, ctx context.Context, q stats.Query) ([]stats.Suggestion, error) {
		return r.Suggest(ctx, q.Rule, q.From, q.To, shares...)
	})
	if err != nil {
		return nil, err
	}
	answer := &SuggestAnswer{Rule: want.Rule, From: want.From.Unix(), To: want.To.Unix(), Suggestions: make([]Suggestion, len(all))}
	for i, s := range all {
		answer.Suggestions[i] = Suggestion{Tier: readable(s.Tier), Period: s.Period.Seconds(), Requests: s.Requests, Denied: s.Denied, Data: max(0, int64(s.To.Sub(s.From)/time.Second)), Targets: listed(s.Targets)}
	}
	return answer, h.knownRule(want.Rule, len(all) > 0)
}

// statsRules answers GET /v1/stats/rules.
func (h *Handler) statsRules(c *call) (any, error) {
	q := c.query("from", "to", "step", "by", "n")
	want := stats.RuleQuery{Step: q.step(), By: q.by(stats.ParseRuleBy), N: int(q.whole("n", 5, 1, stats.MaxSeriesRules))}
	want.From, want.To = q.stretch(h.options.Clock(), time.Hour)
	s, err := consult(h, c, q, "step", want, (*stats.Recorder).RuleSeries)
	if err != nil {
		return nil, err
	}
	answer := &RulesSeriesAnswer{
		StatsRange: rangeOf(s.Range), By: want.By.String(), Local: s.Local,
		Times: make([]int64, len(s.Times)), Rules: listed(s.Rules), Other: OtherValues{s.Other.Total, s.Other.Values},
	}
	for i, t := range s.Times {
		answer.Times[i] = t.Unix()
	}
	return answer, nil
}

// statsClients answers GET /v1/stats/clients.
func (h *Handler) statsClients(c *call) (any, error) {
	q := c.query("from", "to", "rule", "by", "n", "prefix")
	want := stats.ClientsQuery{Rule: q.name("rule"), By: q.by(stats.ParseBy), N: int(q.whole("n", 10, 1, stats.MaxClients)), Prefix: q.key("prefix")}
	want.From, want.To = q.stretch(h.options.Clock(), time.Hour)
	s, err := consult(h, c, q, "from", want, (*stats.Recorder).Clients)
	if err != nil {
		return nil, err
	}
	answer := &ClientsAnswer{
		StatsRange: rangeOf(s.Range), By: want.By.String(), Rule: want.Rule, Total: s.Total, Floor: s.Floor,
		Sampling: s.Sampling, Local: s.Local, Clients: make([]StatsClient, len(s.Clients)),
	}
	of := h.ruleInForce(want.Rule)
	for i, k := range s.Clients {
		answer.Clients[i] = StatsClient{ranked(of, k.Entry), k.Rules, k.First.Unix(), k.Last.Unix(), k.Values}
	}
	return answer, h.knownRule(want.Rule, len(s.Clients) > 0)
}

// statsClient answers GET /v1/stats/client.
func (h *Handler) statsClient(c *call) (any, error) {
	q := c.query("key", "from", "to")
	key := q.key("key")
	if key == "" {
		q.wrong(fault.Field("key", "required; send the key of a client, as in ?key=user:alice.").Coded("required"))
	}
	var want stats.Query
	want.From, want.To = q.stretch(h.options.Clock(), 24*time.Hour)
	s, err := consult(h, c, q, "from", want, func(r *stats.Recorder, ctx context.Context, q stats.Query) (*stats.ClientSeries, error) {
		return r.ClientSeries(ctx, key, q.From, q.To)
	})
	if err != nil {
		return nil, err
	}
	answer := &ClientAnswer{
		StatsRange: rangeOf(s.Range), Key: readable(key), Floor: s.Floor, Sampling: s.Sampling, Local: s.Local, Points: make([]ClientPoint, len(s.Points)),
	}
	for i, p := range s.Points {
		answer.Points[i] = ClientPoint{p.Time.Unix(), p.Allowed, p.Denied}
	}
	return answer, nil
}

// statsDenials answers GET /v1/stats/denials.
func (h *Handler) statsDenials(c *call) (any, error) {
	q := c.query("rule", "key", "n")
	want := q.latest()
	s, err := consult(h, c, q, "n", want, (*stats.Recorder).Denials)
	if err != nil {
		return nil, err
	}
	for i := range s.Events {
		d := &s.Events[i]
		d.Key, d.Path, d.Tier, d.Instance = readable(d.Key), readable(d.Path), readable(d.Tier), readable(d.Instance)
	}
	return &DenialsAnswer{s.Local, listed(s.Events)}, h.knownRule(want.Rule, len(s.Events) > 0)
}

// statsWarnings answers GET /v1/stats/warnings.
func (h *Handler) statsWarnings(c *call) (any, error) {
	q := c.query("rule", "key", "n", "min_period")
	want := q.latest()
	want.MinPeriod = q.duration("min_period", "leave it out for all limits")
	s, err := consult(h, c, q, "n", want, (*stats.Recorder).Warnings)
	if err != nil {
		return nil, err
	}
	for i := range s.Events {
		w := &s.Events[i]
		w.Key, w.Instance = readable(w.Key), readable(w.Instance)
		w.Show()
	}
	return &WarningsAnswer{s.Local, listed(s.Events)}, h.knownRule(want.Rule, len(s.Events) > 0)
}

// statsUsage answers GET /v1/stats/usage.
func (h *Handler) statsUsage(c *call) (any, error) {
	q := c.query("rule", "from", "to")
	want := stats.Query{Rule: q.rule()}
	want.From, want.To = q.stretch(h.options.Clock(), time.Hour)
	u, err := consult(h, c, q, "from", want, func(r *stats.Recorder, ctx context.Context, q stats.Query) (*stats.Usage, error) {
		return r.Usage(ctx, q.Rule, q.From, q.To)
	})
	if err != nil {
		return nil, err
	}
	answer := &UsageAnswer{Rule: want.Rule, From: u.From.Unix(), To: u.To.Unix(), Local: u.Local, Limits: make([]LimitUsage, len(u.Limits))}
	for i, l := range u.Limits {
		l.Slots = listed(l.Slots)
		answer.Limits[i] = LimitUsage{readable(l.Tier), l.Period.Seconds(), l.Limit, l.UnitUsage}
	}
	return answer, h.knownRule(want.Rule, len(u.Limits) > 0)
}

// statsHolds answers GET /v1/stats/holds.
func (h *Handler) statsHolds(c *call) (any, error) {
	q := c.query("rule", "from", "to", "step")
	want := stats.HoldsQuery{Rule: q.rule(), Step: q.step()}
	want.From, want.To = q.stretch(h.options.Clock(), time.Hour)
	s, err := consult(h, c, q, "step", want, (*stats.Recorder).Holds)
	if err != nil {
		return nil, err
	}
	answer := &HoldsAnswer{
		StatsRange: rangeOf(s.Range), Rule: want.Rule, Local: s.Local, HoldCounts: s.Total.HoldCounts, Points: make([]HoldPoint, len(s.Points)),
	}
	if s.Total.Reserved > 0 {
		answer.Ratio = &HoldRatio{float64(s.Total.Used) / float64(s.Total.Reserved), s.Total.Ratio(0.5), s.Total.Ratio(0.9), s.Total.Ratio(0.99)}
	}
	for i, p := range s.Points {
		answer.Points[i] = HoldPoint{p.Time.Unix(), p.HoldCounts}
	}
	return answer, h.knownRule(want.Rule, s.Total.HoldCounts != archive.HoldCounts{})
}

func rangeOf(r stats.Range) StatsRange {
	return StatsRange{From: r.From.Unix(), To: r.To.Unix(), Step: int64(r.Step / time.Second)}
}
