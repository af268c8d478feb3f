package httpapi

import (
	"strings"
	"time"

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

func (h *Handler) statsSummary(_ about, s *stats.Summary) (any, error) {
	return h.summary(s), nil
}

func (h *Handler) statsSeries(q stats.Query, s *stats.Series) (any, error) {
	answer := &SeriesAnswer{
		StatsRange: rangeOf(s.Range), Local: s.Local, Points: make([]StatsPoint, len(s.Points)), InFlight: s.InFlight,
	}
	some := false
	for i, p := range s.Points {
		some = some || p.Requests > 0
		point := StatsPoint{T: p.Time.Unix(), Traffic: p.Traffic, InFlight: p.InFlight, Levels: p.Levels}
		if q.Rule == "" {
			point.StatsPointTimes = &StatsPointTimes{
				P50: stats.Micros(p.Decision.P50), P90: stats.Micros(p.Decision.P90), P99: stats.Micros(p.Decision.P99),
				UpstreamRequests: p.Upstream.Requests, UpstreamErrors: p.Upstream.Errors, UpstreamP99: stats.Micros(p.Upstream.Latency.P99),
			}
		}
		answer.Points[i] = point
	}
	return answer, h.knownRule(q.Rule, some)
}

func (h *Handler) statsTop(q stats.TopQuery, top *stats.Top) (any, error) {
	entries := make([]TopEntry, len(top.Keys))
	of := h.ruleInForce(q.Rule)
	for i, e := range top.Keys {
		entries[i] = ranked(of, e)
	}
	return &TopAnswer{
		By: q.By.String(), Window: q.Window.String(), Rule: q.Rule, From: top.From.Unix(), To: top.To.Unix(),
		Total: top.Total, Floor: top.Floor, Sampling: top.Sampling, Local: top.Local, Entries: entries,
	}, h.knownRule(q.Rule, len(top.Keys) > 0)
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

func (h *Handler) statsSuggest(q about, all []stats.Suggestion) (any, error) {
	answer := &SuggestAnswer{Rule: q.name, From: q.from.Unix(), To: q.to.Unix(), Suggestions: make([]Suggestion, len(all))}
	for i, s := range all {
		answer.Suggestions[i] = Suggestion{Tier: readable(s.Tier), Period: s.Period.Seconds(), Requests: s.Requests, Denied: s.Denied, Data: max(0, int64(s.To.Sub(s.From)/time.Second)), Targets: listed(s.Targets)}
	}
	return answer, h.knownRule(q.name, len(all) > 0)
}

func (h *Handler) statsRules(q stats.RuleQuery, s *stats.RuleSeries) (any, error) {
	answer := &RulesSeriesAnswer{
		StatsRange: rangeOf(s.Range), By: q.By.String(), Local: s.Local,
		Times: make([]int64, len(s.Times)), Rules: listed(s.Rules), Other: OtherValues{s.Other.Total, s.Other.Values},
	}
	for i, t := range s.Times {
		answer.Times[i] = t.Unix()
	}
	return answer, nil
}

func (h *Handler) statsClients(q stats.ClientsQuery, s *stats.Clients) (any, error) {
	answer := &ClientsAnswer{
		StatsRange: rangeOf(s.Range), By: q.By.String(), Rule: q.Rule, Total: s.Total, Floor: s.Floor,
		Sampling: s.Sampling, Local: s.Local, Clients: make([]StatsClient, len(s.Clients)),
	}
	of := h.ruleInForce(q.Rule)
	for i, k := range s.Clients {
		answer.Clients[i] = StatsClient{ranked(of, k.Entry), k.Rules, k.First.Unix(), k.Last.Unix(), k.Values}
	}
	return answer, h.knownRule(q.Rule, len(s.Clients) > 0)
}

func (h *Handler) statsClient(q about, s *stats.ClientSeries) (any, error) {
	answer := &ClientAnswer{
		StatsRange: rangeOf(s.Range), Key: readable(q.name), Floor: s.Floor, Sampling: s.Sampling, Local: s.Local, Points: make([]ClientPoint, len(s.Points)),
	}
	for i, p := range s.Points {
		answer.Points[i] = ClientPoint{p.Time.Unix(), p.Allowed, p.Denied}
	}
	return answer, nil
}

func (h *Handler) statsDenials(q stats.LatestQuery, s *stats.Latest[archive.Denial]) (any, error) {
	for i := range s.Events {
		d := &s.Events[i]
		d.Key, d.Path, d.Tier, d.Instance = readable(d.Key), readable(d.Path), readable(d.Tier), readable(d.Instance)
	}
	return &DenialsAnswer{s.Local, listed(s.Events)}, h.knownRule(q.Rule, len(s.Events) > 0)
}

func (h *Handler) statsWarnings(q stats.LatestQuery, s *stats.Latest[archive.Warning]) (any, error) {
	for i := range s.Events {
		w := &s.Events[i]
		w.Key, w.Instance = readable(w.Key), readable(w.Instance)
		w.Show()
	}
	return &WarningsAnswer{s.Local, listed(s.Events)}, h.knownRule(q.Rule, len(s.Events) > 0)
}

func (h *Handler) statsUsage(q about, u *stats.Usage) (any, error) {
	answer := &UsageAnswer{Rule: q.name, From: u.From.Unix(), To: u.To.Unix(), Local: u.Local, Limits: make([]LimitUsage, len(u.Limits))}
	for i, l := range u.Limits {
		l.Slots = listed(l.Slots)
		answer.Limits[i] = LimitUsage{readable(l.Tier), l.Period.Seconds(), l.Limit, l.UnitUsage}
	}
	return answer, h.knownRule(q.name, len(u.Limits) > 0)
}

func (h *Handler) statsHolds(q stats.HoldsQuery, s *stats.HoldSeries) (any, error) {
	answer := &HoldsAnswer{
		StatsRange: rangeOf(s.Range), Rule: q.Rule, Local: s.Local, HoldCounts: s.Total.HoldCounts, Points: make([]HoldPoint, len(s.Points)),
	}
	if s.Total.Reserved > 0 {
		answer.Ratio = &HoldRatio{float64(s.Total.Used) / float64(s.Total.Reserved), s.Total.Ratio(0.5), s.Total.Ratio(0.9), s.Total.Ratio(0.99)}
	}
	for i, p := range s.Points {
		answer.Points[i] = HoldPoint{p.Time.Unix(), p.HoldCounts}
	}
	return answer, h.knownRule(q.Rule, s.Total.HoldCounts != archive.HoldCounts{})
}

func rangeOf(r stats.Range) StatsRange {
	return StatsRange{From: r.From.Unix(), To: r.To.Unix(), Step: int64(r.Step / time.Second)}
}
