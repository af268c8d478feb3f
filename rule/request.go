package rule

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir/internal/document"
)

// Request describes a request. Omit what is unknown; rules that need it do not apply.
type Request struct {
	IP     netip.Addr // of the client; it must be trustworthy
	User   string
	APIKey string // in clear text; it is hashed before it is stored or logged
	Tier   string

	// OtherUsers and OtherAPIKeys are further values, if the request has more than one
	// user or API key. Each is counted, because servers disagree about which one they
	// use; see [Hit.Identities].
	OtherUsers, OtherAPIKeys []string

	// Priority is how important the request is; it must be trustworthy. Default that of the
	// rules that apply to it, else Normal.
	Priority Priority

	// Method is compared in upper case, because some servers accept "post" for POST.
	Method string

	// Host may contain a port, a final dot and upper-case letters, which are ignored.
	// The name ends at the first colon, so an IPv6 address must be in brackets.
	Host string

	// Path begins with a slash and has no query. It is escaped, as it was sent: use
	// http.Request.URL.EscapedPath(), not URL.Path, which does not distinguish an
	// escaped slash from a real one. Dot segments, empty segments and unnecessary
	// escapes do not matter. A rule applies if it matches any way in which common
	// servers read the path.
	Path string

	// Attributes are defined by your application, such as action: post. An empty value
	// counts as absent.
	Attributes map[string]string

	// Batch has the attributes of each message of a request with several messages of MCP: those of the request,
	// mcp.method and mcp.tool. Rules with MCP apply to each of them, and all are charged or none. Nil means that
	// the request has at most one, whose attributes are among Attributes.
	Batch []map[string]string

	// Values returns headers, cookies and query parameters. Nil means none.
	Values Values

	// Size is the length of the body in bytes; -1 if it is not known before it is read.
	Size int64

	// JSON returns the body of the request, or what it stands for, for expressions; it is empty
	// if there is none. It is called only if an expression reads it. A request whose body is not
	// JSON, or for which JSON fails, is denied; a [RequestError] says how. Nil means none.
	JSON func() ([]byte, error)

	// Unread is whether the body has not been read, so that Prompt, JSON and attributes from it are
	// not known. Rules that need them do not apply.
	Unread bool

	// Cost is the cost of the request; 0 for the cost that each rule defines.
	Cost int64

	// Costs are costs by the unit of a rule, at least 1 each. A rule whose unit is not among
	// them has the cost that it would have without Costs. A unit that no rule has is invalid.
	Costs map[string]int64

	// Permit reports whether the request may be charged under a rule and a key, as
	// [Entry.Identity] returns it, or ask about them. It must not keep the key. A rule that may
	// not be used fails the check; a shadow or soft one does not apply. Nil means any.
	Permit func(rule, key string) bool

	// Prompt describes a request to a language model, for rules that count tokens. Such rules
	// do not apply to an empty prompt. Nil means unknown.
	Prompt *Prompt

	line line // see Resolve
}

// Values returns headers, cookies and query parameters of a request. A name can have
// several values. Each method returns the first value at or after a position, and the
// position after it. An empty value counts as absent. Positions are defined by the
// implementation, except 0: as an argument it is the start, and as a result it means
// that there are no further values. Header gets names as in http.CanonicalHeaderKey,
// and the host only if Request.Host is empty. Implementations must not allocate.
type Values interface {
	Header(name string, from int) (value string, next int)
	Cookie(name string, from int) (value string, next int)
	Query(name string, from int) (value string, next int)
}

// OneValue implements a method of [Values] for at most one value; "" means none.
func OneValue(value string, from int) (string, int) {
	if from > 0 || value == "" {
		return "", 0
	}
	return value, 1
}

// NextValue implements a method of [Values] for a list of values.
func NextValue(values []string, from int) (string, int) {
	for i := from; i < len(values); i++ {
		if values[i] != "" {
			return values[i], i + 1
		}
	}
	return "", 0
}

// Response describes the answer to a request, for rules that settle by it. Omit what is
// unknown.
type Response struct {
	Status   int // of HTTP; 0 if there was no answer
	Bytes    int64
	Duration time.Duration // from the start of the request to the end of the answer

	// Header has the headers of the response: "" if there is none. The name is as in
	// http.CanonicalHeaderKey. Nil means none.
	Header interface{ Get(name string) string }

	// Tokens is what a language model used. Nil means unknown: what was reserved counts.
	Tokens *Usage

	// Cut is whether the answer was ended because it used what was reserved for it.
	Cut bool

	// Unfinished is whether the answer ended before the model had come to an end: the client left, or
	// the upstream broke off. It is charged, and tells nothing of how long answers are.
	Unfinished bool

	// JSON is the body, if it is known. It is parsed only if a rule reads it.
	JSON []byte
}

