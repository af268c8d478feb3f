package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/httpbody"
	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/rule"
)

// MaxCheckBody is the longest body of POST /v1/check, in bytes.
const MaxCheckBody = manage.MaxQuestion

// question is what one check needs on its way, used again for the next.
type question struct {
	body    []byte
	asked   CheckRequest
	said    manage.Question
	verdict engine.Verdict
	answer  CheckAnswer
	waits   []int64 // what the pointers in answer point to
	out     []byte
}

var questions = sync.Pool{New: func() any { return new(question) }}

// release keeps nothing of this question but the room that it took.
func (q *question) release() {
	q.asked, q.said = CheckRequest{}, manage.Question{}
	results := q.answer.Results
	clear(results)
	q.answer = CheckAnswer{Results: results[:0]}
	questions.Put(q)
}

// check answers POST /v1/check. That the store is unavailable is no error here: each rule
// has said what happens then.
func (h *Handler) check(c *call) (any, error) {
	q := questions.Get().(*question)
	defer q.release()
	err := q.read(c)
	if err == nil {
		err = q.asked.parse(q.body)
	}
	if err == nil {
		err = q.fill()
	}
	if err != nil {
		return nil, err
	}
	ask := h.options.Engine.Check
	if q.asked.Peek {
		ask = h.options.Engine.Peek
	}
	if err := ask(c.r.Context(), &q.said.Request, &q.verdict); err != nil {
		return nil, unjudged(err)
	}
	h.describeVerdict(q, &h.policies)
	q.out = append(appendCheckAnswer(q.out[:0], &q.answer), '\n')
	c.Header()["Content-Type"] = typeJSON
	c.WriteHeader(http.StatusOK)
	c.Write(q.out)
	return nil, nil
}

// unjudged is why there is no verdict.
func unjudged(err error) error {
	if invalid, ok := errors.AsType[*weir.InvalidError](err); ok {
		return invalidRequest.of("%s", manage.Sentence(err)).in(invalid.Field)
	}
	return err
}

// checkFields are the names of the fields of CheckRequest.
var checkFields = []string{
	"ip", "user", "api_key", "tier", "method", "host", "path",
	"headers", "cookies", "query", "attributes", "cost", "peek",
}

// fill takes in what the client says, if it makes sense.
func (q *question) fill() error {
	a := &q.asked
	q.said = manage.Question{
		Request: rule.Request{
			User: a.User, APIKey: a.APIKey, Tier: a.Tier, Method: a.Method, Host: a.Host,
			Path: a.Path, Attributes: a.Attributes, Cost: a.Cost,
		},
		Headers: a.Headers, Cookies: a.Cookies, Parameters: a.Query,
	}
	if err := q.said.Read(a.IP); err != nil {
		return badField.of("%s", err.Detail).in(err.Field)
	}
	return nil
}

// read fills the buffer from the body.
func (q *question) read(c *call) error {
	if c.r.ContentLength > MaxCheckBody {
		return c.unread(new(http.MaxBytesError), MaxCheckBody)
	}
	if cap(q.body) == 0 {
		q.body = make([]byte, 0, 1024)
	}
	var err error
	if q.body, err = httpbody.ReadUpTo(c.r.Body, q.body[:0], httpbody.Free+1); err == nil {
		if err = c.hold(c.bodies.open, MaxCheckBody); err == nil {
			q.body, err = httpbody.ReadUpTo(c.r.Body, q.body, MaxCheckBody+1)
		}
	}
	switch {
	case len(q.body) > MaxCheckBody:
		return c.unread(new(http.MaxBytesError), MaxCheckBody)
	case err == io.EOF:
		return nil
	}
	return c.unread(err, MaxCheckBody)
}
