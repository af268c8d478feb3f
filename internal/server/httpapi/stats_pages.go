package httpapi

import (
	"context"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/stats"
)

// statsRules answers GET /v1/stats/rules.
func (h *Handler) statsRules(c *call) (any, error) {
	in := c.query("from", "to", "step", "by", "n")
	q := stats.RuleQuery{Step: in.step(), By: in.by(stats.ParseRuleBy), N: int(in.whole("n", 5, 1, stats.MaxSeriesRules))}
	q.From, q.To = in.stretch(h.options.Clock(), time.Hour)
	if in.err != nil {
		return nil, in.err
	}
	s, err := consult(h, c, "step", func(ctx context.Context) (*stats.RuleSeries, error) { return h.options.Stats.RuleSeries(ctx, q) })
	if err != nil {
		return nil, err
	}
	answer := &RulesSeriesAnswer{
		StatsRange: rangeOf(s.From, s.To, s.Step), By: q.By.String(), Local: s.Local,
		Times: make([]int64, len(s.Times)), Rules: make([]RuleValues, len(s.Rules)), Other: OtherValues{s.Other.Total, s.Other.Values},
	}
	for i, t := range s.Times {
		answer.Times[i] = t.Unix()
	}
	for i, v := range s.Rules {
		answer.Rules[i] = RuleValues(v)
	}
	return answer, nil
}

// statsClients answers GET /v1/stats/clients.
func (h *Handler) statsClients(c *call) (any, error) {
	in := c.query("from", "to", "rule", "by", "n", "prefix")
	q := stats.ClientsQuery{Rule: in.name("rule"), By: in.by(stats.ParseBy), N: int(in.whole("n", 10, 1, stats.MaxClients)), Prefix: in.key("prefix")}
	q.From, q.To = in.stretch(h.options.Clock(), time.Hour)
	if in.err != nil {
		return nil, in.err
	}
	s, err := consult(h, c, "from", func(ctx context.Context) (*stats.Clients, error) { return h.options.Stats.Clients(ctx, q) })
	if err != nil {
		return nil, err
	}
	answer := &ClientsAnswer{
		StatsRange: rangeOf(s.From, s.To, s.Step), By: q.By.String(), Rule: q.Rule, Total: s.Total, Floor: s.Floor,
		Sampling: max(h.options.Stats.Health().Sampling, 1), Local: s.Local, Clients: make([]StatsClient, len(s.Clients)),
	}
	for i, k := range s.Clients {
		one := StatsClient{
			Key: readable(k.Key), Count: k.Count, Error: k.Error, Rules: make([]RuleCount, len(k.Rules)),
			FirstAt: k.First.Unix(), LastAt: k.Last.Unix(), Values: k.Values,
		}
		for j, r := range k.Rules {
			one.Rules[j] = RuleCount(r)
		}
		answer.Clients[i] = one
	}
	return answer, h.knownRule(q.Rule, len(s.Clients) > 0)
}

// statsClient answers GET /v1/stats/client.
func (h *Handler) statsClient(c *call) (any, error) {
	in := c.query("key", "from", "to")
	key := in.key("key")
	if key == "" {
		in.wrong(badField.of("key: required; send the key of a client, as in ?key=user:alice.").in("key").coded("required"))
	}
	from, to := in.stretch(h.options.Clock(), 24*time.Hour)
	if in.err != nil {
		return nil, in.err
	}
	s, err := consult(h, c, "from", func(ctx context.Context) (*stats.ClientSeries, error) {
		return h.options.Stats.ClientSeries(ctx, key, from, to)
	})
	if err != nil {
		return nil, err
	}
	answer := &ClientAnswer{
		StatsRange: rangeOf(s.From, s.To, s.Step), Key: readable(key), Floor: s.Floor, Local: s.Local, Points: make([]ClientPoint, len(s.Points)),
	}
	for i, p := range s.Points {
		answer.Points[i] = ClientPoint{p.Time.Unix(), p.Allowed, p.Denied}
	}
	return answer, nil
}

// latest reads which denials or warnings are asked for.
func (c *call) latest() (stats.LatestQuery, error) {
	in := c.query("rule", "key", "n")
	q := stats.LatestQuery{Rule: in.name("rule"), Key: in.key("key"), N: int(in.whole("n", 20, 1, stats.MaxLatest))}
	return q, in.err
}

