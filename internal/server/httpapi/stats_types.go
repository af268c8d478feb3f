package httpapi

import (
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// Times in answers about statistics are Unix seconds. Lengths are microseconds where the
// name says _us, with nanoseconds behind the point, and seconds where it says _s.

// StatsCounts are how many requests, or decisions of a rule, ended in which way.
type StatsCounts struct {
	Requests int64   `json:"requests"` // all of them
	Rate     float64 `json:"rate"`     // a second
	archive.Counts
}

// StatsLatency is how long something took.
type StatsLatency struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Mean float64 `json:"mean"`
}

// StatsUpstream is what became of requests that were passed on.
type StatsUpstream struct {
	Route      string       `json:"route,omitempty"` // "" is all of them
	Requests   int64        `json:"requests"`
	Errors     int64        `json:"errors"`
	ErrorShare float64      `json:"error_share"`
	Latency    StatsLatency `json:"latency_us"`
}

// SummaryAnswer is what GET /v1/stats/summary answers, and what an event of GET
// /v1/stats/stream is.
type SummaryAnswer struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Window int64 `json:"window_s"`
	Local  bool  `json:"local,omitempty"` // the archive is unavailable, and this is of one instance alone
	StatsCounts
	DeniedShare float64         `json:"denied_share"` // 0 to 1
	Latency     StatsLatency    `json:"latency_us"`
	Upstream    *StatsUpstream  `json:"upstream,omitempty"` // all routes together
	Routes      []StatsUpstream `json:"routes,omitempty"`
	Priorities  []StatsPriority `json:"priorities,omitempty"` // the most important first; none if all requests were normal
	Adaptive    []StatsAdaptive `json:"adaptive,omitempty"`   // of the instance that answers, now
	Protect     *StatsProtect   `json:"protect,omitempty"`    // likewise
	Store       StatsStore      `json:"store"`
	Recorder    StatsRecorder   `json:"recorder"`
	NotLoaded   *NotLoaded      `json:"not_loaded,omitempty"` // nil if the stored rules are in force on the instance that answers
	Rules       []StatsRule     `json:"rules"`                // the busiest first
}

// StatsAdaptive is the adaptive limit of an upstream.
type StatsAdaptive struct {
	Upstream string `json:"upstream"`
	Limit    int    `json:"limit"`
	InFlight int    `json:"in_flight"`
	Denied   uint64 `json:"denied"` // since the start
}

// StatsPriority is what became of the requests of a priority.
type StatsPriority struct {
	Priority string `json:"priority"`
	Requests int64  `json:"requests"`
	archive.Counts
}

// StatsProtect is what a process that protects itself uses, as shares from 0 to 1, and how many
// requests it has shed since the start, by priority. A limit of 0 is none.
type StatsProtect struct {
	CPU         float64           `json:"cpu"`
	CPULimit    float64           `json:"cpu_limit"`
	Memory      float64           `json:"memory"`
	MemoryLimit float64           `json:"memory_limit"`
	Shed        map[string]uint64 `json:"shed"`
}

// StatsStore is how the store of limits fares.
type StatsStore struct {
	Up               bool   `json:"up"`
	UnavailableSince *int64 `json:"unavailable_since,omitempty"`
	Error            string `json:"error,omitempty"` // why
}

// StatsRecorder is how the recorder itself fares.
type StatsRecorder struct {
	Pending          int    `json:"pending"`  // parts that wait to be saved
	Lost             int64  `json:"lost"`     // requests that were counted and then dropped
	Dropped          int64  `json:"dropped"`  // requests that are in no ranking or suggestion
	Sampling         int64  `json:"sampling"` // rankings take one key in so many
	UnavailableSince *int64 `json:"unavailable_since,omitempty"`
	Error            string `json:"error,omitempty"`
}

// StatsRule is the traffic of a rule. Events of the stream have no latency of rules,
// which is not counted per second.
type StatsRule struct {
	Rule string `json:"rule"`
	StatsCounts
	Latency  *StatsLatency  `json:"latency_us,omitempty"`
	InFlight *StatsInFlight `json:"in_flight,omitempty"` // nil if the rule limits no concurrency, or nothing was in flight
	Tiers    []StatsTier    `json:"tiers,omitempty"`
}

