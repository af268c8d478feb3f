package httplimit

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/httpbody"
	"github.com/weirhq/weir/internal/llm"
	"github.com/weirhq/weir/internal/match"
	"github.com/weirhq/weir/rule"
)

const (
	maxPrompt  = 32 << 20  // bytes of the body of a request to a language model
	maxPrompts = 256 << 20 // bytes of all that are being read or sent on
)

var prompts = httpbody.New(maxPrompts)

// errSeveral is that upstreams could take a request for another one, at another price.
var errSeveral = errors.New("httplimit: the body has several values of a field")

// prompt is a request to a language model whose tokens a rule counts. A nil one is any other
// request.
type prompt struct {
	llm.Request
	rule    rule.Prompt // what rules are told
	body    []byte
	memory  *shortBody // where the body is, if it is short; or nil
	kept    bool       // expressions may read it until the response has ended
	cloned  bool       // the headers of the request are its own
	release func()
}

// readPrompt reads the body of a request if a rule counts its tokens, and tells rules about
// it. After an error, the request has been answered.
func (m *Middleware) readPrompt(w http.ResponseWriter, r *http.Request, pass *pass, by caller) (*prompt, error) {
	q := &pass.request
	table, _ := m.engine.Rules()
	counts := table.CountsTokens(pass.hits[:], q)
	if counts == nil {
		return nil, nil
	}
	p, uses := &pass.prompt, false
	p.release = func() {}
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		from := m.source(w, r, q)
		from.Memory = p.take(r, by)
		pass.look = look{m, r, q, &pass.verdict, &pass.denial.Denial}
		from.Long = &pass.look
		var err error
		if p.body, p.release, err = prompts.Read(from, maxPrompt); err != nil {
			p.close()
			p.Request, _ = llm.Parse(q.Path, nil, llm.API(counts.Tokens.API))
			if err == errDenied {
				p.writeHeaders(w.Header(), &pass.verdict, m.options.Headers)
				m.stop(w, r, pass, p, nil)
			} else {
				p.unread(w, err)
			}
			return nil, err
		}
	}
	p.Request, uses = llm.Parse(match.CanonicalPath(q.Path), p.body, llm.API(counts.Tokens.API))
	if uses && p.Several != "" {
		p.close()
		p.problem(w, http.StatusBadRequest, "The body of the request has several values of "+p.Several+"; send one.", 0)
		return nil, errSeveral
	}
	if q.Prompt = &p.rule; uses {
		p.rule = rule.Prompt{Model: p.Model, Input: p.Input, MaxOutput: p.Output, Answers: p.Answers()}
	}
	if _, given := q.Attributes["model"]; !given && p.Model != "" {
		if pass.attributes == nil {
			pass.attributes = map[string]string{}
		}
		maps.Copy(pass.attributes, q.Attributes)
		pass.attributes["model"] = p.Model
		q.Attributes = pass.attributes
	}
	return p, nil
}

// unread answers a request whose body could not be read.
func (p *prompt) unread(w http.ResponseWriter, err error) {
	status, message := http.StatusBadRequest, "The body of the request could not be read."
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		status, message = http.StatusRequestEntityTooLarge, "The body of the request is longer than "+strconv.Itoa(maxPrompt>>20)+" MiB."
	} else if errors.Is(err, httpbody.ErrBusy) {
		status, message = http.StatusServiceUnavailable, "Too many long requests are being read; try again later."
		w.Header().Set("Retry-After", "1")
	} else if errors.Is(err, httpbody.ErrSlow) {
		status, message = http.StatusRequestTimeout, "The body of the request came too slowly."
	}
	p.problem(w, status, message, 0)
}

// close is for a body that nobody else has.
func (p *prompt) close() {
	if p != nil {
		p.release()
		p.memory.free()
	}
}

// problem answers as the API of the client does.
func (p *prompt) problem(w http.ResponseWriter, status int, message string, wait time.Duration) {
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests && wait == 0 {
		h.Set("X-Should-Retry", "false") // the clients of OpenAI and Anthropic heed it
	}
	w.WriteHeader(status)
	w.Write(llm.Problem(p.API, status, message, wait))
}

// writeHeaders adds what clients of the API look for: the limit of tokens, and that of
// requests, with the least left.
func (p *prompt) writeHeaders(h http.Header, v *engine.Verdict, families Headers) {
	if p == nil || families&XRateLimit == 0 {
		return
	}
	var least [2]*engine.Result
	for i := range v.Results {
		r, tokens := &v.Results[i], 0
		if r.Rule.Tokens != nil {
			tokens = 1
		}
		if !r.Shadow && r.Asked && (least[tokens] == nil || r.Remaining < least[tokens].Remaining) {
			least[tokens] = r
		}
	}
	for tokens, r := range least {
		if r != nil {
			llm.WriteHeaders(h, p.API, tokens == 1, llm.Quota{
				Limit: r.Limit, Remaining: r.Remaining, ResetAfter: r.ResetAfter, ResetAt: time.UnixMicro(int64(r.ResetAt)),
			})
		}
	}
}

// restore gives a request its body back. If the usage of its tokens is to be settled, it
// asks the upstream for that, and for a response that can be read. It changes the request, but
// not what that shares with others.
func (p *prompt) restore(r *http.Request, s *settlement) {
	if s != nil && s.watch != nil {
		body, asks := p.body, false
		if p.kept && p.Stream {
			body = bytes.Clone(body) // which expressions see as it was sent
		}
		if p.body, asks = p.AskUsage(body); asks {
			s.watch.Strip()
			p.replace(r, "Content-Length", strconv.Itoa(len(p.body)))
		}
		p.replace(r, "Accept-Encoding", "identity") // who says nothing gets no compressed response
	}
	r.ContentLength, r.TransferEncoding = int64(len(p.body)), nil
	var again *promptBody
	if s != nil {
		again = &s.body
	} else {
		again = new(promptBody)
	}
	again.body, again.kept, again.release, again.memory = p.body, p.kept, p.release, p.memory
	r.Body = again
}

// replace replaces the value of a header, if the request has it.
func (p *prompt) replace(r *http.Request, name, value string) {
	if _, given := r.Header[name]; !given {
		return
	}
	if !p.cloned {
		r.Header, p.cloned = maps.Clone(r.Header), true // its values are replaced, never changed
	}
	r.Header[name] = []string{value}
}
