package rule_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/expression"
	"pgregory.net/rapid"
)

// drawSet draws a set as Parse returns it.
func drawSet(t *rapid.T) *rule.Set {
	set := &rule.Set{Exempt: drawList(t), Block: drawList(t)}
	set.Levels = rapid.SampledFrom([][]string{nil, {"org", "user"}, {"org", "team-1", "user", "api_key"}}).Draw(t, "levels")
	for i := range rapid.IntRange(0, 4).Draw(t, "rules") {
		r := drawRule(t, i)
		if len(set.Levels) > 0 && rapid.Bool().Draw(t, "by level") {
			countAtLevels(t, &r)
		}
		if r.Algorithm == weir.FixedWindow && rapid.Bool().Draw(t, "money") {
			inMoney(&r, rapid.SampledFrom([]string{"usd", "eur"}).Draw(t, "currency"))
		}
		set.Rules = append(set.Rules, r)
	}
	return set
}

func drawRule(t *rapid.T, i int) rule.Rule {
	r := rule.Rule{
		ID:          fmt.Sprintf("%s%d", rapid.StringMatching(`[A-Za-z0-9._-]{1,20}`).Draw(t, "id"), i),
		Description: rapid.OneOf(rapid.Just(""), rapid.String(), awkward).Draw(t, "description"),
		Match:       drawConditions(t),
		Key:         drawKey(t),
		Mode:        rapid.SampledFrom([]rule.Mode{rule.Enforce, rule.Shadow, rule.Soft, rule.Off}).Draw(t, "mode"),
		OnFailure:   rapid.SampledFrom([]rule.Failure{rule.Open, rule.Closed, rule.Local}).Draw(t, "failure"),
		Deny: rule.Deny{
			Status:  rapid.SampledFrom([]int{0, 403, 503}).Draw(t, "status"),
			Code:    rapid.IntRange(0, 1<<31-1).Draw(t, "code"),
			Message: rapid.OneOf(rapid.Just(""), name).Draw(t, "message"),
		},
		Cost:         rapid.SampledFrom([]int64{0, 2, 5}).Draw(t, "cost"),
		CostEstimate: rapid.SampledFrom([]string{"", "request.size", "1"}).Draw(t, "estimate"),
		CostActual:   rapid.SampledFrom([]string{"", "response.size\n+ 1"}).Draw(t, "actual"),
		Count:        rule.Count{Status: someOf(t, rapid.SampledFrom([]rule.Statuses{{401, 401}, {500, 599}, {100, 199}, {599, 599}}), "statuses")},
		Unit:         rapid.SampledFrom([]string{"", "tokens", "a-b_9"}).Draw(t, "unit"),
		OnExpiry:     rapid.SampledFrom([]rule.Expiry{rule.Keep, rule.Release}).Draw(t, "on_expiry"),
		Penalty:      rapid.SampledFrom([]rule.Penalty{{}, {For: time.Minute}, {For: time.Hour, After: 3, Within: time.Second}}).Draw(t, "penalty"),
	}
	if r.OnFailure == rule.Local {
		r.Fallback = rapid.SampledFrom([]rule.Fallback{{}, {For: time.Minute}, {For: time.Second, Then: rule.Closed, Limit: rule.Rate{N: 10, Period: time.Hour}}, {Limit: rule.Rate{N: 5, Period: time.Minute}}}).Draw(t, "fallback")
	}
	r.Warn = rapid.SampledFrom([][]int{nil, {100}, {1, 80, 95}}).Draw(t, "warn")
	if rapid.Bool().Draw(t, "tokens") {
		if r.Tokens = drawTokens(t); r.Tokens.Weighted() && r.Unit == "tokens" {
			r.Unit = "cents"
		}
	}
	if r.Tokens == nil && len(r.Match.Methods) == 0 && rapid.Bool().Draw(t, "mcp") {
		r.MCP = new(rule.MCP)
	}
	r.Algorithm = rapid.SampledFrom(weir.Algorithms()).Draw(t, "algorithm")
	switch r.Algorithm {
	case weir.SlidingBuckets:
		r.Buckets = rapid.SampledFrom([]int{0, 2, 60, 100}).Draw(t, "buckets")
	case weir.LeakyBucket:
		r.Shape = rapid.Bool().Draw(t, "shape")
	}
	bursts := r.Algorithm == weir.TokenBucket || r.Algorithm == weir.LeakyBucket
	r.CountDenied = !bursts && rapid.Bool().Draw(t, "count_denied")
	r.UnlessDeniedEarlier = r.CountDenied && rapid.Bool().Draw(t, "unless_denied_earlier")
	leases := r.OnExpiry == rule.Keep && !r.CountDenied && !r.Shape && r.Penalty.For == 0
	if leases {
		r.Lease = rapid.SampledFrom([]time.Duration{0, time.Second, 90 * time.Millisecond}).Draw(t, "lease")
	}
	r.Quota = drawQuota(t, bursts, int64(10+i)) // so that no two rules are the same
	if r.Quota.Concurrency = rapid.SampledFrom([]int64{0, 0, 1, 50}).Draw(t, "concurrency"); r.Quota.Concurrency > 0 {
		r.HoldTTL = rapid.SampledFrom([]time.Duration{0, time.Second, 90 * time.Minute}).Draw(t, "hold_ttl")
		r.Wait = rapid.SampledFrom([]rule.Wait{{}, {UpTo: time.Millisecond}, {UpTo: time.Minute, Queued: 7}}).Draw(t, "wait")
	}
	if r.Cost == 0 && r.Quota.Concurrency != 1 { // or there may be no room in a share
		r.Shares = rapid.SampledFrom([]rule.Shares{{}, {rule.Low: 999}, {rule.Low: 600, rule.Normal: 850, rule.High: 905}}).Draw(t, "shares")
	}
	r.Priority = drawPriority(t)
	if r.Algorithm == weir.FixedWindow && rapid.Bool().Draw(t, "calendar") {
		r.Quota.Rates = append(r.Quota.Rates, rule.Rate{N: int64(10 + i), Period: rapid.SampledFrom([]time.Duration{weir.Month, weir.Year}).Draw(t, "of calendar")})
		r.Quota.Zone = rapid.SampledFrom([]string{"", "UTC", "Asia/Shanghai"}).Draw(t, "zone")
		starts := map[time.Duration][]string{weir.Month: {"", "1", "31"}, weir.Year: {"", "02-29", "12-31"}}
		r.Quota.Starts = rapid.SampledFrom(starts[r.Quota.Rates[len(r.Quota.Rates)-1].Period]).Draw(t, "starts")
	}
	for _, tier := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID).Draw(t, "tiers") {
		put(&r.Tiers, tier, drawQuotaOrNone(t, bursts, leases))
	}
	for _, value := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID).Draw(t, "overrides") {
		put(&r.Overrides, drawIdentity(t, &r, value), drawQuotaOrNone(t, bursts, leases))
	}
	return r
}