// statsDenials answers GET /v1/stats/denials.
func (h *Handler) statsDenials(c *call) (any, error) {
	q, err := c.latest()
	if err != nil {
		return nil, err
	}
	s, err := consult(h, c, "n", func(ctx context.Context) (*stats.Denials, error) { return h.options.Stats.Denials(ctx, q) })
	if err != nil {
		return nil, err
	}
	answer := &DenialsAnswer{Local: s.Local, Denials: make([]StatsDenial, len(s.Denials))}
	for i, d := range s.Denials {
		answer.Denials[i] = StatsDenial{
			At: float64(d.At) / 1e6, Key: readable(d.Key), Rule: d.Rule, Method: d.Method, Path: readable(d.Path), Tier: readable(d.Tier),
			Cost: d.Cost, Shadow: d.Shadow, Blocked: d.Blocked, Degraded: d.Degraded, Instance: readable(d.Instance),
		}
	}
	return answer, h.knownRule(q.Rule, len(s.Denials) > 0)
}

// statsWarnings answers GET /v1/stats/warnings.
func (h *Handler) statsWarnings(c *call) (any, error) {
	q, err := c.latest()
	if err != nil {
		return nil, err
	}
	s, err := consult(h, c, "n", func(ctx context.Context) (*stats.Warnings, error) { return h.options.Stats.Warnings(ctx, q) })
	if err != nil {
		return nil, err
	}
	answer := &WarningsAnswer{Local: s.Local, Warnings: make([]StatsWarning, len(s.Warnings))}
	for i, w := range s.Warnings {
		answer.Warnings[i] = StatsWarning{
			At: float64(w.At) / 1e6, Key: readable(w.Key), Rule: w.Rule, Policy: w.Policy, Threshold: w.Threshold,
			Used: w.Used, Limit: w.Limit, ResetAt: float64(w.ResetAt) / 1e6, Instance: readable(w.Instance),
		}
	}
	return answer, h.knownRule(q.Rule, len(s.Warnings) > 0)
}

// statsUsage answers GET /v1/stats/usage.
func (h *Handler) statsUsage(c *call) (any, error) {
	in := c.query("rule", "from", "to")
	id := in.rule()
	from, to := in.stretch(h.options.Clock(), time.Hour)
	if in.err != nil {
		return nil, in.err
	}
	u, err := consult(h, c, "from", func(ctx context.Context) (*stats.Usage, error) { return h.options.Stats.Usage(ctx, id, from, to) })
	if err != nil {
		return nil, err
	}
	answer := &UsageAnswer{Rule: id, From: u.From.Unix(), To: u.To.Unix(), Local: u.Local, Limits: make([]LimitUsage, len(u.Limits))}
	for i, l := range u.Limits {
		one := LimitUsage{
			Tier: readable(l.Tier), Period: l.Period.Seconds(), Limit: l.Limit, Requests: l.Requests, Denied: l.Denied,
			P50: l.P50, P90: l.P90, P99: l.P99, Max: l.Max, Slots: make([]UsageSlot, len(l.Slots)),
		}
		for j, s := range l.Slots {
			one.Slots[j] = UsageSlot(s)
		}
		answer.Limits[i] = one
	}
	return answer, h.knownRule(id, len(u.Limits) > 0)
}

func rangeOf(from, to time.Time, step time.Duration) StatsRange {
	return StatsRange{From: from.Unix(), To: to.Unix(), Step: int64(step / time.Second)}
}

// by is what counts in a ranking; denials if the query does not say.
func (q *query) by(parse func(string) (stats.By, error)) stats.By {
	text := q.text("by")
	if text == "" {
		return stats.ByDenied
	}
	by, err := parse(text)
	if err != nil {
		q.wrong(wrongQuery("by", err))
	}
	return by
}

// rule is the id of a rule, which is required.
func (q *query) rule() string {
	id := q.name("rule")
	if id == "" {
		q.wrong(badField.of("rule: required; send the id of a rule, as in ?rule=login.").in("rule").coded("required"))
	}
	return id
}

// key is the key of a client, or the start of one; "" if it is not there.
func (q *query) key(field string) string {
	text := q.text(field)
	if len(text) > weir.MaxKeyLen {
		q.wrong(badField.of("%s: %d bytes exceed the maximum of %d; send a key as /v1/stats/clients returns it.", field, len(text), weir.MaxKeyLen).in(field))
	}
	return text
}
