package front

import (
	"maps"

	"github.com/weirhq/weir/rule"
)

// Identify puts into a request what its token says. That is verified, so it replaces what others say.
func Identify(q *rule.Request, c *rule.Claims) {
	if c == nil {
		return
	}
	if c.User != "" {
		q.User, q.OtherUsers = c.User, nil
	}
	if c.Tier != "" {
		q.Tier = c.Tier
	}
	if c.Priority != 0 {
		q.Priority = c.Priority
	}
	if q.Attributes == nil {
		q.Attributes = c.Attributes
	} else if len(c.Attributes) > 0 {
		q.Attributes = maps.Clone(q.Attributes) // it may be shared, too
		maps.Copy(q.Attributes, c.Attributes)
	}
}

// Challenge is the value of the header WWW-Authenticate for a request without a valid token.
func Challenge(wrong *rule.TokenError) string {
	if wrong.Missing {
		return "Bearer"
	}
	return `Bearer error="invalid_token", error_description="` + wrong.Reason + `"`
}