// countAtLevels makes a rule that counts at levels of one that does not.
func countAtLevels(t *rapid.T, r *rule.Rule) {
	quotas := func(q rule.Quota, names ...string) rule.Quota {
		for _, level := range names {
			put(&q.Levels, level, rule.Quota{Rates: rapid.SampledFrom([][]rule.Rate{{{N: 7, Period: time.Minute}}, {{N: 9, Period: time.Second}, {N: 900, Period: time.Hour}}}).Draw(t, "at the level")})
		}
		return q
	}
	r.Key, r.HoldTTL, r.Wait = []rule.Source{{Kind: rule.Levels}}, 0, rule.Wait{}
	r.Quota = quotas(rule.Quota{}, "org", "user")
	for tier, q := range r.Tiers {
		r.Tiers[tier] = quotas(rule.Quota{Priority: q.Priority}, rapid.SampledFrom([]string{"org", "user"}).Draw(t, "level"))
	}
	overrides := r.Overrides
	r.Overrides = nil
	if len(overrides) > 0 {
		r.Overrides = map[string]rule.Quota{"org:a": {Unlimited: true}}
	}
}

// inMoney makes all limits of a rule count money.
func inMoney(r *rule.Rule, currency string) {
	if r.Unit = ""; r.Tokens != nil && !r.Tokens.Weighted() {
		r.Tokens.Price = currency
	}
	priced := func(q rule.Quota) {
		for i := range q.Rates { // which the copy shares
			q.Rates[i].Currency = currency
		}
	}
	for _, quotas := range []map[string]rule.Quota{{"": r.Quota}, r.Tiers, r.Overrides} {
		for _, q := range quotas {
			priced(q)
			for level, at := range q.Levels {
				at.Rates = slices.Clone(at.Rates) // of all that drew the same
				priced(at)
				q.Levels[level] = at
			}
		}
	}
	if r.Fallback.Limit.N > 0 {
		r.Fallback.Limit.Currency = currency
	}
}

