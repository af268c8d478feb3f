// Package rule parses rules and matches requests against them.
//
// A [Set] is one document, in YAML or JSON. [Parse] reads it and reports all problems
// at once, each with line, column and remedy. [Compile] turns a set into a [Table]. A
// Table is immutable and safe for concurrent use, and the time to match a request does
// not depend on the number of rules that do not match.
//
// To read YAML, import package rule/rulefile, and for expressions package rule/expression. Only
// programs that do so contain the libraries for these.
//
// The package does not use a store and makes no decisions; see package engine.
package rule

import (
	"net/netip"
	"time"

	"github.com/weirhq/weir"
)

// Set is one document of rules. Every rule that matches a request applies to it.
type Set struct {
	// Levels are the names of the clients that others belong to, from the top down, as in org, team, user, api_key: at most
	// MaxLine. Each is a part that keys can have; see [Directory] and Quota.Levels.
	Levels []string

	Rules  []Rule
	Exempt List // clients that are never limited
	Block  List // clients that are always denied, unless exempt
}

// Rule defines limits for some requests.
type Rule struct {
	// ID is the name of the rule, unique in the set: letters, digits, dots, dashes and
	// underscores, at most MaxIDLen.
	ID string

	// Description is a note for people.
	Description string

	// Match selects the requests to which the rule applies. Default all.
	Match Match

	// Key selects what identifies a client; at least one part. The rule does not apply
	// to a request that lacks a part.
	Key []Source

	// Algorithm selects how the rule counts. Default weir.TokenBucket; periods of the
	// calendar are then weir.FixedWindow.
	Algorithm weir.Algorithm

	// Quota is the default quota, for clients without a tier or override of this rule.
	Quota Quota

	// Buckets is the number of sub-windows of sliding_buckets. Default 60.
	Buckets int

	// Shape turns a leaky_bucket into a queue that delays requests.
	Shape bool

	// Priority is that of the requests to which the rule applies. If several rules apply,
	// the highest counts; a priority of the request itself takes precedence. Rules that do
	// not deny have no say. Default none.
	Priority Priority

	// Shares are how much of each limit of the rule the requests of each priority can use.
	// Default all of it.
	Shares Shares

	// Tiers are quotas by the tier of the request. What one does not say it inherits from Quota: Zone, Starts, Concurrency,
	// the Levels, and the Rates with their Burst. An unlimited one inherits nothing.
	Tiers map[string]Quota

	// Overrides are quotas by identity, as in "user:alice" or, for a composed key,
	// "ip:203.0.113.7|user:alice". They take precedence over tiers. See
	// [Entry.Identity].
	Overrides map[string]Quota

	// Mode selects whether the rule denies requests. Default Enforce.
	Mode Mode

	// OnFailure selects what happens while the store is unavailable. Default Open. In a document, rules
	// with Tokens, Unit or Count default to Local.
	OnFailure Failure

	// Fallback bounds the local fallback, if OnFailure is Local. Default none: the limits of the rule apply
	// locally as long as the store is unavailable.
	Fallback Fallback

	// CountDenied makes denied requests count, too.
	CountDenied bool

	// UnlessDeniedEarlier leaves out of CountDenied the requests that a rule earlier in the set denies. What the
	// rule itself or a later one denies still counts.
	UnlessDeniedEarlier bool

	// Cost is the cost of a request without its own cost. Default 1.
	Cost int64

	// CostEstimate is an expression for the cost of a request without its own cost. Cost
	// is for requests for which it cannot be evaluated. Default Cost.
	CostEstimate string

	// CostActual is an expression for the real cost of a request, by its response. What
	// was charged before is then settled with it. Default what was charged.
	CostActual string

	// Count selects the requests that count, by their responses. Default all.
	Count Count

	// Unit is what the rule counts, such as tokens, for requests whose cost depends on it;
	// see Request.Costs. Default none, or tokens if Tokens has no weights; see CostUnit.
	Unit string

	// HoldTTL is after how long a request no longer counts for Concurrency if its process has
	// died, or has not renewed its place. Default weir.DefaultHoldTTL.
	HoldTTL time.Duration

	// Wait lets requests wait for a place of Concurrency. Default none.
	Wait Wait

	// OnExpiry selects what happens to the units of a hold that is not settled in time.
	// Default Keep.
	OnExpiry Expiry

	// Lease is for how long an instance can have units of a client, to decide without asking the store. Default 0:
	// it asks for every request. See weir.Limit.
	Lease time.Duration

	// Tokens makes the rule count tokens of language models. Default nil: it counts requests.
	Tokens *Tokens

	// MCP makes the rule count messages of the Model Context Protocol. Default nil: it counts requests.
	MCP *MCP

	// Penalty denies a client for a while after its requests were denied. Default none.
	Penalty Penalty

	// Warn are the shares of a limit, in percent and ascending, at which a client is warned:
	// of each limit that applies to it, whatever its tier or override. At most MaxWarn.
	// Default none.
	Warn []int

	// Deny is the answer to a denied client.
	Deny Deny
}

