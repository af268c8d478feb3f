package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/document"
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
	body, err := c.readBody(MaxCheckBody, q.body)
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
func (h *Handler) ask(c *call, q *question, ttl *int64) error {
	e := h.options.Engine
	right, way := trust.Check, manage.Asking(e.Check)
	switch {
	case q.asked.Charge != "" && q.asked.Charge != "always":
		return fault.Field("charge", "%q is unknown; send always, or leave it out.", manage.Clip(q.asked.Charge))
	case q.asked.Charge != "" && (q.asked.Peek || ttl != nil):
		return fault.Field("charge", "it cannot be combined with a peek or a reservation; leave it out.")
	case q.asked.Peek && ttl != nil:
		return fault.Field("peek", "a reservation cannot be a peek; use POST /v1/check.")
	case ttl != nil:
		life, err := manage.TTL(*ttl)
		if err != nil {
			return err
		}
		way = func(ctx context.Context, r *rule.Request, v *engine.Verdict) error { return e.Reserve(ctx, r, life, v) }
	case q.asked.Charge != "":
		right, way = trust.Charge, e.Charge
	case q.asked.Peek:
		right, way = trust.Peek, e.Peek
	}
	err := c.checks.Ask(c.r.Context(), right, &q.said.Request, &q.verdict, way)
	if err == nil && right == trust.Charge {
		h.checker(c).Charged(&q.verdict, nil)
	}
	return err
}

// fill takes in what the client says, if it makes sense.
func (q *question) fill() error {
	a := &q.asked
	priority, err := manage.Priority(a.Priority)
	if err != nil {
		return err
	}
	q.said = manage.Question{
		Request: rule.Request{
			User: a.User, APIKey: a.APIKey, Tier: a.Tier, Priority: priority, Method: a.Method, Host: a.Host,
			Path: a.Path, Attributes: a.Attributes, Cost: a.Cost.Units, Costs: a.Cost.ByUnit,
		},
		Headers: a.Headers, Cookies: a.Cookies, Parameters: a.Query,
	}
	return q.said.Read(a.IP)
}

// writer appends JSON as json.Marshal would write it, in a fraction of the time. It implements
// manage.Fields. A test compares it with the library.
type writer struct {
	out   []byte
	begun bool // something stands before in the same object or list
}

func (w *writer) name(name string) {
	if w.begun {
		w.out = append(w.out, ',')
	}
	w.begun = true
	if name != "" {
		w.out = append(append(append(w.out, '"'), name...), '"', ':')
	}
}

func (w *writer) Text(name, value string) {
	w.name(name)
	w.out = document.AppendString(w.out, value)
}

func (w *writer) Int(name string, n int64) {
	w.name(name)
	w.out = strconv.AppendInt(w.out, n, 10)
}

func (w *writer) Bool(name string, yes bool) {
	w.name(name)
	w.out = strconv.AppendBool(w.out, yes)
}

func (w *writer) Null(name string) {
	w.name(name)
	w.out = append(w.out, "null"...)
}

func (w *writer) Time(name string, at time.Time) {
	w.name(name)
	w.out = append(at.AppendFormat(append(w.out, '"'), time.RFC3339Nano), '"')
}

func (w *writer) Object(name string) {
	w.name(name)
	w.out, w.begun = append(w.out, '{'), false
}

func (w *writer) List(name string, _ int) {
	w.name(name)
	w.out, w.begun = append(w.out, '['), false
}

func (w *writer) End(list bool) {
	end := byte('}')
	if list {
		end = ']'
	}
	w.out, w.begun = append(w.out, end), true
}

// readBack is what was told, as a part of a larger answer has it.
func readBack[A any](tell func(manage.Fields)) (a A) {
	w := new(writer)
	tell(w)
	if err := json.Unmarshal(w.out, &a); err != nil {
		panic(err) // it is what the types say
	}
	return a
}
