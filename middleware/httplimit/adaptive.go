package httplimit

import (
	"net/http"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/adaptive"
	"github.com/weirhq/weir/internal/priority"
	"github.com/weirhq/weir/rule"
)

// Adaptive is a limit of the requests in flight in the handlers of a middleware. It adapts
// between Min and Max to how many requests the handlers can answer at the same time. Further
// requests are answered with 503, first those of low priority. Only requests that the rules
// allow count, so denied ones are charged nevertheless. A place is free when the handler has
// returned.
type Adaptive struct{ Min, Max int }

// AdaptiveLimit returns the state of Options.Adaptive. Observers of the engine that are an
// [engine.AdaptiveObserver], such as metrics, show it, too.
func (m *Middleware) AdaptiveLimit() engine.AdaptiveLimit {
	if m.adaptive == nil {
		return engine.AdaptiveLimit{}
	}
	return engine.AdaptiveLimit(m.adaptive.Stats())
}

// adapt puts the adaptive limit in front of a handler.
func (m *Middleware) adapt(next http.Handler) func(rule.Priority) http.Handler {
	l := m.adaptive
	return func(p rule.Priority) http.Handler {
		if l == nil {
			return next
		}
		class := priority.Class(p - rule.Low)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if m.options.Skip != nil && m.options.Skip(r) {
				next.ServeHTTP(w, r)
				return
			}
			if !l.Acquire(time.Since(m.began), class) {
				m.shed(w, r)
				return
			}
			n, is := w.(*noted)
			if !is {
				n = &noted{ResponseWriter: w}
			}
			ended := false
			defer func() {
				l.Release(time.Since(m.began), adaptive.OutcomeOf(r.Context(), ended, n.status))
			}()
			next.ServeHTTP(n, r)
			ended = true
		})
	}
}

// shed answers a request for which there is no place.
func (m *Middleware) shed(w http.ResponseWriter, r *http.Request) {
	d := &Denial{Denial: engine.DescribeOverload(new(engine.Verdict))}
	d.translate()
	if m.options.Headers&RetryAfter != 0 {
		w.Header().Set("Retry-After", "1")
	}
	if m.options.Deny == nil {
		d.Write(w)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	m.options.Deny(w, r, d)
}
