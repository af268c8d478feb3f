package httpapi

import (
	"net/http"
	"sync"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
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
	out     writer
}

var questions = sync.Pool{New: func() any { return new(question) }}

// release keeps nothing of this question but the room that it took.
func (q *question) release() {
	q.asked, q.said = CheckRequest{}, manage.Question{}
	questions.Put(q)
}

// check answers POST /v1/check. That the store is unavailable is no error here: each rule
// has said what happens then.
func (h *Handler) check(c *call) (any, error) { return h.decide(c, nil) }

// decide answers a check, or a reservation if there is a place for its ttl.
func (h *Handler) decide(c *call, ttl *int64) (any, error) {
	q := questions.Get().(*question)
	defer q.release()
	if cap(q.body) == 0 {
		q.body = make([]byte, 0, 1024)
	}
	body, err := c.read(MaxCheckBody, q.body)
	if err == nil {
		q.body = body
		err = q.asked.parse(body, ttl)
	}
	if err == nil {
		err = q.fill()
	}
	if err == nil {
		err = h.ask(c, q, ttl)
	}
	if err != nil {
		return nil, err
	}
	q.out = writer{out: q.out.out[:0]}
	manage.TellVerdict(&q.out, &q.verdict, true)
	q.out.out = append(q.out.out, '\n')
	c.Header()["Content-Type"] = typeJSON
	c.WriteHeader(http.StatusOK)
	c.Write(q.out.out)
	return nil, nil
}

// ask lets the engine decide in the way that the client wants, if it may.
func (h *Handler) ask(c *call, q *question, ttl *int64) (err error) {
	right, life := trust.Check, time.Duration(0)
	switch {
	case q.asked.Charge != "" && q.asked.Charge != "always":
		return fault.BadField.Of("charge: %q is unknown; send always, or leave it out.", manage.Clip(q.asked.Charge)).In("charge")
	case q.asked.Charge != "" && (q.asked.Peek || ttl != nil):
		return fault.BadField.Of("charge: it cannot be combined with a peek or a reservation; leave it out.").In("charge")
	case q.asked.Peek && ttl != nil:
		return fault.BadField.Of("peek: a reservation cannot be a peek; use POST /v1/check.").In("peek")
	case ttl != nil:
		var bad *manage.FieldError
		if life, bad = manage.TTL(*ttl); bad != nil {
			return bad
		}
	case q.asked.Charge != "":
		right = trust.Charge
	case q.asked.Peek:
		right = trust.Peek
	}
	ctx, e, r, v := c.r.Context(), h.options.Engine, &q.said.Request, &q.verdict
	if err := c.checks.Permit(right, r); err != nil {
		return err
	}
	switch {
	case ttl != nil:
		err = e.Reserve(ctx, r, life, v)
	case right == trust.Charge:
		if err = e.Charge(ctx, r, v); err == nil {
			h.checker(c).Charged(v, nil)
		}
	case right == trust.Peek:
		err = e.Peek(ctx, r, v)
	default:
		err = e.Check(ctx, r, v)
	}
	if err != nil {
		return c.checks.Judged(right, err)
	}
	return nil
}

// fill takes in what the client says, if it makes sense.
func (q *question) fill() error {
	a := &q.asked
	priority, bad := manage.Priority(a.Priority)
	if bad != nil {
		return bad
	}
	q.said = manage.Question{
		Request: rule.Request{
			User: a.User, APIKey: a.APIKey, Tier: a.Tier, Priority: priority, Method: a.Method, Host: a.Host,
			Path: a.Path, Attributes: a.Attributes, Cost: a.Cost.Units, Costs: a.Cost.ByUnit,
		},
		Headers: a.Headers, Cookies: a.Cookies, Parameters: a.Query,
	}
	if err := q.said.Read(a.IP); err != nil {
		return err
	}
	return nil
}