func drawTokens(t *rapid.T) *rule.Tokens {
	weights := func() (w rule.Weights) {
		weight := rapid.SampledFrom([]rule.Weight{0, 1, 1e5, 1e6, 4e6, 1234567, rule.MaxWeight})
		w = rule.Weights{Input: weight.Draw(t, "input"), Output: weight.Draw(t, "output"), Cached: weight.Draw(t, "cached")}
		kind := rapid.SampledFrom([]rule.Weight{0, 0, rule.Free, 1, 1250000})
		w.CacheWrite, w.CacheWrite1h, w.Reasoning = kind.Draw(t, "cache_write"), kind.Draw(t, "cache_write_1h"), kind.Draw(t, "reasoning")
		w.AudioInput, w.AudioOutput = kind.Draw(t, "audio_input"), kind.Draw(t, "audio_output")
		w.ImageInput, w.ImageOutput = kind.Draw(t, "image_input"), kind.Draw(t, "image_output")
		w.ToolCall = weight.Draw(t, "tool_call")
		if max(w.Input, w.Output, w.Cached) == 0 {
			w.Input = 1
		}
		return w
	}
	tokens := &rule.Tokens{
		API:           rapid.SampledFrom([]rule.ModelAPI{rule.AutoAPI, rule.OpenAI, rule.Anthropic, rule.Gemini}).Draw(t, "api"),
		DefaultOutput: rapid.SampledFrom([]int64{0, 1, 5000}).Draw(t, "default_output"),
		Reserve:       rapid.SampledFrom([]rule.Reserve{{}, {Output: 800}, {AtMost: 55}, {Quantile: 95}, {Quantile: 50, AtMost: 999}, {Output: 1, AtMostUnits: 1234567}}).Draw(t, "reserve"),
		OnOverrun:     rapid.SampledFrom([]rule.Overrun{rule.Finish, rule.Cut}).Draw(t, "on_overrun"),
	}
	if rapid.Bool().Draw(t, "weights") {
		if tokens.Weights = weights(); tokens.Weights == (rule.Weights{Input: 1e6, Output: 1e6, Cached: 1e6}) {
			tokens.Weights = rule.Weights{}
		}
	}
	for _, model := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"gpt-4o", "gpt*", "*", "true", "a b"}), 0, 3, rapid.ID).Draw(t, "models") {
		if tokens.Models == nil {
			tokens.Models = map[string]rule.Weights{}
		}
		tokens.Models[model] = weights()
	}
	return tokens
}

func put(m *map[string]rule.Quota, key string, q rule.Quota) {
	if *m == nil {
		*m = map[string]rule.Quota{}
	}
	(*m)[key] = q
}

