package httpapi

import (
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// Times in answers about statistics are Unix seconds. Lengths are microseconds where the
// name says _us, with nanoseconds behind the point, and seconds where it says _s.

// SummaryAnswer is what GET /v1/stats/summary answers, and what an event of GET
// /v1/stats/stream is.
type SummaryAnswer struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Window int64 `json:"window_s"`
	Local  bool  `json:"local,omitempty"` // the archive is unavailable, and this is of one instance alone
	stats.Traffic
	DeniedShare float64                 `json:"denied_share"` // 0 to 1
	Latency     stats.Percentiles       `json:"latency_us"`
	Upstream    *stats.Upstream         `json:"upstream,omitempty"` // all routes together
	Routes      []stats.Upstream        `json:"routes,omitempty"`
	Priorities  []stats.PrioritySummary `json:"priorities,omitempty"` // the most important first; none if all requests were normal
	Adaptive    []engine.UpstreamLimit  `json:"adaptive,omitempty"`   // of the instance that answers, now
	Reserved    []engine.Reserved       `json:"reserved,omitempty"`   // likewise, for requests to language models that are open
	Protect     *StatsProtect           `json:"protect,omitempty"`    // likewise
	Store       StatsStore              `json:"store"`
	Recorder    StatsRecorder           `json:"recorder"`
	NotLoaded   *NotLoaded              `json:"not_loaded,omitempty"` // nil if the stored rules are in force on the instance that answers
	Rules       []stats.RuleSummary     `json:"rules"`                // the busiest first
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
	CompleteSince    *int64 `json:"complete_since,omitempty"` // the archive has lost statistics of the time before
}

// SeriesAnswer is what GET /v1/stats/series answers.
type SeriesAnswer struct {
	StatsRange
	Local  bool         `json:"local,omitempty"` // the archive is unavailable, and this is of one instance alone
	Points []StatsPoint `json:"points"`

	InFlight *stats.InFlight `json:"in_flight,omitempty"` // of a rule, in the whole range
}

// StatsPoint is one step of a series.
type StatsPoint struct {
	T int64 `json:"t"` // when it began
	stats.Traffic
	*StatsPointTimes                      // nil in the series of a rule
	InFlight         *stats.InFlight      `json:"in_flight,omitempty"` // as in stats.RuleSummary
	Levels           []stats.LevelSummary `json:"levels,omitempty"`    // likewise
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
	Sampling int64      `json:"sampling"`        // at times, one key in so many was looked at
	Local    bool       `json:"local,omitempty"` // the archive is unavailable, and this is of one instance alone
	Entries  []TopEntry `json:"entries"`
}

// TopEntry is a key that came at least Count-Error times, and at most Count times.
type TopEntry struct {
	Key   string `json:"key"`
	Count int64  `json:"count"`
	Error int64  `json:"error"`
	Level string `json:"level,omitempty"` // of the rule in force, if it has levels
}

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
	TopEntry
	Rules   []stats.RuleCount `json:"rules"` // those with the most first
	FirstAt int64             `json:"first_at"`
	LastAt  int64             `json:"last_at"`
	Values  []int64           `json:"values"` // of each step
}

// ClientAnswer is what GET /v1/stats/client answers.
type ClientAnswer struct {
	Key string `json:"key"`
	StatsRange
	Floor    int64         `json:"floor"`    // in a step without a count, the client came at most so often
	Sampling int64         `json:"sampling"` // as in TopAnswer
	Local    bool          `json:"local,omitempty"`
	Points   []ClientPoint `json:"points"`
}

// ClientPoint is the requests of a client in a step.
type ClientPoint struct {
	T       int64 `json:"t"`
	Allowed int64 `json:"allowed"`
	Denied  int64 `json:"denied"`
}

// DenialsAnswer is what GET /v1/stats/denials answers.
type DenialsAnswer struct {
	Local   bool             `json:"local,omitempty"`
	Denials []archive.Denial `json:"denials"` // the newest first
}

// WarningsAnswer is what GET /v1/stats/warnings answers.
type WarningsAnswer struct {
	Local    bool              `json:"local,omitempty"`
	Warnings []archive.Warning `json:"warnings"` // the newest first
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