// Count selects the requests that count, by their responses. Default all.
type Count struct {
	Status []Statuses
}

// Statuses are the HTTP statuses from First to Last.
type Statuses struct{ First, Last int }

// ParseStatuses parses "401" or "4xx".
func ParseStatuses(text string) (Statuses, error) {
	if len(text) == 3 && text[0] >= '1' && text[0] <= '5' {
		first := 100 * int(text[0]-'0')
		if text[1:] == "xx" {
			return Statuses{first, first + 99}, nil
		}
		if n, err := strconv.Atoi(text); err == nil {
			return Statuses{n, n}, nil
		}
	}
	return Statuses{}, fmt.Errorf("%s is not a status; write a number from 100 to 599, such as 401, or a class such as 5xx", document.Quote(text))
}

// String returns the statuses in the notation of ParseStatuses.
func (s Statuses) String() string {
	if s.First == s.Last {
		return strconv.Itoa(s.First)
	}
	return strconv.Itoa(s.First/100) + "xx"
}

func (s Statuses) contains(status int) bool { return status >= s.First && status <= s.Last }

// valid is whether the statuses can be written.
func (s Statuses) valid() bool {
	parsed, err := ParseStatuses(s.String())
	return err == nil && parsed == s
}

func (c Count) validate() error {
	for _, s := range c.Status {
		if !s.valid() {
			return fmt.Errorf("count: status: %d to %d is neither one status nor a class such as 500 to 599", s.First, s.Last)
		}
	}
	return nil
}

// contains reports whether a response counts.
func (c Count) contains(status int) bool {
	return len(c.Status) == 0 || slices.ContainsFunc(c.Status, func(s Statuses) bool { return s.contains(status) })
}

var errNoPrice = errors.New("the model of the request has no price any more")

// errNoResponse is why a rule that settles keeps what was reserved.
var errNoResponse = errors.New("the request has no response")

// Settles reports whether the cost of a request is known only when there is a response:
// reserve the result of Estimate before the request, and settle with that of Actual.
func (c *Entry) Settles() bool {
	return len(c.Count.Status) > 0 || c.actual != nil || c.Tokens != nil
}

// Estimate returns the cost of a request before there is a response: the cost that the
// request has for the unit of the rule, or else for all rules, or else the one that the
// rule defines. The error is a [RequestError].
func (c *Entry) Estimate(req *Request) (int64, error) {
	if c.actual != nil && c.actual.Reads("request.json") { // what cannot be read now cannot be settled
		if _, err := c.actual.Units(req, nil); denies(err) != nil {
			_ = c.fail(ForActual, err)
			return 0, err
		}
	}
	if c.Tokens != nil && req.Prompt != nil {
		return c.tokenUnits(req.Prompt, c.mostOutput(req.Prompt))
	}
	if req.Costs != nil {
		if unit := c.CostUnit(); unit != "" {
			if cost, found := req.Costs[unit]; found {
				return cost, nil
			}
		}
	}
	if req.Cost != 0 {
		return req.Cost, nil
	}
	if c.estimate != nil {
		units, err := c.estimate.Units(req, nil)
		if err == nil {
			return max(1, units), nil
		}
		if _ = c.fail(ForEstimate, err); denies(err) != nil {
			return 0, err
		}
	}
	return max(1, c.Cost), nil
}

// Actual returns the real cost of a request for which units were reserved. It is what was
// reserved, with an error, if the cost cannot be found out. Without a response, such as
// after a panic, nothing is known, and all that was reserved counts.
func (c *Entry) Actual(req *Request, resp *Response, reserved int64) (int64, error) {
	switch {
	case !c.Settles():
		return reserved, nil
	case resp == nil || resp.Status == 0:
		return reserved, errNoResponse
	case !c.Count.contains(resp.Status):
		return 0, nil
	case c.Tokens != nil && req.Prompt != nil && resp.Tokens != nil:
		if cost, known := c.TokenCost(req.Prompt.Model, *resp.Tokens); known {
			return cost, nil
		}
		return reserved, errNoPrice // the list has changed since
	case c.actual == nil:
		return reserved, nil
	}
	units, err := c.actual.Units(req, resp)
	if err != nil {
		return reserved, c.fail(ForActual, err)
	}
	return units, nil
}

// Claims are what a verified token says of the client that sent it. Requests may
// share them, so do not change them.
type Claims struct {
	User     string // "" if the token does not tell
	Tier     string
	Priority Priority

	// Attributes are those of Request.Attributes that come from the token.
	Attributes map[string]string
}

// TokenError reports a request that must be denied because it has no valid token. It contains
// nothing of the token.
type TokenError struct {
	Missing bool   // the request has no token
	Reason  string // a sentence for the client
}

func (e *TokenError) Error() string { return "rule: " + e.Reason }
