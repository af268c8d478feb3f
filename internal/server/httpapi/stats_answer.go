package httpapi

import (
	"strings"
	"time"

	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// micros is a length of time as answers have it.
func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// readable makes a text of what may be any bytes: keys are what clients have sent.
func readable(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func countsOf(counts archive.Counts, rate float64) StatsCounts {
	return StatsCounts{Requests: counts.Total(), Rate: rate, Counts: counts}
}

func latencyOf(p stats.Percentiles) StatsLatency {
	return StatsLatency{P50: micros(p.P50), P90: micros(p.P90), P99: micros(p.P99), Mean: micros(p.Mean)}
}

func inFlightOf(in *stats.InFlight) *StatsInFlight {
	if in == nil {
		return nil
	}
	s := &StatsInFlight{Mean: in.Mean, Highest: in.Highest}
	if in.Held.Count > 0 {
		held := latencyOf(in.Held)
		s.Held = &held
	}
	return s
}

func upstreamOf(u stats.Upstream) StatsUpstream {
	return StatsUpstream{
		Route: u.Route, Requests: u.Requests, Errors: u.Errors, ErrorShare: u.ErrorRate(), Latency: latencyOf(u.Latency),
	}
}

// summary is the answer of what happened, without what only some summaries know.
func (h *Handler) summary(s *stats.Summary) *SummaryAnswer {
	answer := &SummaryAnswer{
		From: s.From.Unix(), To: s.To.Unix(), Window: s.To.Unix() - s.From.Unix(),
		StatsCounts: countsOf(s.Requests, s.QPS), DeniedShare: s.Requests.DeniedShare(), Latency: latencyOf(s.Decision),
		Local: s.Local, Adaptive: h.options.Adaptive(), Protect: h.options.Protect(), Store: storeOf(h.options.Outage()), Recorder: recorderOf(h.options.Stats.Health()),
		NotLoaded: notLoaded(h.options.NotLoaded()),
		Rules:     make([]StatsRule, 0, len(s.Rules)),
	}
	if s.Upstream.Requests > 0 {
		all := upstreamOf(s.Upstream)
		answer.Upstream = &all
	}
	for _, u := range s.Routes {
		answer.Routes = append(answer.Routes, upstreamOf(u))
	}
	for _, p := range s.Priorities {
		answer.Priorities = append(answer.Priorities, StatsPriority{p.Priority.String(), p.Counts.Total(), p.Counts})
	}
	for _, r := range s.Rules {
		one := StatsRule{Rule: r.Rule, StatsCounts: countsOf(r.Counts, r.QPS), InFlight: inFlightOf(r.InFlight)}
		for _, t := range r.Tiers {
			one.Tiers = append(one.Tiers, StatsTier{Tier: readable(t.Tier), Requests: t.Counts.Total(), Counts: t.Counts})
		}
		answer.Rules = append(answer.Rules, one)
	}
	return answer
}

func storeOf(since time.Time, cause error) StatsStore {
	if since.IsZero() {
		return StatsStore{Up: true}
	}
	at := since.Unix()
	s := StatsStore{UnavailableSince: &at}
	if cause != nil {
		s.Error = manage.Clip(readable(cause.Error()))
	}
	return s
}

func recorderOf(health stats.Health) StatsRecorder {
	r := StatsRecorder{Pending: health.Pending, Lost: health.Lost, Dropped: health.Dropped, Sampling: max(health.Sampling, 1)}
	if !health.UnavailableSince.IsZero() {
		since := health.UnavailableSince.Unix()
		r.UnavailableSince = &since
	}
	if health.Err != nil {
		r.Error = manage.Clip(readable(health.Err.Error()))
	}
	return r
}

func (h *Handler) statsSummary(_ about, s *stats.Summary) (any, error) {
	answer := h.summary(s)
	for i := range s.Rules {
		latency := latencyOf(s.Rules[i].Decision)
		answer.Rules[i].Latency = &latency
	}
	return answer, nil
}

func (h *Handler) statsSeries(q stats.Query, s *stats.Series) (any, error) {
	answer := &SeriesAnswer{
		From: s.From.Unix(), To: s.To.Unix(), Step: int64(s.Step / time.Second), Local: s.Local, Points: make([]StatsPoint, len(s.Points)),
		InFlight: inFlightOf(s.InFlight),
	}
	some := false
	for i, p := range s.Points {
		some = some || p.Requests.Total() > 0
		point := StatsPoint{T: p.Time.Unix(), StatsCounts: countsOf(p.Requests, p.QPS), InFlight: inFlightOf(p.InFlight)}
		if q.Rule == "" {
			point.StatsPointTimes = &StatsPointTimes{
				P50: micros(p.Decision.P50), P90: micros(p.Decision.P90), P99: micros(p.Decision.P99),
				UpstreamRequests: p.Upstream.Requests, UpstreamErrors: p.Upstream.Errors, UpstreamP99: micros(p.Upstream.Latency.P99),
			}
		}
		answer.Points[i] = point
	}
	return answer, h.knownRule(q.Rule, some)
}

func (h *Handler) statsTop(q stats.TopQuery, top *stats.Top) (any, error) {
	for i := range top.Keys {
		top.Keys[i].Key = readable(top.Keys[i].Key)
	}
	return &TopAnswer{
		By: q.By.String(), Window: q.Window.String(), Rule: q.Rule, From: top.From.Unix(), To: top.To.Unix(),
		Total: top.Total, Floor: top.Floor, Sampling: h.sampling(), Local: top.Local, Entries: listed(top.Keys),
	}, h.knownRule(q.Rule, len(top.Keys) > 0)
}

// sampling is that rankings take one key in so many.
func (h *Handler) sampling() int64 { return max(h.options.Stats.Health().Sampling, 1) }

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
		Sampling: h.sampling(), Local: s.Local, Clients: make([]StatsClient, len(s.Clients)),
	}
	for i, k := range s.Clients {
		k.Key = readable(k.Key)
		answer.Clients[i] = StatsClient{k.Entry, k.Rules, k.First.Unix(), k.Last.Unix(), k.Values}
	}
	return answer, h.knownRule(q.Rule, len(s.Clients) > 0)
}