// StatsInFlight is how many requests of a rule were in flight, and for how long.
type StatsInFlight struct {
	Mean    float64       `json:"mean"`              // on average, of all clients together
	Highest int64         `json:"highest"`           // of one client, at the same time
	Held    *StatsLatency `json:"held_us,omitempty"` // nil if none has ended
}

// StatsTier is what a rule said to the requests of a tier: "" are those without one.
type StatsTier struct {
	Tier     string `json:"tier"`
	Requests int64  `json:"requests"`
	archive.Counts
}

// SeriesAnswer is what GET /v1/stats/series answers.
type SeriesAnswer struct {
	From   int64        `json:"from"`
	To     int64        `json:"to"`
	Step   int64        `json:"step_s"`
	Local  bool         `json:"local,omitempty"` // the archive is unavailable, and this is of one instance alone
	Points []StatsPoint `json:"points"`

	InFlight *StatsInFlight `json:"in_flight,omitempty"` // of a rule, in the whole range
}

// StatsPoint is one step of a series.
type StatsPoint struct {
	T int64 `json:"t"` // when it began
	StatsCounts
	*StatsPointTimes                // nil in the series of a rule
	InFlight         *StatsInFlight `json:"in_flight,omitempty"` // as in StatsRule
}

// StatsPointTimes is how long the requests of a step took, and what became of those that
// were passed on.
type StatsPointTimes struct {
	P50              float64 `json:"p50_us"`
	P90              float64 `json:"p90_us"`
	P99              float64 `json:"p99_us"`
	UpstreamRequests int64   `json:"upstream_requests"`
	UpstreamErrors   int64   `json:"upstream_errors"`
	UpstreamP99      float64 `json:"upstream_p99_us"`
}

// TopAnswer is what GET /v1/stats/top answers.
type TopAnswer struct {
	By       string     `json:"by"`
	Window   string     `json:"window"`
	Rule     string     `json:"rule"` // "" is all of them
	From     int64      `json:"from"`
	To       int64      `json:"to"`
	Total    int64      `json:"total"`           // how often any key came
	Floor    int64      `json:"floor"`           // how often a key that is not here came at most
	Sampling int64      `json:"sampling"`        // one key in so many is looked at
	Local    bool       `json:"local,omitempty"` // the archive is unavailable, and this is of one instance alone
	Entries  []TopEntry `json:"entries"`
}

// TopEntry is a key that came at least Count-Error times, and at most Count times.
type TopEntry = archive.Entry

// SuggestAnswer is what GET /v1/stats/suggest answers.
type SuggestAnswer struct {
	Rule        string       `json:"rule"`
	From        int64        `json:"from"`
	To          int64        `json:"to"`
	Suggestions []Suggestion `json:"suggestions"` // one for each limit of the rule that was asked
}

// Suggestion is what is known of the limit of a tier for a period.
type Suggestion struct {
	Tier     string          `json:"tier"` // "" is for requests without one
	Period   float64         `json:"period_s"`
	Requests int64           `json:"requests"`
	Denied   int64           `json:"denied"`
	Data     int64           `json:"data_s"`  // length of the data
	Targets  []SuggestTarget `json:"targets"` // in the order of the shares; without those for which the data is too short
}

// SuggestTarget is the limit that would have denied a share of the requests.
type SuggestTarget = stats.Target

// StatsRange is the time that an answer is about, divided into steps.
type StatsRange struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
	Step int64 `json:"step_s"`
}

// RulesSeriesAnswer is what GET /v1/stats/rules answers.
type RulesSeriesAnswer struct {
	StatsRange
	By    string             `json:"by"`
	Local bool               `json:"local,omitempty"` // as in SeriesAnswer
	Times []int64            `json:"times"`           // when each step began
	Rules []stats.RuleValues `json:"rules"`           // those with the most first
	Other OtherValues        `json:"other"`           // all other rules together
}

// OtherValues are the values of rules that are not named.
type OtherValues struct {
	Total  int64   `json:"total"`
	Values []int64 `json:"values"`
}

