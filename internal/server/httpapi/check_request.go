package httpapi

import "github.com/weirhq/weir/internal/server/manage"

// checkFields are the names of the fields of CheckRequest.
var checkFields = []string{
	"ip", "user", "api_key", "tier", "method", "host", "path",
	"headers", "cookies", "query", "attributes", "cost", "peek",
}

// fill puts what the client says into a request, if it makes sense.
func (q *question) fill() *Problem {
	a := &q.asked
	q.said = manage.Question{
		IP: a.IP, User: a.User, APIKey: a.APIKey, Tier: a.Tier, Method: a.Method, Host: a.Host, Path: a.Path,
		Headers: a.Headers, Cookies: a.Cookies, Query: a.Query, Attributes: a.Attributes, Cost: a.Cost,
	}
	if err := q.said.Fill(&q.request, &q.values); err != nil {
		return badField.of("%s", err.Detail).in(err.Field)
	}
	return nil
}
