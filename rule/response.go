package rule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir/internal/document"
)

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
		return c.Tokens.estimate(req.Prompt), nil
	}
	if req.Costs != nil {
		if cost, found := req.Costs[c.CostUnit()]; found && c.CostUnit() != "" {
			return cost, nil
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
		return c.Tokens.Cost(req.Prompt.Model, *resp.Tokens), nil
	case c.actual == nil:
		return reserved, nil
	}
	units, err := c.actual.Units(req, resp)
	if err != nil {
		return reserved, c.fail(ForActual, err)
	}
	return units, nil
}