// MaxIDLen is the maximum length of a rule's id in bytes.
const MaxIDLen = 100

// Match selects the requests to which a rule applies: those that meet every given
// condition. A condition with several values is met by any of them.
type Match struct {
	Methods    []string            // upper case
	Hosts      []string            // lower case; "*.example.com" matches every name below it
	Paths      []string            // "/users/{id}", "/api/**"
	Attributes map[string][]string // an attribute without values matches any value; "*" beside values too, and then stands for the others in a key

	// When is an expression, which is evaluated only for requests that meet all other
	// conditions. If that fails, it is met.
	When string
}

// Quota is one or several rates and a number of requests at the same time, which all apply, or
// no limit at all.
type Quota struct {
	Unlimited bool
	Rates     []Rate
	Burst     int64 // of a bucket; 0 for N

	// Concurrency is how many requests can be in flight. Default 0: any number.
	Concurrency int64

	// Priority is that of the requests of a tier or of a client with an override. Default
	// that of the rule.
	Priority Priority

	// Lease is for how long an instance can have units of these limits. Default that of the rule.
	Lease time.Duration

	// Zone is the name of a time zone, such as "Asia/Shanghai". It makes hours, days and weeks
	// periods of the calendar, which months and years always are. Default that of the rule;
	// without one, UTC for months and years.
	Zone string

	// Starts is where the periods of the calendar that it fits begin: "06:00" for days,
	// "monday" for weeks, "15" for months, "04-01" for years. Default that of the rule;
	// without one, midnight, Monday, the 1st and January 1.
	Starts string

	// Levels are quotas by the names of levels, for a rule with the key Levels; then the quota has no Rates and no
	// Concurrency itself. The rule applies to each client of the request at one of these levels. Those of a tier are for
	// clients with this tier; of the levels that it does not name, and of what one does not say, it inherits the rule's.
	Levels map[string]Quota
}

// Rate is N units per period, as in "100/1m".
type Rate struct {
	N        int64 // in millionths, if there is a currency
	Period   time.Duration
	Currency string // such as "usd", or none
}

// Mode selects whether a rule denies requests.
type Mode uint8

const (
	Enforce Mode = iota
	Shadow       // charges and reports, but never denies
	Soft         // Shadow, and tells the client
	Off
)

// Failure selects what happens to a request while the store is unavailable.
type Failure uint8

const (
	Open   Failure = iota // fail open: allow the request
	Closed                // fail closed: deny the request
	Local                 // local fallback: this instance limits in its memory, with its share of the limit
)

// usualFailure is what a rule that says nothing in its document does while the store is unavailable. What is
// counted by tokens, units or responses is a budget, and that must not be lifted by whoever keeps the store busy.
func (r *Rule) usualFailure() Failure {
	if r.Tokens != nil || r.Unit != "" || len(r.Count.Status) > 0 {
		return Local
	}
	return Open
}

// Expiry selects what happens to the units of a hold that expires.
type Expiry uint8

const (
	Keep    Expiry = iota // they stay charged
	Release               // they are refunded
)

// Deny is the answer to a denied client.
type Deny struct {
	Status  int    // default 429
	Code    int    // defined by your application, such as 10007
	Message string // default: a message that names the rule
}

// List is a list of clients, for exempt and block.
type List struct {
	IPs     []netip.Prefix
	Users   []string
	APIKeys []string
}

// Source is the part of a request that identifies a client.
type Source struct {
	Kind SourceKind
	Name string // of the header, cookie, query parameter or attribute

	// IPv4Bits and IPv6Bits are the lengths of the prefixes by which addresses are
	// distinguished. Default 32 and Options.IPv6Bits. Only for IP.
	IPv4Bits, IPv6Bits int
}

// SourceKind is the kind of a Source.
type SourceKind uint8

const (
	IP SourceKind = iota
	User
	APIKey
	Global // one key for all clients
	Tier   // as Rule.Tiers names it
	Host   // as Match.Hosts names it
	Method // as Match.Methods names it; without them, each method of HTTP
	Route  // the most specific pattern of Match.Paths
	Header
	Cookie
	Query
	Attribute
	Level  // a client that a [Directory] names, such as an organization; the name is that of one of Set.Levels
	Levels // those of Quota.Levels, each of which is counted; alone in a key
)