// awkward is what YAML could take for something else.
var awkward = rapid.SampledFrom([]string{
	"null", "~", "true", "yes", "off", "1", "-1", "0x10", "1e3", ".inf", "2001-01-01", "12:30:00", "=", "<<",
	"- a", "? a", "a: b", "a #b", "#a", "*a", "&a", "!a", "%a", "@a", "`a", "{a}", "[a]", "a,b", "|", ">", "'", `"`, `\`, `a\nb`,
	" a", "a ", "---", "...", "a|b", "ü", "防止", "😀", "\u00a0", "\u200b", "a:", ":a", "user:alice", "unlimited", "sha256:x",
})

// name is what tiers, attributes and users may be called.
var name = rapid.OneOf(awkward, rapid.StringN(1, 12, 60)).Filter(func(s string) bool {
	return s != "" && s != "*" && len(s) <= 60 && !strings.ContainsFunc(s, unicode.IsControl)
})

func drawConditions(t *rapid.T) (m rule.Match) {
	m.Methods = some(t, rapid.SampledFrom([]string{"GET", "POST", "PROPFIND", "M-SEARCH"}), "methods")
	m.Hosts = some(t, rapid.SampledFrom([]string{"a.example", "*.example.com", "localhost", "192.0.2.1", "2001:db8::1", "_x.y"}), "hosts")
	m.Paths = some(t, rapid.SampledFrom([]string{"/", "/**", "/a", "/a/{id}/b", "/a b", "/ü/%2F", "/{x}/**"}), "paths")
	m.When = rapid.SampledFrom([]string{"", "true", `request.path == "a: b #c"`, "1 <\n  2"}).Draw(t, "when")
	for _, attribute := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID).Draw(t, "attributes") {
		if m.Attributes == nil {
			m.Attributes = map[string][]string{}
		}
		m.Attributes[attribute] = some(t, name, "values")
	}
	return m
}

func some(t *rapid.T, values *rapid.Generator[string], label string) []string {
	return someOf(t, values, label)
}

func someOf[T comparable](t *rapid.T, values *rapid.Generator[T], label string) []T {
	list := rapid.SliceOfNDistinct(values, 0, 3, rapid.ID).Draw(t, label)
	if len(list) == 0 {
		return nil
	}
	return list
}

func drawKey(t *rapid.T) []rule.Source {
	if rapid.Bool().Draw(t, "global") {
		return []rule.Source{{Kind: rule.Global}}
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]rule.Source{
		{Kind: rule.IP}, {Kind: rule.User}, {Kind: rule.APIKey}, {Kind: rule.Header, Name: "X-Tenant"}, {Kind: rule.Header, Name: "Authorization"},
		{Kind: rule.Cookie, Name: "sid"}, {Kind: rule.Query, Name: "a:b|c"}, {Kind: rule.Attribute, Name: "null"},
		{Kind: rule.Tier}, {Kind: rule.Host}, {Kind: rule.Method}, {Kind: rule.Route},
		{Kind: rule.IP, IPv4Bits: 24}, {Kind: rule.IP, IPv6Bits: 48}, {Kind: rule.IP, IPv4Bits: 24, IPv6Bits: 48},
	}), 1, 3, oneAddress).Draw(t, "key")
}

// oneAddress is the same for all sources of which a key can have one.
func oneAddress(s rule.Source) rule.Source {
	s.IPv4Bits, s.IPv6Bits = 0, 0
	return s
}

func drawIdentity(t *rapid.T, r *rule.Rule, value string) string {
	escape := strings.NewReplacer(`\`, `\\`, `|`, `\|`)
	named := func(kind string, names []string) string {
		if len(names) == 0 {
			names = []string{"*"}
		}
		return kind + ":" + escape.Replace(rapid.SampledFrom(names).Draw(t, kind))
	}
	var parts []string
	for _, s := range r.Key {
		switch s.Kind {
		case rule.Tier:
			parts = append(parts, named("tier", append(slices.Sorted(maps.Keys(r.Tiers)), "*")))
		case rule.Host:
			parts = append(parts, named("host", r.Match.Hosts))
		case rule.Method:
			parts = append(parts, named("method", r.Match.Methods))
		case rule.Route:
			parts = append(parts, named("route", r.Match.Paths))
		case rule.Global:
			parts = append(parts, "global")
		case rule.IP:
			parts = append(parts, rapid.SampledFrom([]string{"ip:192.0.2.1", "ip:2001:db8::/64", "ip:::1"}).Draw(t, "ip"))
		default:
			parts = append(parts, escape.Replace(s.String())+":"+escape.Replace(value))
		}
	}
	return strings.Join(parts, "|")
}

func drawQuotaOrNone(t *rapid.T, bursts, leases bool) (q rule.Quota) {
	if q.Unlimited = rapid.Bool().Draw(t, "unlimited"); !q.Unlimited {
		q = drawQuota(t, bursts, rapid.Int64Range(5, 1000).Draw(t, "n"))
	}
	q.Priority = drawPriority(t)
	if len(q.Rates) > 0 && leases {
		q.Lease = rapid.SampledFrom([]time.Duration{0, time.Second, 90 * time.Millisecond}).Draw(t, "lease")
	}
	return q
}

func drawPriority(t *rapid.T) rule.Priority {
	return rapid.SampledFrom([]rule.Priority{0, rule.Low, rule.Normal, rule.High, rule.Critical}).Draw(t, "priority")
}

func drawQuota(t *rapid.T, bursts bool, n int64) (q rule.Quota) {
	periods := []time.Duration{time.Millisecond, time.Second, 90 * time.Second, time.Hour, 7 * 24 * time.Hour}
	for _, period := range rapid.SliceOfNDistinct(rapid.SampledFrom(periods), 1, 3, rapid.ID).Draw(t, "periods") {
		q.Rates = append(q.Rates, rule.Rate{N: n, Period: period})
	}
	if bursts {
		q.Burst = rapid.SampledFrom([]int64{0, 5, 100}).Draw(t, "burst")
	}
	return q
}

func drawList(t *rapid.T) rule.List {
	var l rule.List
	for _, text := range some(t, rapid.SampledFrom([]string{"10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32", "::1/128", "0.0.0.0/0"}), "ips") {
		l.IPs = append(l.IPs, netip.MustParsePrefix(text))
	}
	l.Users = some(t, name, "users")
	l.APIKeys = some(t, name, "keys")
	return l
}
