package httplimit

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/llm"
	"github.com/weirhq/weir/rule"
)

// maxSettle is how long to try to settle. A store has a timeout of its own, which is
// shorter, and after it the engine goes on by itself.
const maxSettle = time.Second

// settlement is what is to be done when the response of a request is known.
type settlement struct {
	by      *Middleware
	hold    weir.HoldID
	request rule.Request
	values  values
	parts   []part
	begin   time.Time
	watch   *llm.Watch // nil unless tokens are counted

	mu    sync.Mutex
	timer *time.Timer // extends the hold
	ended bool
}

// part is what was reserved under one rule.
type part struct {
	rule     *rule.Entry
	reserved int64
}

// settles returns the settlement of an allowed request, or nil if there is none.
func (m *Middleware) settles(p *pass, prompt *prompt) *settlement {
	v := &p.verdict
	if v.Hold == (weir.HoldID{}) {
		return nil
	}
	s := &settlement{by: m, hold: v.Hold, request: p.request, values: p.values, begin: time.Now()}
	s.request.Values = &s.values
	for i := range v.Results {
		if r := &v.Results[i]; len(s.parts) == 0 || s.parts[len(s.parts)-1].rule != r.Rule {
			s.parts = append(s.parts, part{r.Rule, r.Cost})
		}
	}
	if prompt != nil && s.request.Prompt != nil {
		s.watch = prompt.watch(s.parts, s.request.Prompt.Model)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(m.ttl/2, s.extend)
	return s
}

// extend keeps the hold alive, as long as the handler runs.
func (s *settlement) extend() {
	ctx, cancel := context.WithTimeout(context.Background(), maxSettle)
	defer cancel()
	_, _ = s.by.engine.Extend(ctx, s.hold, s.by.ttl) // if it fails, the next time may do
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.timer.Reset(s.by.ttl / 2)
	}
}

// end settles with what the response shows. Whoever reads the end of
// the response finds it settled.
func (s *settlement) end(n *noted) {
	if s == nil {
		return
	}
	if !s.finish() {
		return // the handler has settled
	}
	used := map[string]int64{}
	resp := s.response(n)
	for _, p := range s.parts {
		// On an error, what was reserved counts.
		used[p.rule.ID], _ = p.rule.Actual(&s.request, resp, p.reserved)
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxSettle)
	defer cancel()
	// If it fails, the hold expires.
	_, _ = s.by.engine.Settle(ctx, s.hold, func(id, _ string, reserved int64) int64 {
		if n, found := used[id]; found {
			return n
		}
		return reserved
	})
}

// finish ends the extensions. It reports whether the hold is still to be settled.
func (s *settlement) finish() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.ended
	s.ended = true
	s.timer.Stop()
	return first
}

// Hold is what the rules have reserved for a request that is being served.
type Hold struct{ settlement *settlement }

type holdKey struct{}

// HoldOf returns the hold of the request with this context, or nil: only requests to which a
// rule applies that settles by the response have one, and only with Wrap.
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}

// Settle ends the hold with what the handler knows better than the response shows, such as
// engine.Units(7). The middleware then does not settle it. A handler that does not call it
// need not do anything.
func (h *Hold) Settle(ctx context.Context, used engine.Used) (engine.Settled, error) {
	h.settlement.finish()
	return h.settlement.by.engine.Settle(ctx, h.settlement.hold, used)
}

// hand gives the handler its hold.
func (s *settlement) hand(r *http.Request) *http.Request {
	if s == nil {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), holdKey{}, &Hold{s}))
}

// keeps returns room for a response that a rule reads, or nil.
func (s *settlement) keeps() *kept {
	if slices.ContainsFunc(s.parts, func(p part) bool { return p.rule.ReadsBody() }) {
		return new(kept)
	}
	return nil
}

// response is what was seen of the response.
func (s *settlement) response(n *noted) *rule.Response {
	resp := &rule.Response{
		Status: n.status, Bytes: n.bytes, Duration: time.Since(s.begin),
		Header: n.Header().Get,
	}
	if n.kept != nil {
		resp.JSON = n.kept.text
	}
	if s.watch != nil && n.status != 0 {
		if u, known := s.watch.Used(); known {
			resp.Tokens = &rule.Usage{Input: u.Input, Cached: u.Cached, Output: u.Output}
		}
	}
	return resp
}

// watch returns a watch over the tokens of a response, or nil if no rule counts them.
func (p *prompt) watch(parts []part, model string) *llm.Watch {
	var cut []part
	counts := false
	for _, part := range parts {
		if t := part.rule.Tokens; t != nil {
			counts = true
			if t.OnOverrun == rule.Cut && part.rule.Mode == rule.Enforce {
				cut = append(cut, part)
			}
		}
	}
	if !counts {
		return nil
	}
	w := llm.NewWatch(p.Request)
	if len(cut) > 0 {
		w.Over = func(u llm.Usage) bool {
			for _, part := range cut {
				if part.rule.Tokens.Cost(model, rule.Usage{Input: u.Input, Cached: u.Cached, Output: u.Output}) > part.reserved {
					return true
				}
			}
			return false
		}
	}
	return w
}
