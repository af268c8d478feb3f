// Package rule says who is limited, by what: rules as people write them, and the
// table that a request is looked up in.
//
// A [Set] is one document, in YAML or JSON; [Parse] reads it and reports everything
// that is wrong with it at once, each with line, column and remedy. [Compile] turns
// a set into a [Table], which never changes: whoever has one can match requests
// against it from any goroutine, in a time that does not depend on how many other
// rules there are.
//
// The package knows no store and decides nothing.
package rule

import (
	"net/netip"
	"time"

	"github.com/weirhq/weir"
)

// Set is one document of rules. Every rule that matches a request applies to it.
type Set struct {
	Rules  []Rule
	Exempt List // whoever is on it is not limited at all
	Block  List // whoever is on it is denied, unless exempt
}

// Rule is a limit for some requests.
type Rule struct {
	// ID is its name, unique in the set: letters, digits, dots, dashes and
	// underscores, at most weir.MaxNameLen.
	ID string

	// Description is for people.
	Description string

	// Match says to which requests it applies. Default to all.
	Match Match

	// Key says who is counted apart. A request that lacks one of the parts is not
	// subject to the rule. At least one part.
	Key []Source

	// Algorithm is how to count. Default weir.TokenBucket.
	Algorithm weir.Algorithm

	// Quota is for everyone whom neither a tier nor an override gives another.
	Quota Quota

	// Buckets is the number of sub-windows of sliding_buckets. Default 60.
	Buckets int

	// Shape turns a leaky_bucket into a queue.
	Shape bool

	// Tiers are quotas by the tier of the request. They take nothing from Quota, not
	// even the burst.
	Tiers map[string]Quota

	// Overrides are quotas by identity, as in "user:alice" or, for a composed key,
	// "ip:203.0.113.7|user:alice", which beat the tiers. See [Entry.Identity].
	Overrides map[string]Quota

	// Mode is whether the rule bites. Default Enforce.
	Mode Mode

	// OnFailure is what happens when the store cannot be asked. Default Open.
	OnFailure Failure

	// CountDenied makes denied requests count, too.
	CountDenied bool

	// Cost is what a request costs if it does not say. Default 1.
	Cost int64

	// Deny is what a denied client is told.
	Deny Deny
}

// Match says to which requests a rule applies: those that meet every condition that
// is there. A condition with several values is met by any of them.
type Match struct {
	Methods    []string            // upper case
	Hosts      []string            // lower case; "*.example.com" is every name below
	Paths      []string            // "/users/{id}", "/api/**"
	Attributes map[string][]string // an attribute without values is met by any value
}

// Quota is one or several rates, all of which must be kept, or no limit at all.
type Quota struct {
	Unlimited bool
	Rates     []Rate
	Burst     int64 // of a bucket; 0 is N
}

// Rate is N units in a period, as in "100/1m".
type Rate struct {
	N      int64
	Period time.Duration
}

// Mode is whether a rule bites.
type Mode uint8

const (
	Enforce Mode = iota
	Shadow       // charged and reported, and never denies
	Off
)

// Failure is what happens to a request whose rule cannot be asked for.
type Failure uint8

const (
	Open   Failure = iota // it passes
	Closed                // it is denied
	Local                 // this instance goes on by itself, with its share of the limit
)

// Deny is what a denied client is told.
type Deny struct {
	Status  int    // default 429
	Code    int    // the application's own, such as 10007
	Message string // default names the rule
}

// List is whom a rule set exempts or blocks.
type List struct {
	IPs     []netip.Prefix
	Users   []string
	APIKeys []string
}

// Source is where a part of an identity is found in a request.
type Source struct {
	Kind SourceKind
	Name string // of the header, cookie, query parameter or attribute
}

// SourceKind is a kind of thing that a request has.
type SourceKind uint8

const (
	IP SourceKind = iota
	User
	APIKey
	Global // the same for everyone
	Header
	Cookie
	Query
	Attribute
)
