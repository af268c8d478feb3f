package httpapi

import (
	"strings"
	"time"

	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/frame"
)

// micros is a length of time as answers have it.
func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// readable makes a text of what may be any bytes: keys are what clients have sent.
func readable(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func countsOf(counts frame.Counts, rate float64) StatsCounts {
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

func seriesAnswer(s *stats.Series, rule string) *SeriesAnswer {
	answer := &SeriesAnswer{
		From: s.From.Unix(), To: s.To.Unix(), Step: int64(s.Step / time.Second), Local: s.Local, Points: make([]StatsPoint, len(s.Points)),
		InFlight: inFlightOf(s.InFlight),
	}
	for i, p := range s.Points {
		point := StatsPoint{T: p.Time.Unix(), StatsCounts: countsOf(p.Requests, p.QPS), InFlight: inFlightOf(p.InFlight)}
		if rule == "" {
			point.StatsPointTimes = &StatsPointTimes{
				P50: micros(p.Decision.P50), P90: micros(p.Decision.P90), P99: micros(p.Decision.P99),
				UpstreamRequests: p.Upstream.Requests, UpstreamErrors: p.Upstream.Errors, UpstreamP99: micros(p.Upstream.Latency.P99),
			}
		}
		answer.Points[i] = point
	}
	return answer
}

func topAnswer(top *stats.Top, q stats.TopQuery, sampling int64) *TopAnswer {
	answer := &TopAnswer{
		By: q.By.String(), Window: q.Window.String(), Rule: q.Rule, From: top.From.Unix(), To: top.To.Unix(),
		Total: top.Total, Floor: top.Floor, Sampling: max(sampling, 1), Local: top.Local, Entries: make([]TopEntry, len(top.Keys)),
	}
	for i, k := range top.Keys {
		answer.Entries[i] = TopEntry{Key: readable(k.Key), Count: k.Count, Error: k.Error}
	}
	return answer
}

func suggestAnswer(all []stats.Suggestion, q suggestion) *SuggestAnswer {
	answer := &SuggestAnswer{Rule: q.rule, From: q.from.Unix(), To: q.to.Unix(), Suggestions: make([]Suggestion, len(all))}
	for i, s := range all {
		one := Suggestion{Tier: readable(s.Tier), Period: s.Period.Seconds(), Requests: s.Requests, Denied: s.Denied, Data: max(0, int64(s.To.Sub(s.From)/time.Second)), Targets: []SuggestTarget{}}
		for _, t := range s.Targets {
			one.Targets = append(one.Targets, SuggestTarget(t))
		}
		answer.Suggestions[i] = one
	}
	return answer
}
