package httpapi

import (
	"encoding/json"
	"time"

	"github.com/weirhq/weir/rule"
)

// CheckRequest is the body of POST /v1/check: what is known of a request. Whatever is
// left out is not known, and a rule that would need it does not apply.
type CheckRequest struct {
	IP         string            `json:"ip,omitempty"`
	User       string            `json:"user,omitempty"`
	APIKey     string            `json:"api_key,omitempty"` // in clear; it is hashed before it goes anywhere
	Tier       string            `json:"tier,omitempty"`
	Priority   string            `json:"priority,omitempty"` // critical, high, normal or low; left out for what the rules say
	Method     string            `json:"method,omitempty"`
	Host       string            `json:"host,omitempty"`
	Path       string            `json:"path,omitempty"` // escaped, as it was sent; a query behind it is cut off
	Headers    map[string]string `json:"headers,omitempty"`
	Cookies    map[string]string `json:"cookies,omitempty"`
	Query      map[string]string `json:"query,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Cost       Amount            `json:"cost,omitzero"`    // left out for the cost of each rule
	Peek       bool              `json:"peek,omitempty"`   // check without charging
	Charge     string            `json:"charge,omitempty"` // "always": charge what is done already, even beyond the limit
}

// CheckAnswer is the answer of POST /v1/check and POST /v1/reserve. The numbers are those of one limit: for
// an allowed request the limit with the fewest units left, for a denied request the
// first limit in the document that denies. They are 0 if no limit was checked.
type CheckAnswer struct {
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`            // limits, exempt, blocked, unavailable or unknown_client
	Status  int    `json:"status,omitempty"`  // of a denial: HTTP status for the end user
	Rule    string `json:"rule,omitempty"`    // the rule of that limit
	Level   string `json:"level,omitempty"`   // its level, if the rule has levels
	Code    int    `json:"code,omitempty"`    // of a denial: the rule's own
	Message string `json:"message,omitempty"` // of a denial: for the end user

	Limit        int64  `json:"limit"`
	Remaining    int64  `json:"remaining"`
	Reserved     int64  `json:"reserved,omitempty"` // of a denied request: what it lacks, if that is only reserved
	ResetAt      int64  `json:"reset_at"`           // Unix seconds by the store's clock, rounded up
	ResetAfterMS int64  `json:"reset_after_ms"`
	RetryAfterMS *int64 `json:"retry_after_ms"` // the longest of all limits that deny; 0 if allowed; null if waiting does not help
	DelayMS      int64  `json:"delay_ms"`       // hold the request this long, then let it go

	Display *Display `json:"display,omitempty"` // of a rule that counts money

	Hold          string    `json:"hold,omitempty"` // of a reservation that has charged something
	HoldExpiresAt time.Time `json:"hold_expires_at,omitzero"`
	Unheld        bool      `json:"unheld,omitempty"` // charged without a hold, because there was no place for one

	Priority string        `json:"priority,omitempty"` // of the request, unless it is normal
	Degraded bool          `json:"degraded"`
	Version  int64         `json:"version"` // of the rules
	Results  []LimitAnswer `json:"results"` // one for each limit that applies
}

// LimitAnswer is what one limit says.
type LimitAnswer struct {
	Rule      string `json:"rule"`
	Level     string `json:"level,omitempty"` // of the rule, if it has levels
	Key       string `json:"key"`             // who is limited, as in "user:alice"
	Algorithm string `json:"algorithm"`       //
	Policy    string `json:"policy"`          // the limit as a rule has it, such as "100/1m"
	Allowed   bool   `json:"allowed"`
	Shadow    bool   `json:"shadow,omitempty"` // it has no say
	Soft      bool   `json:"soft,omitempty"`   // and the client is to be told
	Asked     bool   `json:"asked"`            // false if the store is unavailable: then the numbers mean nothing
	Local     bool   `json:"local,omitempty"`  // the store is unavailable, and the instance decided by itself

	Cost         int64  `json:"cost"`
	Excess       int64  `json:"excess,omitempty"` // of the cost, what was not charged, because the client is too deep in debt
	Leave        int64  `json:"leave,omitempty"`  // units that are left for requests with a higher priority
	Limit        int64  `json:"limit"`
	Remaining    int64  `json:"remaining"`
	Reserved     int64  `json:"reserved,omitempty"`
	Leased       int64  `json:"leased,omitempty"` // units that other instances have on lease
	ResetAt      int64  `json:"reset_at"`
	ResetAfterMS int64  `json:"reset_after_ms"`
	RetryAfterMS *int64 `json:"retry_after_ms"`
	DelayMS      int64  `json:"delay_ms"`

	Display *Display `json:"display,omitempty"` // of a rule that counts money

	Penalty  bool           `json:"penalty,omitempty"`  // one of the rule runs, so the limit denies
	Warning  int            `json:"warning,omitempty"`  // percent; the highest threshold that was reached
	Override *LimitOverride `json:"override,omitempty"` // the limit comes from it, and not from the rule
}

