package httplimit

import (
	"net/http"
	"slices"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/internal/gateway/llm"
	"github.com/weirhq/weir/rule"
)

// settlement is what is to be done when the response of a request is known, or has ended. Only that of
// a proxy is used again for others: other handlers may look at parts of it later.
type settlement struct {
	*engine.Hold
	pass     *pass
	watch    *llm.Watch // nil unless tokens are counted
	exchange *Exchange  // nil if there is no proxy

	response rule.Response
	tokens   rule.Usage
	noted    noted
}

var settlements = sync.Pool{New: func() any { return new(settlement) }}

// settles returns the settlement of an allowed request, or nil if there is none. It keeps the
// pass until its end.
func (m *Middleware) settles(p *pass, prompt *prompt, x *Exchange) *settlement {
	if p.verdict.Hold == (weir.HoldID{}) && !p.verdict.Places() {
		return nil
	}
	s := new(settlement)
	if x != nil {
		s = settlements.Get().(*settlement)
	}
	s.pass, s.exchange = p, x
	s.Hold = m.front.Serve(&p.request, &p.verdict)
	if prompt != nil {
		s.watch = prompt.watch(s.Hold)
	}
	if slices.ContainsFunc(s.Parts, func(p engine.HoldPart) bool { return p.Rule.ReadsBody() }) {
		s.noted.kept = new(kept)
	}
	return s
}

// free gives back the memory of the settlement, if that is used again.
func (s *settlement) free() {
	if s != nil && s.exchange != nil {
		s.Hold.Free()
		*s = settlement{}
		settlements.Put(s)
	}
}

// end settles with what was seen of the response, and how the handler ended. Whoever reads the end of the response
// finds it settled.
func (m *Middleware) end(s *settlement, n *noted, r *http.Request, failure error) {
	if s == nil {
		return
	}
	resp := &s.response
	resp.Bytes, resp.Header = n.bytes, n.Header()
	// A handler whose client has left usually gives up, and so its error says nothing of the request.
	lost := n.status >= http.StatusBadRequest && r.Context().Err() != nil
	if !lost && (s.exchange == nil || !s.exchange.Lost) {
		resp.Status = n.status
	}
	if n.kept != nil {
		resp.JSON = n.kept.text
	}
	if s.watch != nil && resp.Status != 0 {
		resp.Cut = s.watch.Cut()
		resp.Unfinished = !s.watch.Ended(failure == nil && r.Context().Err() == nil)
		if u, known := s.watch.Used(); known {
			s.tokens = u
			resp.Tokens = &s.tokens
		}
	}
	var actual func(*rule.Response) engine.Used
	if m.options.Actual != nil {
		actual = func(resp *rule.Response) engine.Used { return m.options.Actual(r, resp) }
	}
	if err := s.End(resp, actual); err != nil {
		m.front.Tell(front.NotUsed, "path", s.pass.request.Path, "error", err.Error())
	}
	s.pass.release()
}

// watch returns a watch over the tokens of a response, or nil if no rule counts them.
func (p *prompt) watch(h *engine.Hold) *llm.Watch {
	var followed []int // parts of the hold
	counts := false
	for i := range h.Parts {
		part := &h.Parts[i]
		if part.Rule.Tokens != nil {
			counts = true
			if part.Grows() || cuts(part) {
				followed = append(followed, i)
			}
		}
	}
	if !counts {
		return nil
	}
	w := llm.NewWatch(p.Request)
	if len(followed) > 0 {
		w.Over = func(u llm.Usage) (over bool) {
			for _, i := range followed {
				part := &h.Parts[i]
				if cost, known := part.Rule.TokenCost(p.Model, u); known && h.Reach(i, cost) && cuts(part) {
					over = true
				}
			}
			return over
		}
	}
	return w
}

// cuts reports whether a stream ends that uses more than a part has reserved.
func cuts(p *engine.HoldPart) bool {
	return p.Rule.Tokens.OnOverrun == rule.Cut && p.Rule.Mode == rule.Enforce
}