// ClientsAnswer is what GET /v1/stats/clients answers.
type ClientsAnswer struct {
	StatsRange
	By       string        `json:"by"`
	Rule     string        `json:"rule"`  // as in TopAnswer
	Total    int64         `json:"total"` // likewise
	Floor    int64         `json:"floor"`
	Sampling int64         `json:"sampling"`
	Local    bool          `json:"local,omitempty"`
	Clients  []StatsClient `json:"clients"`
}

// StatsClient is a client that came at least Count-Error times, and at most Count times.
type StatsClient struct {
	archive.Entry
	Rules   []stats.RuleCount `json:"rules"` // those with the most first
	FirstAt int64             `json:"first_at"`
	LastAt  int64             `json:"last_at"`
	Values  []int64           `json:"values"` // of each step
}

// ClientAnswer is what GET /v1/stats/client answers.
type ClientAnswer struct {
	Key string `json:"key"`
	StatsRange
	Floor  int64         `json:"floor"` // in a step without a count, the client came at most so often
	Local  bool          `json:"local,omitempty"`
	Points []ClientPoint `json:"points"`
}

// ClientPoint is the requests of a client in a step.
type ClientPoint struct {
	T       int64 `json:"t"`
	Allowed int64 `json:"allowed"`
	Denied  int64 `json:"denied"`
}

// DenialsAnswer is what GET /v1/stats/denials answers.
type DenialsAnswer struct {
	Local   bool          `json:"local,omitempty"`
	Denials []StatsDenial `json:"denials"` // the newest first
}

// StatsDenial is one denied request.
type StatsDenial struct {
	At       float64 `json:"at"` // Unix seconds, with microseconds behind the point
	Key      string  `json:"key"`
	Rule     string  `json:"rule"` // "" if the client is on the block list
	Method   string  `json:"method"`
	Path     string  `json:"path"` // the pattern of the rule, never what the client has sent
	Tier     string  `json:"tier"`
	Cost     int64   `json:"cost"`
	Shadow   bool    `json:"shadow"`
	Blocked  bool    `json:"blocked"`
	Degraded bool    `json:"degraded"`
	Instance string  `json:"instance"`
}

// WarningsAnswer is what GET /v1/stats/warnings answers.
type WarningsAnswer struct {
	Local    bool           `json:"local,omitempty"`
	Warnings []StatsWarning `json:"warnings"` // the newest first
}

// StatsWarning is that a client has reached a threshold of a rule.
type StatsWarning struct {
	At        float64 `json:"at"` // Unix seconds, with microseconds behind the point
	Key       string  `json:"key"`
	Rule      string  `json:"rule"`
	Policy    string  `json:"policy"`
	Threshold int64   `json:"threshold"` // percent
	Used      int64   `json:"used"`
	Limit     int64   `json:"limit"`
	ResetAt   float64 `json:"reset_at"`
	Instance  string  `json:"instance"`
}

// UsageAnswer is what GET /v1/stats/usage answers.
type UsageAnswer struct {
	Rule   string       `json:"rule"`
	From   int64        `json:"from"`
	To     int64        `json:"to"`
	Local  bool         `json:"local,omitempty"`
	Limits []LimitUsage `json:"limits"` // one for each limit of the rule that was asked
}

// LimitUsage is how many units of a limit were in use after its requests.
type LimitUsage struct {
	Tier   string  `json:"tier"` // "" is for requests without one
	Period float64 `json:"period_s"`
	Limit  int64   `json:"limit"` // in force now; 0 if there is none
	stats.UnitUsage
}

// HoldsAnswer is what GET /v1/stats/holds answers.
type HoldsAnswer struct {
	StatsRange
	Rule  string `json:"rule"`
	Local bool   `json:"local,omitempty"`
	archive.HoldCounts
	Ratio  *HoldRatio  `json:"ratio,omitempty"` // nil if nothing was settled
	Points []HoldPoint `json:"points"`
}

// HoldRatio is what settled holds used of what they had reserved. Above 1 the estimates are
// too low.
type HoldRatio struct {
	Total float64 `json:"total"` // of all units
	P50   float64 `json:"p50"`   // of single holds
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
}

// HoldPoint is one step.
type HoldPoint struct {
	T int64 `json:"t"` // when it began
	archive.HoldCounts
}