// Display is the numbers of a rule that counts money, in millionths, for people: "$13.37".
type Display struct {
	Policy    string `json:"policy"` // such as "20usd/day"
	Cost      string `json:"cost"`
	Limit     string `json:"limit,omitempty"` // left out, as remaining, if the store is unavailable
	Remaining string `json:"remaining,omitempty"`
	Reserved  string `json:"reserved,omitempty"` // of a denied request: what it lacks, if that is only reserved
}

// RulesAnswer is what GET /v1/rules answers, unless YAML is asked for.
type RulesAnswer struct {
	Version     int64           `json:"version"`
	InForce     int64           `json:"in_force"`              // the version that this instance applies
	Unavailable bool            `json:"unavailable,omitempty"` // what is stored cannot be read; these are the rules in force
	NotLoaded   *NotLoaded      `json:"not_loaded,omitempty"`  // nil if the stored rules are in force
	Levels      []string        `json:"levels,omitempty"`
	Rules       json.RawMessage `json:"rules"`
	Exempt      json.RawMessage `json:"exempt,omitempty"`
	Block       json.RawMessage `json:"block,omitempty"`
}

// NotLoaded is that the stored rules cannot be loaded, so older ones stay in force.
type NotLoaded struct {
	Since    int64         `json:"since"`              // in Unix seconds
	Error    string        `json:"error"`              // the first error, and how many others there are
	Problems rule.Problems `json:"problems,omitempty"` // the first ones, without excerpts; nil if it is another error
}

// maxNotLoaded is how many problems a NotLoaded has.
const maxNotLoaded = 10

// WriteAnswer is what every successful change of the rules answers.
type WriteAnswer struct {
	Version  VersionAnswer  `json:"version"`
	Warnings []rule.Problem `json:"warnings,omitempty"`

	// CommentsKept is false if the document had to be written again, without the
	// comments that people had put into it.
	CommentsKept bool `json:"comments_kept"`
}

// VersionAnswer is one version of the rules, without or with its document.
type VersionAnswer struct {
	Number  int64     `json:"number"`
	Time    time.Time `json:"time"`
	Author  string    `json:"author,omitempty"`
	Summary string    `json:"summary,omitempty"`
	Source  string    `json:"source,omitempty"`
}

// HistoryAnswer is what GET /v1/rules/history answers, the latest version first.
type HistoryAnswer struct {
	Versions   []VersionAnswer `json:"versions"`
	Incomplete bool            `json:"incomplete,omitempty"` // of one rule: older versions were not compared
}

// RollbackRequest is the body of POST /v1/rules/rollback.
type RollbackRequest struct {
	Version int64 `json:"version"` // whose document is to be in force again, as a new version
}

// ValidateAnswer is what POST /v1/rules/validate answers.
type ValidateAnswer struct {
	Valid    bool           `json:"valid"`
	Problems []rule.Problem `json:"problems"`
}

// KeysAnswer is what GET /v1/keys answers: a client's standing.
type KeysAnswer struct {
	Key      string        `json:"key"`
	Tier     string        `json:"tier,omitempty"` // whose limits these are
	TierFrom string        `json:"tier_from"`      // how it is known: none, asked, seen or unknown
	Version  int64         `json:"version"`
	Results  []LimitAnswer `json:"results"`
	LeftOut  int           `json:"left_out,omitempty"` // results, because of n

	Directory []EntryAnswer `json:"directory,omitempty"` // the client there, and those that it belongs to, from below
}

// ResetAnswer is what DELETE /v1/keys answers: the rules under which the client was
// reset.
type ResetAnswer struct {
	Key   string   `json:"key"`
	Rules []string `json:"rules"`
}

// Problem is what every error answers, as application/problem+json of RFC 9457.
type Problem struct {
	Type   string `json:"type"` // stable; docs/reference/api.md lists them
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`          // a sentence that names the remedy
	Code   string `json:"code,omitempty"`  // which detail it is, if the type has several
	Field  string `json:"field,omitempty"` // of the body or the query, such as "cost"

	Params map[string]any `json:"params,omitempty"` // what the detail says, for those who say it in another language

	RequestID string         `json:"request_id,omitempty"`
	Problems  []rule.Problem `json:"problems,omitempty"` // of rules that cannot be used
	Version   int64          `json:"version,omitempty"`  // of a lost race: the latest
}
