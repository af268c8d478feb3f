package httplimit

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strconv"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/gateway/llm"
	"github.com/weirhq/weir/internal/match"
	"github.com/weirhq/weir/rule"
)

const (
	maxPrompt  = 32 << 20  // bytes of the body of a request to a language model
	maxPrompts = 256 << 20 // bytes of all that are being read or sent on
)

var prompts = budget.NewBodyReader(maxPrompts)

// prompt is a request whose body is read because a rule counts what is in it: tokens of a language model, or messages of
// agents. A nil one is any other request.
type prompt struct {
	llm.Request
	tokens   bool // it is for a language model
	messages llm.Messages
	body     []byte
	kept     bool // expressions may read it until the response has ended
	cloned   bool // the headers of the request are its own
	release  func()
}

// readPrompt reads the body of a request if a rule counts what is in it, and tells rules about
// it. After an error, the request has been answered.
func (m *Middleware) readPrompt(w http.ResponseWriter, r *http.Request, pass *pass) (*prompt, error) {
	q := &pass.request
	table, _ := m.engine.Rules()
	counts, speaks := table.CountsTokens(pass.hits[:], q), table.ReadsMCP(pass.hits[:], q)
	if counts == nil && speaks == nil || table.Exempt(q) {
		return nil, nil
	}
	p := &pass.prompt
	p.release, p.tokens = func() {}, counts != nil
	if speaks != nil {
		pass.forgetMessages()
	}
	if hasBody(r) {
		err := checkCoding(r.Header)
		if err == nil {
			from := m.source(w, r, q)
			from.Optional = !denies(counts, speaks)
			pass.look = look{m, r, q, &pass.verdict, &pass.denial.Denial, nil}
			from.Long = &pass.look
			p.body, p.release, err = prompts.Read(from, maxPrompt)
		}
		if busy := err == budget.ErrBusy && len(p.body) > 2*budget.Free; err != nil && err != errDenied && !busy && !denies(counts, speaks) {
			q.Prompt = &p.Prompt // without tokens, so that the rule does not apply
			p.handOn(r, err)
			return nil, nil
		}
		if err != nil {
			p.close()
			p.Request, _ = llm.Parse(q.Path, nil, apiOf(counts))
			if err == errDenied {
				p.writeHeaders(w.Header(), &pass.verdict, m.options.Headers)
				m.stop(w, r, pass, p, pass.look.err)
			} else {
				p.unread(w, err)
			}
			return nil, err
		}
	}
	wrong := ""
	if speaks != nil && len(p.body) > 0 {
		if wrong = p.readMessages(pass, r); !speaks.Mode.Denies() {
			wrong = ""
		}
	}
	if counts != nil && wrong == "" {
		if p.readTokens(pass, counts); counts.Mode.Denies() {
			wrong = p.Wrong
		}
	}
	if wrong != "" {
		p.close()
		err := &rule.RequestError{Status: http.StatusBadRequest, Reason: wrong}
		p.unread(w, err)
		return nil, err
	}
	return p, nil
}

// apiOf is that of the rule that counts tokens, which may be nil.
func apiOf(counts *rule.Entry) rule.ModelAPI {
	if counts == nil {
		return rule.AutoAPI
	}
	return counts.Tokens.API
}

// readTokens tells rules what a request to a language model may use.
func (p *prompt) readTokens(pass *pass, counts *rule.Entry) {
	q := &pass.request
	path := match.CanonicalPath(q.Path)
	p.Request, _ = llm.Parse(path, p.body, counts.Tokens.API)
	for _, other := range match.OtherReadings(q.Path) {
		if len(p.body) > 0 && !llm.SamePath(path, other) {
			p.Wrong = "The path of the request can be read in several ways; write it without dot segments, semicolons, backslashes and escaped slashes."
		}
	}
	q.Prompt = &p.Prompt
	if _, given := q.Attributes["model"]; !given && p.Model != "" {
		pass.ownAttributes()["model"] = p.Model
	}
}

// handOn gives a request its body back that could not be read, for a rule that never denies.
func (p *prompt) handOn(r *http.Request, err error) {
	if unread(err).Status != http.StatusBadRequest {
		err = nil // the rest can be read
	}
	r.Body = &restored{Reader: followed(p.body, r.Body, err), Closer: r.Body, release: p.release}
}

// unread answers a request that could not be read.
func (p *prompt) unread(w http.ResponseWriter, err error) {
	wrong := unread(err)
	if wrong.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	p.problem(w, &llm.Problem{Status: wrong.Status, Message: wrong.Reason})
}

// close is for a body that nobody else has.
func (p *prompt) close() {
	if p != nil {
		p.release()
	}
}

// problem answers as the API of the client does.
func (p *prompt) problem(w http.ResponseWriter, wrong *llm.Problem) {
	if !p.tokens {
		d := &Denial{Status: wrong.Status}
		d.Verdict, d.Cause, d.Detail = new(engine.Verdict), engine.InvalidRequest, wrong.Message
		p.answerMessages(w, d)
		return
	}
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/json")
	if wrong.Status == http.StatusTooManyRequests && wrong.Wait == 0 {
		h.Set("X-Should-Retry", "false") // the clients of OpenAI and Anthropic heed it
	}
	if kind := wrong.ErrorType(p.API); kind != "" {
		h.Set("X-Amzn-Errortype", kind)
	}
	w.WriteHeader(wrong.Status)
	w.Write(wrong.JSON(p.API))
}

// writeHeaders adds what clients of the API look for: the limit of tokens, and that of
// requests, with the least left. A budget of money, or of another unit, is neither.
func (p *prompt) writeHeaders(h http.Header, v *engine.Verdict, families Headers) {
	if p == nil || !p.tokens || families&XRateLimit == 0 {
		return
	}
	var least [2]*engine.Result
	for i := range v.Results {
		r, tokens := &v.Results[i], 0
		switch {
		case countsRequests(r.Rule):
		case r.Rule.Tokens != nil && !r.Rule.Tokens.Weighted():
			tokens = 1
		default:
			continue
		}
		if !r.Shadow && r.Asked && (least[tokens] == nil || r.Remaining < least[tokens].Remaining) {
			least[tokens] = r
		}
	}
	for tokens, r := range least {
		if r != nil {
			llm.WriteHeaders(h, p.API, tokens == 1, &r.Decision)
		}
	}
}

// countsRequests reports whether a limit of the rule is one of requests.
func countsRequests(r *rule.Entry) bool { return r.Tokens == nil && r.CostUnit() == "" }

// restore gives a request its body back. If the usage of its tokens is to be settled, it
// asks the upstream for that, and for a response that can be read. It changes the request, but
// not what that shares with others.
func (p *prompt) restore(r *http.Request, s *settlement, x *Exchange) {
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
	if read := bytes.NewReader(p.body); len(p.body) >= budget.Free {
		r.Body = &restored{Reader: read, Closer: http.NoBody, kept: p.kept, release: p.release}
	} else { // it takes no room
		if r.Body = io.NopCloser(read); x != nil {
			x.Short = true
		}
	}
	p.body = nil
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