func (h *Handler) statsClient(q about, s *stats.ClientSeries) (any, error) {
	answer := &ClientAnswer{
		StatsRange: rangeOf(s.Range), Key: readable(q.name), Floor: s.Floor, Local: s.Local, Points: make([]ClientPoint, len(s.Points)),
	}
	for i, p := range s.Points {
		answer.Points[i] = ClientPoint{p.Time.Unix(), p.Allowed, p.Denied}
	}
	return answer, nil
}

func (h *Handler) statsDenials(q stats.LatestQuery, s *stats.Latest[archive.Denial]) (any, error) {
	answer := &DenialsAnswer{Local: s.Local, Denials: make([]StatsDenial, len(s.Events))}
	for i, d := range s.Events {
		answer.Denials[i] = StatsDenial{
			At: float64(d.At) / 1e6, Key: readable(d.Key), Rule: d.Rule, Method: d.Method, Path: readable(d.Path), Tier: readable(d.Tier),
			Cost: d.Cost, Shadow: d.Shadow, Blocked: d.Blocked, Degraded: d.Degraded, Instance: readable(d.Instance),
		}
	}
	return answer, h.knownRule(q.Rule, len(s.Events) > 0)
}

func (h *Handler) statsWarnings(q stats.LatestQuery, s *stats.Latest[archive.Warning]) (any, error) {
	answer := &WarningsAnswer{Local: s.Local, Warnings: make([]StatsWarning, len(s.Events))}
	for i, w := range s.Events {
		answer.Warnings[i] = StatsWarning{
			At: float64(w.At) / 1e6, Key: readable(w.Key), Rule: w.Rule, Policy: w.Policy, Threshold: w.Threshold,
			Used: w.Used, Limit: w.Limit, ResetAt: float64(w.ResetAt) / 1e6, Instance: readable(w.Instance),
		}
	}
	return answer, h.knownRule(q.Rule, len(s.Events) > 0)
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
